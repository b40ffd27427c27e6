import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Keyring } from '../../src/core/seal.ts'
import { changeSession, Sessions } from '../../src/session/live/live-sessions.ts'
import { NearCaches } from '../../src/session/live/near-cache.ts'
import { PendingEndings } from '../../src/session/live/pending-endings.ts'
import { sessionKey, type StoredSession } from '../../src/session/record/record.ts'
import type { EndedLate, SealedSession, SessionStore } from '../../src/session/store/store.ts'
import { memoryStore } from '../support/memory-store.ts'

const idleTimeoutMs = 60_000
/** How often activity is written to the store. */
const touchEveryMs = 6_000
const quiet = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }

/** Sessions in a new memory store with this maximum. */
function open(t: TestContext, maxSessions: number) {
  let now = Date.UTC(2026, 0, 1)
  const clock = { now: () => now }
  const store: SessionStore = memoryStore({ maxSessions, clock })
  t.after(() => store.close())
  const caches = new NearCaches()
  const pending = new PendingEndings(quiet)
  t.after(() => pending.clear())
  const audited: { readonly event: string; readonly by?: string; readonly sub?: string | undefined }[] = []
  const another = (audiences = ['orders']) =>
    new Sessions({
      ...{ store, caches },
      keyring: new Keyring([Buffer.alloc(32, 1)]),
      audiences,
      config: { idleTimeoutMs, absoluteTimeoutMs: 60 * idleTimeoutMs, storeOutageGraceMs: 0 },
      clock,
      log: quiet,
      audit: { record: (event, fields) => void audited.push({ event, ...fields }) },
      pending,
    })
  const sessions = another()
  const { endings } = sessions
  const signIn = async (sub: string) => {
    const tokens = { access_token: 'a', obtained_at: 0, id_token: 'i' }
    const person = { iss: 'https://id.example.com', sub, sid: sub, tokens, claims: { sub }, userinfo_read_at: 0 }
    const id = await sessions.create('orders', person, now)
    assert.ok(id)
    return sessionKey(id)
  }
  return { store, sessions, endings, signIn, another, audited, now: () => now, pass: (ms: number) => void (now += ms) }
}

test('a session that the store has lost without a notice is not served from memory for ever', async (t) => {
  const { sessions, endings, signIn, pass } = open(t, 1)
  const jane = await signIn('jane')
  await signIn('samir')
  const ended: string[] = []
  endings.onEnded((keys) => ended.push(...keys))

  pass(touchEveryMs)
  sessions.findInMemory(jane)
  await turn()

  assert.equal(await sessions.find(jane), undefined)
  assert.deepEqual(ended, [jane], 'what is open for it is closed too')
})

test('two processes that change a session at the same time make both changes', async (t) => {
  const { sessions, signIn, another } = open(t, 10)
  const jane = await signIn('jane')

  await Promise.all(
    [sessions, another()].map((each, at) =>
      changeSession(jane, each, (record) => ({ ...record, claims: { ...record.claims, [at]: true } })),
    ),
  )

  assert.deepEqual((await sessions.read(jane))?.record.claims, { sub: 'jane', 0: true, 1: true })
})

test('activity that the store could not record is recorded at the next request, so no session expires too early', async (t) => {
  const { store, sessions, signIn, pass } = open(t, 10)
  const jane = await signIn('jane')
  t.mock.method(store, 'touch').mock.mockImplementationOnce(() => Promise.reject(new Error('away')))

  pass(touchEveryMs)
  assert.ok(sessions.findInMemory(jane))
  await turn()
  pass(1_000)
  assert.ok(sessions.findInMemory(jane))
  await turn()

  pass(idleTimeoutMs - 1)
  assert.ok(await sessions.read(jane))
})

