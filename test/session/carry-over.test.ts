import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Keyring } from '../../src/core/seal.ts'
import type { KeptCookie } from '../../src/http/cookie-jar.ts'
import { cookiesOf, SessionCookies } from '../../src/session/cookies/application-cookies.ts'
import { carryOver } from '../../src/session/live/carry-over.ts'
import { Sessions } from '../../src/session/live/live-sessions.ts'
import { PendingEndings } from '../../src/session/live/pending-endings.ts'
import { sessionKey, type SessionRecord } from '../../src/session/record/record.ts'
import { memoryStore } from '../support/memory-store.ts'

const clock = { now: () => Date.UTC(2026, 0, 1) }
const quiet = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }
const iss = 'https://id.example.com'

function open(t: TestContext) {
  const store = memoryStore({ maxSessions: 10, clock })
  t.after(() => store.close())
  const sessions = new Sessions({
    store,
    keyring: new Keyring([Buffer.alloc(32, 1)]),
    audiences: ['orders'],
    config: { idleTimeoutMs: 60_000, absoluteTimeoutMs: 3_600_000, storeOutageGraceMs: 0 },
    clock,
    log: quiet,
    audit: { record() {} },
    pending: new PendingEndings(quiet),
  })
  const { endings } = sessions
  const signIn = async (sub: string, own: Partial<SessionRecord> = { browser_cookies: [] }) => {
    const tokens = { access_token: 'a', obtained_at: 0, id_token: 'i' }
    const id = await sessions.create('orders', { iss, sub, tokens, claims: { sub }, userinfo_read_at: 0, ...own }, 0)
    assert.ok(id)
    return sessionKey(id)
  }
  const cookies = new SessionCookies({ sessions, clock })
  return {
    sessions,
    endings,
    signIn,
    keep: (key: Awaited<ReturnType<typeof signIn>>, ...kept: readonly KeptCookie[]) =>
      cookies.keep(key, 'shop', { kept, inBrowser: kept }),
    names: async (key: Awaited<ReturnType<typeof signIn>>) => {
      const { record } = (await sessions.read(key)) ?? assert.fail('the session has ended')
      const inBrowser = record.browser_cookies?.map(({ name }) => name)
      return [cookiesOf(record, 'shop').map(({ name }) => name), inBrowser]
    },
  }
}

const cookie = (name: string): KeptCookie => ({ name, value: '1', domain: 'a.example.com', hostOnly: true, path: '/' })
const jane = { iss, sub: 'jane' }

test('The cookies move to the new session of the same person', async (t) => {
  const { sessions, signIn, keep, names } = open(t)
  const [from, to] = [await signIn('jane'), await signIn('jane')]
  await keep(from, cookie('a'))

  assert.equal(await carryOver({ from, to, person: jane }, sessions), true)

  assert.deepEqual(await names(to), [['a'], ['a']])
  assert.deepEqual(await names(from), [[], []])
})

test('A cookie that a response sets meanwhile moves too', async (t) => {
  const { sessions, signIn, keep, names } = open(t)
  const [from, to] = [await signIn('jane'), await signIn('jane')]
  await keep(from, cookie('a'))
  const replace = t.mock.method(sessions, 'replace')
  // The first call is for the new session, the second one for the previous session.
  replace.mock.mockImplementationOnce(async (previous, record) => {
    replace.mock.restore()
    await keep(from, cookie('b'))
    return sessions.replace(previous, record)
  }, 1)

  assert.equal(await carryOver({ from, to, person: jane }, sessions), true)

  assert.deepEqual(await names(to), [
    ['a', 'b'],
    ['a', 'b'],
  ])
  assert.deepEqual(await names(from), [[], []])
})

test('When the previous session ends meanwhile, the new one gets nothing', async (t) => {
  const { sessions, endings, signIn, keep, names } = open(t)
  const [from, to] = [await signIn('jane'), await signIn('jane')]
  await keep(from, cookie('a'))
  const replace = t.mock.method(sessions, 'replace')
  replace.mock.mockImplementationOnce(async (previous, record) => {
    replace.mock.restore()
    await endings.endOne(from, 'provider')
    return sessions.replace(previous, record)
  }, 1)

  assert.equal(await carryOver({ from, to, person: jane }, sessions), false)

  assert.deepEqual(await names(to), [[], []])
})

for (const [whose, person] of [
  ['another person', { iss, sub: 'samir' }],
  ['the same sub at another provider', { iss: 'https://other.example.com', sub: 'jane' }],
] as const)
  test(`Nothing moves to the session of ${whose}`, async (t) => {
    const { sessions, signIn, keep, names } = open(t)
    const [from, to] = [await signIn('jane'), await signIn(person.sub)]
    await keep(from, cookie('a'))

    assert.equal(await carryOver({ from, to, person }, sessions), false)

    assert.deepEqual(await names(to), [[], []])
    assert.deepEqual(await names(from), [['a'], ['a']])
  })

test('Nothing moves from a session that may have ended', async (t) => {
  const { sessions, signIn, keep, names } = open(t)
  const [from, to] = [await signIn('jane'), await signIn('jane')]
  await keep(from, cookie('a'))
  const stored = (await sessions.read(from)) ?? assert.fail()
  t.mock.method(sessions, 'read').mock.mockImplementationOnce(async () => ({ ...stored, isDoubtful: true }))

  assert.equal(await carryOver({ from, to, person: jane }, sessions), false)

  assert.deepEqual(await names(to), [[], []])
})

test('A session of an earlier version does not know its cookies, and neither does the next one', async (t) => {
  const { sessions, signIn, names } = open(t)
  const [from, to] = [await signIn('jane', {}), await signIn('jane')]

  assert.equal(await carryOver({ from, to, person: jane }, sessions), true)

  assert.deepEqual(await names(to), [[], undefined])
})
