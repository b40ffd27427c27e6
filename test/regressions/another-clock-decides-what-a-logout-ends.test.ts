import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startSignals } from '../signals/world.ts'
import { startApi } from '../support/api-world.ts'
import { startRedis } from '../support/redis.ts'
import { now } from '../support/signing-provider.ts'
import { risc } from '../support/transmitter.ts'

for (const ahead of [-20, -5, 1, 5, 20])
  test(`With a clock of the provider that is ${ahead} s ahead, a Logout Token ends earlier access tokens, and no later one`, async (t) => {
    const redis = await startRedis(t)
    const world = await startApi(t, { store: `{ redis: { url: "${redis.url}" } }` })
    const byProvider = now / 1000 + ahead
    const statusOf = async (iat: number) => (await world.call('/api/x', world.token({ iat, exp: iat + 120 }))).status
    assert.deepEqual([await statusOf(byProvider - 2), await statusOf(byProvider)], [200, 200])

    const logout_token = world.provider.logoutToken({ iat: byProvider, exp: byProvider + 120 })
    const body = new URLSearchParams({ logout_token })
    assert.equal((await fetch(`${world.url}/.gatehouse/backchannel-logout`, { method: 'POST', body })).status, 200)

    assert.deepEqual([await statusOf(byProvider - 2), await statusOf(byProvider)], [401, 401])
    assert.equal(await statusOf(byProvider + 1), 200)
  })

const days = 24 * 60 * 60

test('A security event of six days ago does not end the session of a later sign-in', async (t) => {
  const world = await startSignals(t)
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const event = (iat: number) =>
    world.transmitter.push(
      world.url,
      world.transmitter.token({ iat, sub_id: world.person('jane'), events: { [`${risc}account-disabled`]: {} } }),
    )

  assert.equal((await event(Math.floor(Date.now() / 1000) - 6 * days)).status, 202)
  assert.equal(await world.hasSession(jane), true)

  assert.equal((await event(Math.floor(Date.now() / 1000))).status, 202)
  assert.equal(await world.hasSession(jane), false)
})

test('A security event that arrives late ends the sessions that began before it', async (t) => {
  const world = await startSignals(t, { session: 'idle_timeout: 3h' })
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  const iat = Math.floor(Date.now() / 1000) + 1
  world.moveClock(2 * 60 * 60 * 1000)
  const token = world.transmitter.token({
    iat,
    sub_id: world.person('jane'),
    events: { [`${risc}account-disabled`]: {} },
  })

  assert.equal((await world.transmitter.push(world.url, token)).status, 202)

  assert.equal(await world.hasSession(jane), false)
})
