import assert from 'node:assert/strict'
import { test } from 'node:test'
import { httpUpstream, RawClient } from '../proxy/support.ts'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

const memoryBytes = 8 * 1024 * 1024
const part = Buffer.alloc(64 * 1024, 'x')

test('When responses exceed their memory limit, new requests are rejected, and only clients that do not read are closed', async (t) => {
  const { port } = await httpUpstream(t, (req, res) => {
    if (req.url !== '/endless') return void res.end('here')
    const write = () => {
      while (!res.destroyed && res.write(part));
    }
    res.on('drain', write)
    write()
  })
  const world = await startWorld(t, {
    memoryBytes,
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings: 'max_connections: 400\n    rules: [{ path: /*, access: public }]',
  })
  const [replica] = world.replicas
  const gatewayPort = Number(new URL(world.url).port)
  const statusOf = async (path: string) => (await fetch(`${world.url}${path}`)).status

  const reader = new RawClient(t, gatewayPort)
  let read = 0
  reader.socket.removeAllListeners('data').on('data', (chunk: Buffer) => (read += chunk.length))
  reader.send('GET /endless HTTP/1.1\r\nHost: h\r\n\r\n')
  const silent = Array.from({ length: 90 }, () => {
    const client = new RawClient(t, gatewayPort)
    client.socket.pause()
    return client.send('GET /endless HTTP/1.1\r\nHost: h\r\n\r\n')
  })

  await until('requests are refused', async () => (await statusOf('/')) === 503)
  assert.equal(await statusOf('/.gatehouse/session'), 401)
  const limits = () => replica?.log.filter(({ fields }) => fields['limit'] === 'memory for responses') ?? []
  await until('connections are closed', () => limits().length > 0)
  await until('requests are served again', async () => (await statusOf('/')) === 200)
  const seen = read
  await until('the client that reads still gets its response', () => read > seen + part.length * 100)
  assert.equal(reader.socket.destroyed, false)
  const gauge = replica?.metrics.collect().find(({ name }) => name === 'gatehouse_buffered_bytes')
  assert.ok((gauge?.cells[0]?.values[0] ?? Infinity) <= memoryBytes / 4)
  assert.deepEqual(
    new Set(replica?.log.filter(({ message }) => message === 'request.refused').map(({ fields }) => fields['code'])),
    new Set(['ERR_OVERLOADED']),
  )
  for (const client of silent) client.socket.destroy()
})
