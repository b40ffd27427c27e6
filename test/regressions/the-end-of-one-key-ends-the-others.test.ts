import assert from 'node:assert/strict'
import { test } from 'node:test'
import { goOn } from '../support/form-browser.ts'
import { accessTokenSeconds, basic, makeKey, send, signedIn, startKeyWorld } from '../support/key-world.ts'
import { formsOf, press, sendForm } from '../support/session-page.ts'
import { until } from '../support/until.ts'

// The provider has one grant for all tokens of a session, and revokes it with any of them.

test('A key that is not made ends neither the session nor the other keys of its person', async (t) => {
  const world = await startKeyWorld(t, {
    upstreamSettings: 'keys: { per_person: 1 }\n    rules: [{ path: /echo, keys: true }]',
  })
  const jane = await signedIn(world)
  const form = formsOf(await jane.get(world.page)).find(({ button }) => button === 'Make a key') ?? assert.fail()
  const make = async () =>
    goOn(jane, await sendForm(jane, { ...form, fields: { ...form.fields, name: 'one', upstream: 'orders' } }))
  const [made, refused] = [await make(), await make()]
  assert.deepEqual([made.status, refused.status], [200, 403])

  // The provider gets the refresh after a revocation.
  world.moveClock((accessTokenSeconds + 1) * 1000)
  const key = /ghk_[\w-]{64}/.exec(made.body)?.[0] ?? ''
  assert.equal((await send(`${world.url}/echo`, basic(key))).status, 200)
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200)
  assert.equal(world.provider.hits('/oauth/revoke'), 0)
})

test('The end of one key ends no other, and that of the last one revokes the grant', async (t) => {
  const world = await startKeyWorld(t)
  const jane = await signedIn(world)
  const key = await makeKey(jane, world)
  await makeKey(jane, world, { name: 'backup' })

  await press(jane, await jane.get(world.page), /^End the key backup$/)
  world.moveClock((accessTokenSeconds + 1) * 1000)
  assert.equal((await send(`${world.url}/echo`, basic(key))).status, 200)
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 200)
  assert.equal(world.provider.hits('/oauth/revoke'), 0)

  await press(jane, await jane.get(world.page), /^End the key/)
  await until('the token is revoked', () => world.provider.hits('/oauth/revoke') === 1)
})
