import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorld } from '../support/world.ts'

for (const [what, path, status] of [
  ['a page with access: optional', '/echo', 200],
  ["the gateway's own session URL", '/.gatehouse/session', 401],
] as const)
  test(`A response from ${what} expires the cookie of an ended session`, async (t) => {
    const world = await startWorld(t, {
      upstreamSettings: `rules: [{ path: /echo, access: optional }]
    logout: { cookies: [JSESSIONID] }`,
    })
    const jane = world.browser()
    await jane.get(`${world.url}/`)
    const names = () => [...jane.cookies.keys()].filter((name) => name === 'gatehouse' || name === 'JSESSIONID')
    assert.equal((await jane.fetch(world.url + path)).headers['set-cookie'], undefined)
    assert.deepEqual(names().toSorted(), ['JSESSIONID', 'gatehouse'])
    await world.provider.endSession(world.provider.sessions()[0]?.sid ?? '')

    const response = await jane.fetch(world.url + path)

    assert.equal(response.status, status)
    assert.deepEqual(names(), [])
    assert.equal((await jane.fetch(world.url + path)).headers['set-cookie'], undefined)
  })
