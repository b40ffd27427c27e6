import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { KeptKey } from '../../src/core/names.ts'
import { sidTag } from '../../src/session/record/record.ts'
import { SessionDatabase } from '../../src/session/store/sqlite/database.ts'
import { log, memoryStore } from '../support/memory-store.ts'
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

for (const maxSessions of [100_000, 100_001])
  storeContract(`memory, at most ${maxSessions} sessions`, async (t) => {
    const { store, now, tick } = open(t, maxSessions)
    return { store, now, tick, size: async () => store.size() }
  })

test('Sessions of 2,600 bytes take at most 3,600 bytes each, also after each has ended and another has begun', (t) => {
  const database = new SessionDatabase(undefined, log, 1_000)
  t.after(() => database.close())
  const sealed = Buffer.alloc(2_600)
  const insert = (number: number) =>
    database.insert(
      'sessions',
      `INSERT INTO sessions (key, sid_tag, sub_tag, sealed, version, run, expires_at, absolute_expires_at)
        VALUES (?1, ?1, ?1, ?2, 1, 1, ?3, 1)`,
      ...[`session ${number}`, sealed, number],
    )
  for (let number = 0; number < 1_000; number += 1) insert(number)
  for (let number = 0; number < 1_000; number += 1) {
    database.change('DELETE FROM sessions WHERE key = ?', `session ${(number * 619) % 1_000}`)
    insert(1_000 + number)
  }

  const { page_count = 0 } = database.one<{ page_count: number }>('PRAGMA page_count') ?? {}
  const { page_size = 0 } = database.one<{ page_size: number }>('PRAGMA page_size') ?? {}
  assert.equal(database.size(), 1_000)
  assert.ok(page_count * page_size < 3_600_000, `${page_count} pages of ${page_size} bytes`)
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
