import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Bends } from '../corpus/hostile-provider.ts'
import { startHostileWorld } from '../corpus/hostile-world.ts'

/** A session may need fewer requests than this to end. */
const many = 10

for (const [what, bends] of [
  ['of another person', { refreshIdToken: { set: { sub: 'attacker' } } }],
  ['of another issuer', { refreshIdToken: { set: { iss: 'https://evil.example' } } }],
  ['for another client', { refreshIdToken: { set: { aud: 'other' } } }],
  ['signed with an unknown key', { refreshIdToken: { sign: 'otherkey' } }],
  ['without a signature', { refreshIdToken: { sign: 'none' } }],
  ['that has expired', { refreshIdToken: { set: { exp: '$now-3600', iat: '$now-7200' } } }],
  ['that is not a JWT', { refreshToken: { set: { id_token: 'garbage' } } }],
  ['for another kind of access token', { refreshToken: { set: { token_type: 'DPoP' } } }],
] satisfies readonly (readonly [string, Bends])[])
  test(`A session ends after a few refreshes that return an ID Token ${what}`, async (t) => {
    const world = await startHostileWorld(t, { bends: { ...bends, noRotate: true, expiresIn: 60 } })
    const alice = world.browser()
    await world.signIn(alice)
    world.moveClock(61_000)

    const statuses: number[] = []
    for (let request = 0; request < many && !statuses.includes(303); request += 1) {
      statuses.push((await world.visit(alice)).status)
      world.moveClock(1_000)
    }

    assert.deepEqual(statuses, [503, 503, 303])
    assert.equal(world.provider.hits('token_refresh'), 3)
    world.provider.bends = {}
    assert.equal(await world.isSignedIn(alice), false, 'the session came back')
  })

for (const [what, refreshToken] of [
  ['content that is not JSON', { status: 200, body: 'maintenance' }],
  ['status 500', { status: 500, body: '' }],
  ['invalid_client', { status: 401, body: '{"error":"invalid_client"}' }],
] as const)
  test(`A session survives many refreshes with a failed response: ${what}`, async (t) => {
    const world = await startHostileWorld(t, { bends: { refreshToken, noRotate: true, expiresIn: 60 } })
    const alice = world.browser()
    await world.signIn(alice)
    world.moveClock(61_000)

    for (let request = 0; request < many; request += 1) {
      assert.ok((await world.visit(alice)).status >= 500)
      world.moveClock(1_000)
    }

    world.provider.bends = { noRotate: true }
    assert.equal(await world.isSignedIn(alice), true)
  })
