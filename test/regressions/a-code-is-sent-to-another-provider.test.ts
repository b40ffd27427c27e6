import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { startProvider } from '../support/provider.ts'
import { secrets, startWorld } from '../support/world.ts'

test('A sign-in that began before a reload with another provider sends its code to neither provider', async (t) => {
  const world = await startWorld(t)
  const [replica] = world.replicas
  assert.ok(replica)
  const callback = '/.gatehouse/callback'
  const other = await startProvider(t, {
    client_id: 'orders',
    client_secret: secrets.CLIENT_SECRET,
    redirect_uris: [`${world.url}${callback}`],
    post_logout_redirect_uris: [],
    backchannel_logout_uri: `${world.url}/.gatehouse/backchannel-logout`,
  })
  const jane = world.browser()
  const back = await jane.until(`${world.url}/echo`, callback)
  writeFileSync(replica.file, readFileSync(replica.file, 'utf8').replace(world.provider.issuer, other.issuer))
  const loaded = loadConfig(replica.file, secrets)
  assert.ok(loaded.ok)
  await replica.gateway.reload(loaded.config)

  const response = await jane.send(back)

  assert.equal(response.status, 400)
  assert.match(response.body, /return_to=%2Fecho/, 'she can start again where she was')
  assert.deepEqual([world.provider.hits('/oauth/token'), other.hits('/oauth/token')], [0, 0])
  assert.equal((await jane.get(`${world.url}/echo`)).status, 200)
  assert.equal(other.sessions().length, 1)
})
