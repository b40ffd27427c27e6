import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { secrets, startWorld } from '../support/world.ts'

test('A Logout Token that arrives during a reload ends the session for good', async (t) => {
  const world = await startWorld(t, { store: 'redis' })
  const [replica] = world.replicas
  const loaded = loadConfig(replica?.file ?? '', secrets)
  assert.ok(replica && loaded.ok)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const [session] = world.provider.sessions()
  const logout_token = await world.provider.logoutToken({ sid: session?.sid ?? '', sub: 'jane' })
  world.redis?.freeze()
  const obeyed = world.postLogoutToken({ logout_token })
  // After this, everything that was sent before has been received.
  assert.equal((await fetch(`${world.url}/.gatehouse/signed-out`)).status, 200)

  await replica.gateway.reload(loaded.config)
  world.redis?.resume()

  assert.equal((await obeyed).status, 200)
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 401)
})
