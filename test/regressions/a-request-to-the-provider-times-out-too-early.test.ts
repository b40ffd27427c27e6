import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { createOutbound } from '../../src/provider/outbound.ts'

const timeoutMs = 990

test('A request to the provider never fails before the timeout', async (t) => {
  const server = createServer(() => {}).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const outbound = createOutbound({ timeoutMs, ca: undefined })
  t.after(async () => {
    server.closeAllConnections()
    server.close()
    await outbound.close()
  })

  // undici measures time in steps of half a second that all requests share, so some requests begin
  // right before a step.
  const waited = await Promise.all(
    Array.from({ length: 6 }, async (_, n) => {
      await wait(n * 100)
      const begun = performance.now()
      await assert.rejects(outbound.fetch(`http://127.0.0.1:${port}/`, {}), /no response within 990 ms/)
      return performance.now() - begun
    }),
  )

  // Timers of Node.js have a resolution of one millisecond.
  assert.ok(Math.min(...waited) > timeoutMs - 2, String(waited))
})
