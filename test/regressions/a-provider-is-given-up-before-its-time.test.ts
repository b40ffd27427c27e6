import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'node:test'
import { createOutbound } from '../../src/provider/outbound.ts'

test('a provider that answers within the timeout is never given up before', async (t) => {
  const server = createServer((_req, res) => void wait(800).then(() => res.end('{}'))).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const outbound = createOutbound({ timeoutMs: 990, ca: undefined })
  t.after(async () => {
    await outbound.close()
    server.close()
  })

  // undici counts time in steps of half a second that are the same for all requests: some begin right before one.
  const statuses = await Promise.all(
    Array.from({ length: 6 }, async (_, n) => {
      await wait(n * 100)
      return (await outbound.fetch(`http://127.0.0.1:${port}/`, {})).status
    }),
  )

  assert.deepEqual(statuses, Array(6).fill(200))
})
