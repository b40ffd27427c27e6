import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { startApi } from '../support/api-world.ts'
import { secrets } from '../support/world.ts'

test('After a reload, the access tokens of a session that has ended are still refused', async (t) => {
  const world = await startApi(t)
  const token = world.token()
  assert.equal((await world.call('/api/x', token)).status, 200)
  await fetch(`${world.url}/.gatehouse/backchannel-logout`, {
    method: 'POST',
    body: new URLSearchParams({ logout_token: world.provider.logoutToken() }),
  })
  assert.equal((await world.call('/api/x', token)).status, 401)

  const loaded = loadConfig(world.gateway.file, secrets)
  assert.ok(loaded.ok)
  await world.gateway.gateway.reload(loaded.config)

  assert.equal((await world.call('/api/x', token)).status, 401)
  assert.equal((await world.call('/api/x', world.token({ jti: 'never seen before' }))).status, 401)
  assert.equal((await world.call('/api/x', world.token({ sid: 's-2' }))).status, 200)
})
