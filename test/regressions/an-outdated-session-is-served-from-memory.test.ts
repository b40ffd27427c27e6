import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Keyring } from '../../src/core/seal.ts'
import { Sessions } from '../../src/session/live/live-sessions.ts'
import { PendingEndings } from '../../src/session/live/pending-endings.ts'
import { sessionKey } from '../../src/session/record/record.ts'
import type { SessionStore, StoreNotice } from '../../src/session/store/store.ts'
import { memoryStore } from '../support/memory-store.ts'

const clock = { now: () => Date.now() }
const quiet = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }
const person = {
  iss: 'https://id.example.com',
  sub: 'jane',
  sid: 'one',
  tokens: { access_token: 'a', obtained_at: 0, id_token: 'i' },
  claims: { sub: 'jane', groups: ['admins'] },
  userinfo_read_at: 0,
}

/** A replica whose store replies. Before the reply arrives, a notice of another replica arrives. */
function replica(overtaking: { by?: (store: SessionStore) => Promise<StoreNotice> }) {
  const store = memoryStore({ maxSessions: 10, clock })
  let tell = (_: StoreNotice) => {}
  const overtaken =
    <A extends unknown[], T>(ask: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      const response = await ask(...args)
      const by = overtaking.by
      delete overtaking.by
      if (by !== undefined) tell(await by(store))
      return response
    }
  const far: SessionStore = Object.assign(Object.create(null) as object, {
    create: overtaken((session: Parameters<SessionStore['create']>[0]) => store.create(session)),
    replace: overtaken((...[key, sealed, version]: Parameters<SessionStore['replace']>) =>
      store.replace(key, sealed, version),
    ),
    read: (...args: Parameters<SessionStore['read']>) => store.read(...args),
    touch: (...args: Parameters<SessionStore['touch']>) => store.touch(...args),
    onNotice: (listener: typeof tell) => {
      tell = listener
      return () => {}
    },
    receivesNotices: () => true,
  }) as SessionStore
  const sessions = new Sessions({
    store: far,
    keyring: new Keyring([Buffer.alloc(32, 1)]),
    audiences: ['orders'],
    config: { idleTimeoutMs: 60_000, absoluteTimeoutMs: 600_000, storeOutageGraceMs: 0 },
    clock,
    log: quiet,
    audit: { record() {} },
    pending: new PendingEndings(quiet),
  })
  return { sessions, store }
}

test('A session whose end was missed while it was created is not served from memory', async () => {
  const overtaking: Parameters<typeof replica>[0] = {}
  const { sessions } = replica(overtaking)
  overtaking.by = () => Promise.resolve({ kind: 'resumed' })

  const id = await sessions.create('orders', person, clock.now())

  assert.ok(id)
  assert.equal(sessions.findInMemory(sessionKey(id)), undefined)
})

test('A record that another replica has replaced in the meantime is not served from memory', async () => {
  const overtaking: Parameters<typeof replica>[0] = {}
  const { sessions } = replica(overtaking)
  const id = await sessions.create('orders', person, clock.now())
  assert.ok(id)
  const key = sessionKey(id)
  const seen = sessions.findInMemory(key)
  assert.ok(seen)
  overtaking.by = () => Promise.resolve({ kind: 'changed', key })

  await sessions.replace(seen, { ...seen.record, userinfo_read_at: 1 })

  assert.equal(sessions.findInMemory(key), undefined)
})
