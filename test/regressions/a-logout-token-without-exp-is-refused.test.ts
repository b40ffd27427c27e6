import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startHostileWorld } from '../corpus/hostile-world.ts'

test('A Logout Token without "exp" ends the session once, and is rejected when it is too old', async (t) => {
  const world = await startHostileWorld(t)
  const alice = world.browser()
  await world.signIn(alice)
  const form = `logout_token=${world.provider.logoutToken({ del: ['exp'] })}`

  assert.equal((await world.postLogoutToken(form)).status, 200)
  assert.equal(await world.isSignedIn(alice), false)

  await world.signIn(alice)
  assert.equal((await world.postLogoutToken(form)).status, 200)
  assert.equal(await world.isSignedIn(alice), true, 'a replayed token ended a new session')

  world.moveClock(160_000)
  assert.equal((await world.postLogoutToken(form)).status, 400)
  assert.equal(await world.isSignedIn(alice), true)
})
