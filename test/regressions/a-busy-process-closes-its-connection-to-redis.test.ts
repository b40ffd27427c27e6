import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { hearing, open, settings } from '../session/redis-stores.ts'
import { created } from '../session/store-contract.ts'
import { block } from '../support/block.ts'
import { startRedis } from '../support/redis.ts'

test('A reply of Redis that arrives while the process is busy counts, and the connection stays open', async (t) => {
  const server = await startRedis(t)
  const direct = new Redis(server.port, '127.0.0.1')
  t.after(() => direct.disconnect())
  const connections = async () =>
    [...String(await direct.client('LIST')).matchAll(/^id=(\d+) .*name=gatehouse-/gm)].map(([, id]) => id).toSorted()
  const { store, log } = open(t, { ...settings, kind: 'redis', url: new URL(server.url) })
  await hearing(store)
  const { key } = await created(store, Date.now())
  const before = await connections()
  assert.equal(before.length, 2)

  for (let round = 0; round < 3; round += 1) {
    const reading = store.read(key)
    const pinging = store.ping()
    // Now both are sent.
    for (let step = 0; step < 20; step += 1) await Promise.resolve()
    block(3 * settings.timeoutMs)
    assert.notEqual(await reading, undefined)
    await pinging
  }

  assert.deepEqual(await connections(), before)
  assert.deepEqual(log.messages(), ['store.available'])
})
