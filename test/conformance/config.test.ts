import assert from 'node:assert/strict'
import { test } from 'node:test'
import { application, startHostileWorld } from '../corpus/hostile-world.ts'
import { replacePauses } from '../support/pauses.ts'
import { runModule } from './basic-modules.ts'

// oidcc-client-config-certification-test-plan.

test('oidcc-client-test-discovery-openid-config', async (t) => {
  const { provider } = await runModule(t, { name: '', signsIn: true })
  assert.ok(provider.hits('discovery') > 0)
})

test('oidcc-client-test-discovery-jwks-uri-keys', async (t) => {
  const { provider } = await runModule(t, { name: '', signsIn: true })
  assert.equal(provider.hits('jwks'), 1)
})

test('oidcc-client-test-discovery-issuer-mismatch', async (t) => {
  replacePauses(t, { waitForDependenciesMs: 300 })
  const world = await startHostileWorld(t, { bends: { discovery: { set: { issuer: 'https://other.example' } } } })

  const { status } = await world.browser().get(world.url + application)

  assert.equal(status, 503)
  assert.equal(world.provider.hits('authorize'), 0)
})

test('oidcc-client-test-idtoken-sig-none', async (t) => {
  await runModule(t, { name: '', bends: { idToken: { sign: 'none' } }, signsIn: false })
})

test('oidcc-client-test-signing-key-rotation-just-before-signing', async (t) => {
  const world = await startHostileWorld(t)
  const [alice, again] = [world.browser(), world.browser()]
  await world.signIn(alice)
  world.provider.bends = { rotateKeys: 'before-sign' }

  await world.signIn(again)

  assert.equal(await world.isSignedIn(again), true)
  assert.equal(world.provider.hits('jwks'), 2)
})

test('oidcc-client-test-signing-key-rotation', async (t) => {
  const world = await startHostileWorld(t)
  const [alice, again] = [world.browser(), world.browser()]
  await world.signIn(alice)
  world.provider.rotateTo('b')

  await world.signIn(again)

  assert.deepEqual([await world.isSignedIn(alice), await world.isSignedIn(again)], [true, true])
  assert.equal(world.provider.hits('jwks'), 2)
})
