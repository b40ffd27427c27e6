import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { test } from 'node:test'
import { hearing, open, settings } from '../session/redis-stores.ts'
import { startRedis } from '../support/redis.ts'

test('A subscription that times out is never reported as a rejection by Redis', async (t) => {
  const redis = await startRedis(t)
  let isLost = false
  // The first SUBSCRIBE is lost on its way.
  const proxy = createServer((client) => {
    const server = connect(redis.port, '127.0.0.1')
    client.on('data', (bytes) => {
      if (!isLost && /\r\nsubscribe\r\n/i.test(bytes.toString('latin1'))) isLost = true
      else server.write(bytes)
    })
    server.pipe(client)
    for (const socket of [client, server])
      socket.on('error', () => {}).on('close', () => [client, server].forEach((each) => each.destroy()))
  }).listen(0, '127.0.0.1')
  t.after(() => proxy.close())
  await once(proxy, 'listening')
  const url = new URL(`redis://127.0.0.1:${(proxy.address() as AddressInfo).port}`)

  const { store, log } = open(t, { ...settings, kind: 'redis', url })
  await hearing(store)

  assert.ok(isLost)
  assert.ok(!log.messages().includes('store.notices_refused'), log.messages().join())
})