test('the last use of a session is known until the absolute expiry hides it, and asking is no use', async (t) => {
  const { sessions, signIn, now, pass } = open(t, 10)
  const begun = now()
  const jane = await signIn('jane')
  const stored = (await sessions.read(jane)) as StoredSession
  const use = async (at: number) => {
    pass(begun + at - now())
    assert.ok(await sessions.find(jane))
    await turn()
  }
  const lastUse = async () => ((await sessions.lastUse(stored)) ?? assert.fail('ended')).at

  for (let at = 0; at <= 58 * idleTimeoutMs; at += idleTimeoutMs / 2) await use(at)
  pass(10_000)
  assert.equal(await lastUse(), begun + 58 * idleTimeoutMs)
  pass(20_000)
  assert.equal(await lastUse(), begun + 58 * idleTimeoutMs, 'asking changes nothing')
  await use(59 * idleTimeoutMs - 1_000)
  assert.equal(await lastUse(), begun + 59 * idleTimeoutMs - 1_000)
  await use(59 * idleTimeoutMs + 10_000)
  assert.equal(await lastUse(), undefined)
  pass(idleTimeoutMs)
  assert.equal(await sessions.lastUse(stored), undefined)
})

test('a session that is not in memory is read without a write, unless its idle timeout has to be moved', async (t) => {
  const { store, sessions, signIn, pass } = open(t, 10)
  const jane = await signIn('jane')
  const touch = t.mock.method(store, 'touch')
  const findInStore = async () => {
    store.receivesNotices = () => false
    assert.ok(await sessions.find(jane))
    store.receivesNotices = undefined
  }

  pass(touchEveryMs - 1)
  await findInStore()
  assert.equal(touch.mock.callCount(), 0)
  pass(1)
  await findInStore()
  assert.equal(touch.mock.callCount(), 1)
  assert.equal(await store.expiresIn(jane), idleTimeoutMs)
})

test('a session that another process has used stays in memory for as long as the store has it', async (t) => {
  const { store, sessions, signIn, pass } = open(t, 10)
  const jane = await signIn('jane')
  const touch = t.mock.method(store, 'touch')
  pass(touchEveryMs)
  await store.touch(jane, idleTimeoutMs)
  pass(touchEveryMs - 1)
  store.receivesNotices = () => false

  assert.ok(await sessions.find(jane))
  store.receivesNotices = undefined
  assert.ok(sessions.findInMemory(jane))
  assert.equal(touch.mock.callCount(), 1, 'the one of the other process')
  pass(1)
  assert.ok(sessions.findInMemory(jane))
  assert.equal(touch.mock.callCount(), 2)
})

for (const where of ['here', 'elsewhere'] as const)
  test(`a session that is changed ${where} while its idle timeout is moved is not kept in its old version`, async (t) => {
    const { store, sessions: first, signIn, another, pass } = open(t, 10)
    const jane = await signIn('jane')
    pass(touchEveryMs)
    const listening = t.mock.method(store, 'onNotice')
    const sessions = another()
    const stored = (await first.read(jane)) as StoredSession
    const changed = { ...stored.record, claims: { sub: 'jane', groups: ['former'] } }
    const read = store.read.bind(store)
    t.mock.method(store, 'read').mock.mockImplementationOnce(async (key) => {
      const before = await read(key)
      await (where === 'here' ? sessions : first).replace(stored, changed)
      if (where === 'elsewhere') listening.mock.calls[0]?.arguments[0]({ kind: 'changed', key })
      return before
    })

    assert.deepEqual((await sessions.find(jane))?.record.claims, { sub: 'jane' }, 'the reply is older than the change')
    assert.deepEqual((await sessions.find(jane))?.record.claims, changed.claims)
  })

test('a session that is read while it is changed is not kept in its old version', async (t) => {
  const { store, sessions: first, signIn, another } = open(t, 10)
  const jane = await signIn('jane')
  const sessions = another()
  const stored = (await first.read(jane)) as StoredSession
  const replace = store.replace.bind(store)
  t.mock.method(store, 'replace').mock.mockImplementationOnce(async (...args) => {
    assert.ok(await sessions.find(jane))
    return replace(...args)
  })

  await sessions.replace(stored, { ...stored.record, claims: { sub: 'jane', groups: ['former'] } })

  assert.deepEqual((await sessions.find(jane))?.record.claims['groups'], ['former'])
})

