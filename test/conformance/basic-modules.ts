import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Bends } from '../corpus/hostile-provider.ts'
import { startHostileWorld, type HostileWorld } from '../corpus/hostile-world.ts'

/** A module of the basic plan: the fault of the provider, and whether a sign-in may succeed. */
export interface Module {
  readonly name: string
  readonly bends?: Bends
  readonly signsIn: boolean
  /**
   * The response of UserInfo is wrong. Any other sign-in that fails never requests UserInfo.
   */
  readonly asksUserinfo?: true
  readonly also?: (world: HostileWorld) => void
}

/** In the order of the plan `oidcc-client-basic-certification-test-plan`. */
export const basicModules: readonly Module[] = [
  {
    name: 'oidcc-client-test',
    signsIn: true,
    also: ({ provider }) => {
      assert.deepEqual([provider.hits('token'), provider.hits('userinfo')], [1, 1])
      assert.deepEqual(provider.violations, [])
    },
  },
  {
    name: 'oidcc-client-test-invalid-iss',
    bends: { idToken: { set: { iss: 'https://other.example/' } } },
    signsIn: false,
  },
  { name: 'oidcc-client-test-missing-sub', bends: { idToken: { del: ['sub'] } }, signsIn: false },
  { name: 'oidcc-client-test-invalid-aud', bends: { idToken: { set: { aud: 'another-client' } } }, signsIn: false },
  { name: 'oidcc-client-test-missing-iat', bends: { idToken: { del: ['iat'] } }, signsIn: false },
  {
    name: 'oidcc-client-test-kid-absent-single-jwks',
    bends: { idToken: { header: { del: ['kid'] } }, jwks: { mode: 'single' } },
    signsIn: true,
  },
  {
    // A rejection is also permitted, because the gateway tries one key after the other.
    name: 'oidcc-client-test-kid-absent-multiple-jwks',
    bends: { idToken: { header: { del: ['kid'] } }, jwks: { mode: 'nokid' }, publish: ['b', 'a'] },
    signsIn: true,
  },
  { name: 'oidcc-client-test-idtoken-sig-rs256', bends: { idToken: { key: 'a' } }, signsIn: true },
  // Acceptance is also permitted in the code flow.
  { name: 'oidcc-client-test-idtoken-sig-none', bends: { idToken: { sign: 'none' } }, signsIn: false },
  { name: 'oidcc-client-test-invalid-sig-rs256', bends: { idToken: { sign: 'flip' } }, signsIn: false },
  {
    name: 'oidcc-client-test-userinfo-invalid-sub',
    bends: { userinfo: { set: { sub: 'somebody-else' } } },
    signsIn: false,
    asksUserinfo: true,
  },
  { name: 'oidcc-client-test-nonce-invalid', bends: { idToken: { set: { nonce: 'another' } } }, signsIn: false },
  {
    name: 'oidcc-client-test-scope-userinfo-claims',
    signsIn: true,
    also: ({ provider, seen }) => {
      for (const scope of ['openid', 'profile', 'email']) assert.ok(provider.asked['scope']?.split(' ').includes(scope))
      assert.equal(seen.at(-1)?.headers['x-user-email'], 'alice@example.com')
    },
  },
  {
    name: 'oidcc-client-test-client-secret-basic',
    signsIn: true,
    also: ({ provider: { lastTokenRequest } }) => {
      assert.match(lastTokenRequest?.authorization ?? '', /^Basic /)
      assert.equal(lastTokenRequest?.form.has('client_secret'), false)
    },
  },
]

/** Signs in, and checks whether the person is signed in and which page is shown. */
export async function runModule(
  t: TestContext,
  { bends, signsIn, asksUserinfo, also }: Module,
  settings = '',
): Promise<HostileWorld> {
  const world = await startHostileWorld(t, { bends, settings })
  const alice = world.browser()

  const { status } = await world.signIn(alice)

  assert.equal(await world.isSignedIn(alice), signsIn)
  assert.ok(signsIn ? status === 303 : status >= 400 && status !== 500, `the callback responded with ${status}`)
  assert.equal(world.provider.hits('userinfo'), signsIn || asksUserinfo ? 1 : 0)
  also?.(world)
  return world
}
