import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seconds } from '../corpus/hostile-tokens.ts'
import { startHostileWorld } from '../corpus/hostile-world.ts'

for (const [what, authTime, isSignedIn] of [
  ['an hour ago', () => seconds() - 3600, false],
  ['now', () => seconds(), true],
] as const)
  test(`With max_age 60, a person who last authenticated ${what} is ${isSignedIn ? '' : 'not '}signed in`, async (t) => {
    const world = await startHostileWorld(t, {
      settings: 'authorization_params: { max_age: "60" }',
      bends: { idToken: { set: { auth_time: authTime() } } },
    })
    const alice = world.browser()

    await world.signIn(alice)

    assert.equal(world.provider.asked['max_age'], '60')
    assert.equal(await world.isSignedIn(alice), isSignedIn)
  })
