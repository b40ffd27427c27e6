import assert from 'node:assert/strict'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { examine } from '../../packages/doctor/examine.ts'
import { inTime } from '../support/in-time.ts'
import { assertUseful, configOf, finding } from './support.ts'

test('doctor ends within its time limit, and names the checks that have not finished', async (t) => {
  const sockets: Socket[] = []
  const silent = createServer((socket) => void sockets.push(socket.on('error', () => {})))
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    silent.close()
    for (const socket of sockets) socket.destroy()
  })
  const { port } = silent.address() as AddressInfo
  const config = configOf(t, {
    externalUrl: `http://localhost:${port}`,
    issuer: `http://127.0.0.1:${port}`,
    provider: 'timeout: 60s',
    upstream: `url: http://127.0.0.1:${port}`,
  })

  const examined = await inTime(3_000, () => examine({ config, secretFiles: [], env: {}, claims: undefined }, 300))

  const [provider, sessions] = examined
  assertUseful(provider?.findings ?? [])
  assert.equal(finding(provider?.findings ?? [], 'doctor.unfinished').level, 'fault')
  assert.equal(finding(sessions?.findings ?? [], 'sessions.memory').level, 'ok')
})
