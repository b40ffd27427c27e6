import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Bends } from '../corpus/hostile-provider.ts'
import { startHostileWorld, type HostileWorld } from '../corpus/hostile-world.ts'

// oidcc-client-refreshtoken-test-plan. An access token that has expired is refreshed by the next
// request.
async function afterExpiry(
  t: Parameters<typeof startHostileWorld>[0],
  bends: Bends,
): Promise<{ readonly world: HostileWorld; readonly isSignedIn: boolean }> {
  const world = await startHostileWorld(t, { bends: { ...bends, expiresIn: 60 } })
  const alice = world.browser()
  await world.signIn(alice)
  assert.equal(await world.isSignedIn(alice), true)
  world.moveClock(61_000)
  return { world, isSignedIn: await world.isSignedIn(alice) }
}

test('oidcc-client-test-refresh-token', async (t) => {
  const { world, isSignedIn } = await afterExpiry(t, {})

  assert.equal(isSignedIn, true)
  assert.deepEqual([world.provider.hits('token_refresh'), world.provider.hits('userinfo')], [1, 2])
})

test('oidcc-client-test-refresh-token-invalid-issuer', async (t) => {
  const { isSignedIn, world } = await afterExpiry(t, { refreshIdToken: { set: { iss: 'https://other.example/' } } })
  assert.equal(isSignedIn, false)
  assert.equal(world.provider.hits('userinfo'), 1, 'userinfo was asked with a token that must not be accepted')
})

test('oidcc-client-test-refresh-token-invalid-sub', async (t) => {
  const { isSignedIn, world } = await afterExpiry(t, { refreshIdToken: { set: { sub: 'somebody-else' } } })
  assert.equal(isSignedIn, false)
  assert.equal(world.provider.hits('userinfo'), 1, 'userinfo was asked with a token that must not be accepted')
  assert.ok(!world.seen.some(({ headers }) => headers['x-user-sub'] === 'somebody-else'))
})

test('oidcc-client-test-refresh-token, whose responses have no expires_in', async (t) => {
  const withoutLifetime = { del: ['expires_in'] }
  const world = await startHostileWorld(t, { bends: { token: withoutLifetime, refreshToken: withoutLifetime } })
  const alice = world.browser()
  await world.signIn(alice)

  // The gateway assumes a lifetime of one hour for an access token without expires_in. The session
  // stays active.
  for (let minutes = 0; minutes < 60; minutes += 20) {
    assert.equal(await world.isSignedIn(alice), true)
    assert.equal(world.provider.hits('token_refresh'), 0)
    world.moveClock(20 * 60_000)
  }

  assert.equal(await world.isSignedIn(alice), true)
  assert.deepEqual([world.provider.hits('token_refresh'), world.provider.hits('userinfo')], [1, 2])
})
