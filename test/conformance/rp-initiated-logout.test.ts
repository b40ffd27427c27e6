import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startHostileWorld, type HostileWorld } from '../corpus/hostile-world.ts'

// oidcc-client-rp-initiated-logout-rp-basic.

/** Signs in and out, returns the logout request to the provider, and comes back. */
async function signInAndOut(world: HostileWorld) {
  const alice = world.browser()
  await world.signIn(alice)
  assert.equal(await world.isSignedIn(alice), true)
  const { headers } = await world.signOut(alice)
  const asked = new URL(String(headers['location']))
  const comeBack = (state: string | undefined) => {
    const back = new URL(asked.searchParams.get('post_logout_redirect_uri') ?? '')
    if (state !== undefined) back.searchParams.set('state', state)
    return alice.send(back.href, { headers: { 'sec-fetch-site': 'cross-site' } })
  }
  return { alice, asked, comeBack }
}

test('oidcc-client-test-rp-init-logout', async (t) => {
  const world = await startHostileWorld(t)
  const { alice, asked, comeBack } = await signInAndOut(world)

  assert.equal(asked.origin + asked.pathname, `${world.provider.issuer}/end_session`)
  assert.equal(asked.searchParams.get('id_token_hint'), world.provider.lastToken['id_token'])
  assert.equal(asked.searchParams.get('post_logout_redirect_uri'), `${world.url}/.gatehouse/signed-out`)
  const state = asked.searchParams.get('state') ?? ''
  assert.ok(state.length >= 16)
  const { status, body } = await comeBack(state)
  assert.equal(status, 200)
  assert.match(body, /You are signed out\./)
  assert.equal(await world.isSignedIn(alice), false)
})

for (const [name, state] of [
  ['oidcc-client-test-rp-init-logout-other-state', 'another-state'],
  ['oidcc-client-test-rp-init-logout-no-state', undefined],
] as const)
  test(name, async (t) => {
    const world = await startHostileWorld(t)
    const { alice, comeBack } = await signInAndOut(world)

    assert.equal((await comeBack(state)).status, 200)
    assert.equal(await world.isSignedIn(alice), false)
  })
