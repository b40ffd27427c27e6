import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { request } from 'undici'
import { startApi } from '../support/api-world.ts'
import { freePort } from '../support/free-port.ts'
import { startRedis } from '../support/redis.ts'
import { now } from '../support/signing-provider.ts'
import { until } from '../support/until.ts'
import { runReplica } from '../support/world.ts'

test('A Logout Token ends the access tokens in each process, also those of no session', async (t) => {
  const redis = await startRedis(t)
  const world = await startApi(t, { store: `{ redis: { url: "${redis.url}" } }` })
  const port = await freePort()
  const yaml = readFileSync(world.gateway.file, 'utf8').replace(/^listen: .*$/m, `listen: 127.0.0.1:${port}`)
  const other = await runReplica(t, yaml, { now: () => now })
  const statusAtOther = async (token: string) => {
    const response = await request(`${other.url}/api/x`, { headers: { authorization: `Bearer ${token}` } })
    await response.body.dump()
    return response.statusCode
  }
  const [ofSid, ofSub] = [world.token({ sub: 'john' }), world.token({ sid: 's-2' })]
  assert.deepEqual([await statusAtOther(ofSid), await statusAtOther(ofSub)], [200, 200])
  const logOut = (logout_token: string) =>
    fetch(`${world.url}/.gatehouse/backchannel-logout`, { method: 'POST', body: new URLSearchParams({ logout_token }) })

  assert.equal((await logOut(world.provider.logoutToken({ sub: undefined }))).status, 200)
  assert.equal((await logOut(world.provider.logoutToken({ sid: undefined, jti: 'another' }))).status, 200)

  await until('the tokens of the sid have ended', async () => (await statusAtOther(ofSid)) === 401)
  await until('the tokens of the sub have ended', async () => (await statusAtOther(ofSub)) === 401)
  assert.equal(await statusAtOther(world.token({ sub: 'john', sid: 's-2' })), 200)
})
