import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Keyring } from '../../src/core/seal.ts'
import { carryOver } from '../../src/session/live/carry-over.ts'
import { Sessions } from '../../src/session/live/live-sessions.ts'
import { LogoutJobs } from '../../src/session/live/logout-jobs.ts'
import { PendingEndings } from '../../src/session/live/pending-endings.ts'
import { sessionKey, type SessionRecord } from '../../src/session/record/record.ts'
import { memoryStore } from '../support/memory-store.ts'

const clock = { now: () => Date.UTC(2026, 0, 1) }
const quiet = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }
const jane = { iss: 'https://id.example.com', sub: 'jane' }
const cookie = { name: 'JSESSIONID', value: '1', domain: 'a.example.com', hostOnly: true as const, path: '/' }

function open(t: TestContext) {
  const store = memoryStore({ maxSessions: 10, clock })
  t.after(() => store.close())
  const keyring = new Keyring([Buffer.alloc(32, 1)])
  const shop = { name: 'shop', logout: { call: {} }, headers: [], rules: [] }
  const sessions = new Sessions({
    ...{ store, keyring, clock, audiences: ['orders'], log: quiet, audit: { record() {} } },
    config: { idleTimeoutMs: 60_000, absoluteTimeoutMs: 3_600_000, storeOutageGraceMs: 0 },
    pending: new PendingEndings(quiet),
    jobs: new Map([['orders', new LogoutJobs({ keyring, audience: 'orders', upstreams: [shop as never] })]]),
  })
  const { endings } = sessions
  const signIn = async () => {
    const tokens = { access_token: 'a', obtained_at: 0, id_token: 'i' }
    const id = await sessions.create(
      'orders',
      { ...jane, tokens, claims: {}, userinfo_read_at: 0, browser_cookies: [] },
      0,
    )
    assert.ok(id)
    return sessionKey(id)
  }
  const change = async (key: Awaited<ReturnType<typeof signIn>>, changes: Partial<SessionRecord>) => {
    const stored = (await sessions.read(key)) ?? assert.fail()
    await sessions.replace(stored, { ...stored.record, ...changes })
  }
  return { store, sessions, endings, signIn, change }
}

for (const when of ['before the cookies move', 'while the cookies move'] as const)
  test(`A new session that ends ${when} leaves the cookies and the logout call with the previous session`, async (t) => {
    const { store, sessions, endings, signIn, change } = open(t)
    const [from, to] = [await signIn(), await signIn()]
    await change(from, { cookies: { shop: [cookie] } })
    if (when === 'before the cookies move') await endings.endOne(to, 'administrator')
    else {
      const replace = t.mock.method(sessions, 'replace')
      replace.mock.mockImplementationOnce(async (previous, record) => {
        replace.mock.restore()
        await endings.endOne(to, 'administrator')
        return sessions.replace(previous, record)
      })
    }

    assert.equal(await carryOver({ from, to, person: jane }, sessions), false)

    assert.deepEqual((await sessions.read(from))?.record.cookies, { shop: [cookie] })
    await endings.endOne(from, 'administrator')
    assert.equal((await store.jobs.open(from, 1_000)).kind, 'due')
  })
