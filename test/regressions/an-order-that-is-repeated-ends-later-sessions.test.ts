import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { GatewayError } from '../../src/core/errors.ts'
import { Keyring } from '../../src/core/seal.ts'
import { Attempt } from '../../src/session/live/attempt.ts'
import { Sessions, SessionsOfAudience } from '../../src/session/live/live-sessions.ts'
import { PendingEndings } from '../../src/session/live/pending-endings.ts'
import { sessionKey } from '../../src/session/record/record.ts'
import type { SessionStore } from '../../src/session/store/store.ts'
import { carryOut, endNow, type SignalParts } from '../../src/signals/carry-out.ts'
import { movableClock } from '../provider/expectations.ts'
import { memoryStore } from '../support/memory-store.ts'
import { risc } from '../support/transmitter.ts'
import { until } from '../support/until.ts'

const audience = 'orders'
const quiet = { debug() {}, info() {}, warn() {}, error() {}, announce() {} }
const email = 'jane@example.com'

/** Sessions in a store that rejects the first calls of a method. */
function start(t: TestContext, rejects: 'endSub' | 'endSid' | 'isMarked' | 'takeOnce', times = 1) {
  const clock = movableClock()
  const store: SessionStore = memoryStore({ maxSessions: 10, clock })
  t.after(() => store.close())
  const method = store[rejects].bind(store) as (...args: unknown[]) => Promise<never>
  let left = times
  store[rejects] = async (...args: unknown[]) => {
    if ((left -= 1) >= 0) throw new GatewayError('ERR_STORE_UNAVAILABLE', 'rejected')
    return method(...args)
  }
  const pending = new PendingEndings(quiet)
  t.after(() => pending.clear())
  const sessions = new Sessions({
    ...{ store, clock, log: quiet, audit: { record: () => {} }, pending, audiences: [audience] },
    keyring: new Keyring([Buffer.alloc(32, 1)]),
    config: { idleTimeoutMs: 3_600_000, absoluteTimeoutMs: 7_200_000, storeOutageGraceMs: 0 },
  })
  const create = (begun_at: number) => {
    const tokens = { access_token: 'a', obtained_at: 0, id_token: 'i' }
    const claims = { email, email_verified: true }
    return sessions.create(
      audience,
      { iss: 'i', sub: 'jane', sid: 'one', claims, userinfo_read_at: 0, tokens },
      begun_at,
    )
  }
  const signIn = async () => sessionKey((await create(clock.now())) ?? assert.fail('the sign-in was ended'))
  return { clock, store, sessions, pending, signIn, create }
}

for (const [of, rejects] of [
  ['a sub', 'endSub'],
  ['a sid', 'endSid'],
] as const)
  for (const times of [1, 3])
    test(`An order for ${of} that the store rejected (${times} times) ends no session of a later sign-in`, async (t) => {
      const { clock, sessions, pending, signIn, create } = start(t, rejects, times)
      const before = await signIn()
      const order = { audience, jti: 'order', exp: clock.now() / 1000 + 3_600 }
      const ordered = clock.now()
      const carryOut = () =>
        rejects === 'endSub'
          ? sessions.endings.endSub('jane', order, 'administrator')
          : sessions.endings.endSid('one', order, 'administrator')
      await assert.rejects(carryOut(), { code: 'ERR_STORE_UNAVAILABLE' })
      assert.equal(await sessions.find(before), undefined)
      clock.move(5_000)
      const later = await signIn()
      for (let n = 1; n < times; n += 1) await assert.rejects(carryOut(), { code: 'ERR_STORE_UNAVAILABLE' })
      assert.notEqual(await sessions.find(later), undefined, 'while the order is pending')

      await carryOut()

      assert.equal(pending.isEmpty, true)
      assert.equal(await sessions.find(before), undefined)
      assert.notEqual(await sessions.find(later), undefined)
      // A sign-in that was under way at the time of the order is still rejected. The gateway counts
      // the time since the order by its steady clock. It goes on while that of the test stands.
      assert.equal(await create(ordered - 60_000), undefined)
    })

test('The gateway repeats an order by itself, and the session of a later sign-in goes on', async (t) => {
  const { clock, sessions, pending, signIn } = start(t, 'endSub')
  const told: number[] = []
  sessions.endings.onLogoutOrder(({ at }) => void told.push(at))
  const ordered = clock.now()
  const before = await signIn()
  const order = { audience, jti: 'order', exp: clock.now() / 1000 + 3_600 }
  await assert.rejects(sessions.endings.endSub('jane', order, 'administrator'))
  clock.move(1)
  const later = await signIn()

  await until('the order is carried out', () => pending.isEmpty)

  assert.equal(await sessions.find(before), undefined)
  assert.notEqual(await sessions.find(later), undefined)
  // Access tokens end by this time too.
  assert.deepEqual(told, [ordered, ordered])
})

const revoke: typeof carryOut = (token, parts) => endNow({ kind: 'email', email }, token, parts)
for (const [what, repeated, rejects] of [
  ['A security event', carryOut, 'isMarked'],
  ['A security event that was carried out, but not marked,', carryOut, 'takeOnce'],
  ['A Global Token Revocation', revoke, 'isMarked'],
] as const)
  test(`${what} about an e-mail address that comes again after an error ends no session of a later sign-in`, async (t) => {
    const { clock, store, sessions, signIn } = start(t, rejects)
    const parts = {
      provider: {
        config: {
          ...{ issuer: 'i', renamedClaims: {}, clockToleranceMs: 5_000 },
          signals: { events: { 'account-disabled': 'end' }, trustedSubjects: ['email'] },
        },
      },
      ...{ store, clock, log: quiet, audit: { record: () => {} }, endings: sessions.endings },
      sessions: new SessionsOfAudience(audience, sessions),
    } as unknown as SignalParts
    const token = {
      ...{ iss: 'i', jti: 'event', iat: clock.now() / 1000, sub_id: { format: 'email', email } },
      events: new Map([[`${risc}account-disabled`, {}]]),
    }
    const before = await signIn()
    await assert.rejects(repeated(token, parts), { code: 'ERR_STORE_UNAVAILABLE' })
    clock.move(5_000)
    const later = await signIn()

    await repeated(token, parts)

    assert.equal(await sessions.find(before), undefined)
    assert.notEqual(await sessions.find(later), undefined)
  })

test('The time of an attempt is known although the store said its time only later', async (t) => {
  let steady = 1_000
  t.mock.method(performance, 'now', () => steady)
  const attempt = new Attempt(0)
  await assert.rejects(attempt.storeTime({ time: () => Promise.reject(new Error('unavailable')) }))

  steady += 60_000
  const store = { time: async () => ({ earliest: 99_999, latest: 100_000 }) }

  assert.equal(await attempt.storeTime(store), 40_000)
})
