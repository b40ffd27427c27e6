import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { hastyMs, hearing, open, settings } from '../session/redis-stores.ts'
import { created } from '../session/store-contract.ts'
import { block } from '../support/block.ts'
import { startRedis } from '../support/redis.ts'

async function connected(t: TestContext) {
  const server = await startRedis(t)
  const direct = new Redis(server.port, '127.0.0.1')
  t.after(() => direct.disconnect())
  const connections = async () =>
    [...String(await direct.client('LIST')).matchAll(/^id=(\d+) .*name=gatehouse-(?!trial)/gm)]
      .map(([, id]) => id)
      .toSorted()
  const { store, log } = open(t, { ...settings, kind: 'redis', url: new URL(server.url), timeoutMs: hastyMs })
  await hearing(store)
  const { key } = await created(store, Date.now())
  return { store, log, key, connections }
}

test('A reply of Redis that arrives while the process is busy counts, and the connection stays open', async (t) => {
  const { store, log, key, connections } = await connected(t)
  const before = await connections()
  assert.equal(before.length, 2)

  for (let round = 0; round < 3; round += 1) {
    const reading = store.read(key)
    const pinging = store.ping()
    // Now both are sent.
    await setImmediate()
    block(3 * hastyMs)
    assert.notEqual(await reading, undefined)
    await pinging
  }

  assert.deepEqual(await connections(), before)
  assert.deepEqual(log.messages(), ['store.available'])
})

test('A read that waits for the end of a long turn is sent then, and has all of its time', async (t) => {
  const { store, log, key, connections } = await connected(t)
  const before = await connections()

  for (let round = 0; round < 3; round += 1) {
    const reading = store.read(key)
    block(3 * hastyMs)
    assert.notEqual(await reading, undefined)
  }

  assert.deepEqual(await connections(), before)
  assert.deepEqual(log.messages(), ['store.available'])
})
