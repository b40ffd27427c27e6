import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { timeOfSeconds } from '../../src/core/clock.ts'
import { verifyIdToken } from '../../src/provider/id-token.ts'
import { verifyLogoutToken } from '../../src/provider/logout-token.ts'
import { expectationsOf } from '../provider/expectations.ts'
import { startApi } from '../support/api-world.ts'
import { startRedis } from '../support/redis.ts'
import { now, startSigningProvider } from '../support/signing-provider.ts'

const at = now / 1000

for (const exp of [now + 120_000, 1e15, 1e18, Number.MAX_VALUE])
  test(`A Logout Token with exp ${exp} ends its sessions, and its mark stays for hours at most`, async (t) => {
    const redis = await startRedis(t)
    const world = await startApi(t, { store: `{ redis: { url: "${redis.url}" } }` })
    const send = async (logout_token: string) => {
      const body = new URLSearchParams({ logout_token })
      return (await fetch(`${world.url}/.gatehouse/backchannel-logout`, { method: 'POST', body })).status
    }
    const logout_token = world.provider.logoutToken({ iat: at, exp })

    assert.deepEqual([await send(logout_token), await send(logout_token)], [200, 200])

    const admin = new Redis(redis.port, '127.0.0.1')
    t.after(() => admin.disconnect())
    const keys = await admin.keys('*')
    const remaining = await Promise.all(keys.map((key) => admin.pttl(key)))
    assert.ok(remaining.some((ms) => ms > 60 * 60_000))
    // A key without an expiry has -1.
    assert.ok(
      remaining.every((ms) => ms < 2 * 60 * 60_000),
      keys.map((key, n) => `${key} ${remaining[n]}`).join('\n'),
    )
  })

test('A Logout Token is remembered for as long as it would be accepted', async (t) => {
  const provider = await startSigningProvider(t)
  const expOf = async (exp: number) =>
    (await verifyLogoutToken(provider.logoutToken({ iat: at, exp }), expectationsOf(t, provider))).exp

  assert.equal(await expOf(at + 120), at + 120)
  assert.equal(await expOf(at + 86_400), at + 3_600)
})

test('The times of an ID Token are times that a Date can show', async (t) => {
  const provider = await startSigningProvider(t)
  const expected = { ...expectationsOf(t, provider), nonce: undefined }
  for (const time of [-1e300, -1, at * 1000, 1e300]) {
    const { session_expires_at, authentication } = await verifyIdToken(
      provider.idToken({ session_expiry: time, auth_time: Math.min(time, at) }),
      expected as never,
    )
    for (const ms of [session_expires_at, authentication.auth_time])
      assert.equal(typeof new Date(ms ?? NaN).toISOString(), 'string')
  }
  assert.deepEqual([timeOfSeconds(-1), timeOfSeconds(1.5), timeOfSeconds(Infinity)], [0, 1_500, Date.UTC(9999, 11, 31)])
})
