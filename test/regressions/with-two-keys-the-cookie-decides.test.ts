import assert from 'node:assert/strict'
import { test } from 'node:test'
import { basic, makeKey, send, startKeyWorld } from '../support/key-world.ts'

test('With two keys, the cookie beside them does not decide, whatever else the rule accepts', async (t) => {
  const world = await startKeyWorld(t, {
    upstreamSettings: `keys: {}
    access_tokens: { audience: [orders] }
    rules:
      - { path: /tokens/*, keys: true, access_tokens: true }
      - { path: /keys/*, keys: true }
      - { path: /none/*, unauthenticated: 401 }`,
  })
  const jane = world.browser()
  await jane.get(`${world.url}/.gatehouse/sign-in?return_to=/.gatehouse/sessions`)
  const key = await makeKey(jane, world)
  const { authorization } = basic(key)
  const cookie = jane.cookieHeader

  for (const path of ['tokens', 'keys', 'none'])
    for (const two of [
      `Bearer ${key}, Bearer ${key}`,
      `${authorization}, ${authorization}`,
      `${authorization}, Bearer x`,
    ])
      assert.equal((await send(`${world.url}/${path}/x`, { authorization: two, cookie })).status, 401, `${path} ${two}`)

  // What is malformed and has no key is for the application.
  assert.notEqual((await send(`${world.url}/none/x`, { authorization: 'Bearer a, Bearer b', cookie })).status, 401)
})
