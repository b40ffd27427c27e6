import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorld } from '../support/world.ts'

test('A logout at one replica does not keep the others from clearing what the browser has of the session', async (t) => {
  const world = await startWorld(t, { store: 'redis', replicas: 2 })
  const jane = world.browser()
  await jane.get(`${world.url}/orders`)
  const headers = { cookie: jane.cookieHeader }
  await world.provider.endSession(world.provider.sessions()[0]?.sid ?? '')

  for (const { url } of world.replicas)
    for (const path of ['/orders', '/.gatehouse/session']) {
      const response = await jane.fetch(`${url}${path}`, { headers })
      assert.equal(response.headers['clear-site-data'], '"cache"', `${url}${path}`)
    }
})
