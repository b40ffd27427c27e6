import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { replacePauses } from '../../support/pauses.ts'
import { beats, hearing, startSharedRedis, tick } from '../redis-stores.ts'
import { replica } from '../replica.ts'
import { created, until } from '../store-contract.ts'

const { server, admin, openShared, openAnother } = await startSharedRedis()

/** A store whose process is soon idle. */
async function openIdle(t: TestContext) {
  replacePauses(t, { proveNoticesMs: 300, checkIdleStoreMs: 100 })
  const opened = await openShared(t)
  await hearing(opened.store)
  return opened
}

test('an idle process proves nothing until it is asked, and drops its copies before it serves from memory again', async (t) => {
  const { store, heard } = await openIdle(t)
  heard.length = 0

  await until(tick, () => store.staleForMs() > 0)
  // It checks its connections meanwhile, which is no proof.
  await beats(admin, 3)
  assert.deepEqual(heard, [])

  replacePauses(t, { checkIdleStoreMs: 600_000 })
  await beats(admin, 1)
  assert.equal(store.receivesNotices(), false)
  await until(tick, () => store.receivesNotices())
  assert.deepEqual(heard, [{ kind: 'resumed', receivesNotices: false }])
})

test('an idle process confirms the endings of others', async (t) => {
  const { store, notices } = await openIdle(t)
  await until(tick, () => store.staleForMs() > 0)
  const other = await openAnother(t)
  const { key } = await created(other.store, Date.now())

  await other.store.endOne(key)

  assert.ok(notices.some((notice) => notice.kind === 'ended' && notice.keys.includes(key)))
  assert.deepEqual(other.log.warnings(), [])
})

test('with a grace, an idle process proves that notices arrive', async (t) => {
  // A process that proves nothing sends no further beat.
  replacePauses(t, { proveNoticesMs: 300, checkIdleStoreMs: 600_000 })
  const { store } = replica(t, server.port, { graceMs: 60_000 })
  await hearing(store)

  await beats(admin, 5)

  assert.ok(store.staleForMs() < 0, `${store.staleForMs()} ms`)
})
