import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TokenBend } from '../corpus/hostile-tokens.ts'
import { startHostileWorld } from '../corpus/hostile-world.ts'

// oidcc-client-back-channel-logout-rp-basic: the Logout Token arrives while the browser is at the
// end-session endpoint. A second browser with the same provider session shows whether the token was
// accepted.
const modules: readonly (readonly [name: string, token: TokenBend, isObeyed: boolean])[] = [
  ['oidcc-client-test-rp-backchannel-rpinitlogout', {}, true],
  ['oidcc-client-test-rp-backchannel-rpinitlogout-alg-none', { sign: 'none' }, false],
  ['oidcc-client-test-rp-backchannel-rpinitlogout-no-event', { del: ['events'] }, false],
  ['oidcc-client-test-rp-backchannel-rpinitlogout-with-nonce', { set: { nonce: 'a-nonce' } }, false],
  // A key of the key set, but with another algorithm than the registered one.
  ['oidcc-client-test-rp-backchannel-rpinitlogout-wrong-alg', { key: 'ec' }, false],
  ['oidcc-client-test-rp-backchannel-rpinitlogout-wrong-aud', { set: { aud: 'another-client' } }, false],
  [
    'oidcc-client-test-rp-backchannel-rpinitlogout-wrong-event',
    { set: { events: { 'http://schemas.openid.net/event/another': {} } } },
    false,
  ],
  ['oidcc-client-test-rp-backchannel-rpinitlogout-wrong-iss', { set: { iss: 'https://other.example/' } }, false],
]

for (const [name, token, isObeyed] of modules)
  test(name, async (t) => {
    const world = await startHostileWorld(t)
    const [alice, sameSession] = [world.browser(), world.browser()]
    await world.signIn(alice)
    await world.signIn(sameSession)
    const { headers } = await world.signOut(alice)
    assert.ok(world.provider.published.includes('ec'))

    const response = await world.postLogoutToken(
      `logout_token=${encodeURIComponent(world.provider.logoutToken(token))}`,
    )

    assert.equal(response.status, isObeyed ? 200 : 400)
    assert.match(response.headers.get('cache-control') ?? '', /no-store/)
    assert.equal(await world.isSignedIn(sameSession), !isObeyed)
    const back = new URL(String(headers['location'])).searchParams
    const { status } = await alice.send(`${back.get('post_logout_redirect_uri')}?state=${back.get('state')}`)
    assert.equal(status, 200)
    assert.equal(await world.isSignedIn(alice), false)
  })
