import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { KeptKey } from '../../src/core/names.ts'
import { sidTag } from '../../src/session/record/record.ts'
import { memoryStore } from '../support/memory-store.ts'
import { created, keysOf, newKeptKey, newSession, order, storeContract, until } from './store-contract.ts'

function open(t: TestContext, maxSessions = 1_000) {
  let now = Date.UTC(2026, 0, 1)
  const clock = { now: () => now }
  const store = memoryStore({ maxSessions, clock })
  t.after(() => store.close())
  const tick = () => {
    now += 10
    // The store deletes what has expired once a second: a turn of the event loop is too short.
    return new Promise<void>((resolve) => setTimeout(resolve, 1))
  }
  return { store, now: clock.now, tick, pass: (ms: number) => (now += ms) }
}

storeContract('memory', async (t) => {
  const { store, now, tick } = open(t)
  return { store, now, tick, size: async () => store.size() }
})

test('a full memory store drops the session that was not used for the longest time', async (t) => {
  const { store, now, pass } = open(t, 3)
  const [first, second, third] = [
    await created(store, now(), { sid: 'one' }),
    await created(store, now(), { sid: 'one' }),
    await created(store, now(), { sid: 'one' }),
  ]
  pass(1_000)
  await store.touch(first.key, 60_000)
  await store.touch(third.key, 60_000)

  const fourth = await created(store, now(), { sid: 'one' })

  assert.equal(await store.read(second.key), undefined)
  const left = [first.key, third.key, fourth.key].toSorted()
  assert.deepEqual(keysOf(await store.endSid(sidTag('https://id.example.com/', 'one'), order(now()))), left)
})

test('the size of the memory store is limited for all kinds of entries', async (t) => {
  const { store, now } = open(t, 10)
  for (let n = 0; n < 500; n++) {
    const { key } = await created(store, now())
    await store.takeOnce(`thing ${n}`, 60_000)
    await store.acquireLease(key, 'owner', 60_000)
    await store.acquireLease(newSession(now()).key, 'owner', 60_000)
    await store.endSid(sidTag('https://id.example.com/', `sid ${n}`), order(now()))
  }
  // Sessions, tombstones, and marks for leases, jtis and things that happen once.
  assert.ok(store.size() <= 30, `${store.size()} entries`)
})

test('the memory store removes expired entries', async (t) => {
  const { store, now, tick, pass } = open(t)
  await created(store, now(), { idle_timeout: 1_000 })
  await store.takeOnce('a thing', 1_000)
  pass(2_000)
  assert.notEqual(store.size(), 0)

  await until(tick, () => store.size() === 0)
})

test('the memory store has room for 64 MiB of kept requests, and takes more when one is dropped', async (t) => {
  const { kept } = open(t).store
  const part = Buffer.alloc(1024 * 1024)
  // One person may take half of it.
  const [first, second, third] = [newKeptKey(), newKeptKey(), newKeptKey()]
  const fill = async (key: KeptKey) => {
    assert.equal(await kept.begin(key, 8, 60_000), 'begun')
    let parts = 0
    while (await kept.append(key, part, 60_000)) parts += 1
    return parts
  }
  assert.deepEqual([await fill(first), await fill(second), await fill(third)], [31, 31, 1])

  await kept.drop(first)
  assert.equal(await kept.append(third, part, 60_000), true)
})