test('a session that an earlier order did not find leaves the memory of the process that ends it, and is recorded once', async (t) => {
  const { store, signIn, another, audited } = open(t, 10)
  const jane = await signIn('jane')
  const { sealed } = (await store.read(jane)) as SealedSession
  const listening = t.mock.method(store, 'onNotice')
  const generations = [another(), another(['added']), another()]
  const told: string[][] = []
  for (const { endings } of generations) endings.onEnded((keys, where) => told.push([where, ...keys]))
  const notify = (ended: Partial<EndedLate>) => {
    for (const {
      arguments: [listener],
    } of listening.mock.calls)
      listener({ kind: 'ended_late', keys: [], sessions: [], ...ended })
  }
  assert.ok(await generations[2]?.find(jane))

  notify({ keys: [jane] })
  for (const sessions of generations) assert.equal(sessions.findInMemory(jane), undefined)
  const sessions = [{ key: jane, sealed }]
  notify({ sessions })

  const isHere = ([where, key]: string[]) => where === 'here' && key === jane
  assert.equal(told.filter(isHere).length, 3, 'each generation closes what is open for it')
  const endings = audited.filter(({ event }) => event === 'session.ended')
  assert.deepEqual(
    endings.map(({ by, sub }) => [by, sub]),
    [['earlier_order', 'jane']],
  )
})

test('a session that another process has ended leaves the memory of each generation', async (t) => {
  const { store, signIn, another } = open(t, 10)
  const jane = await signIn('jane')
  const listening = t.mock.method(store, 'onNotice')
  const generations = [another(), another()]
  const told: string[][] = []
  for (const { endings } of generations) endings.onEnded((keys, where) => told.push([where, ...keys]))
  for (const sessions of generations) assert.ok(await sessions.find(jane))

  for (const {
    arguments: [listener],
  } of listening.mock.calls)
    listener({ kind: 'ended', keys: [jane] })

  for (const sessions of generations) assert.equal(sessions.findInMemory(jane), undefined)
  assert.deepEqual(told, [
    ['elsewhere', jane],
    ['elsewhere', jane],
  ])
})

test('a session that an order ended here, and that Redis ends only later, is recorded', async (t) => {
  const { store, sessions, signIn, audited } = open(t, 10)
  const jane = await signIn('jane')
  const { sealed } = (await store.read(jane)) as SealedSession
  t.mock.method(store, 'endSub').mock.mockImplementationOnce(() => Promise.reject(new Error('away')))
  const order = { audience: 'orders', jti: 'one', exp: Math.floor(Date.UTC(2026, 0, 1) / 1000) + 60 }
  await assert.rejects(sessions.endings.endSub('jane', order, 'provider'))

  sessions.endings.tellLate({ kind: 'ended_late', keys: [], sessions: [{ key: jane, sealed }] })

  assert.deepEqual(
    audited.flatMap(({ event, by }) => (event === 'session.ended' ? by : [])),
    ['earlier_order'],
  )
})

test('an ending that waits for the store covers its own sessions, and no others', async (t) => {
  const { store, sessions, signIn, another } = open(t, 10)
  const [jane, samir] = [await signIn('jane'), await signIn('samir')]
  t.mock.method(store, 'endSub').mock.mockImplementation(() => Promise.reject(new Error('away')))
  const order = { audience: 'orders', jti: 'one', exp: Math.floor(Date.UTC(2026, 0, 1) / 1000) + 60 }

  await assert.rejects(sessions.endings.endSub('samir', order, 'provider'))

  for (const [where, reader] of [['with', sessions] as const, ['without', another()] as const])
    for (const method of ['findInMemory', 'find', 'peek', 'read'] as const) {
      assert.equal(await reader[method](samir), undefined, `${method} ${where} sessions in memory`)
      if (where === 'with' || method !== 'findInMemory')
        assert.ok(await reader[method](jane), `${method} ${where} sessions in memory`)
    }
})
