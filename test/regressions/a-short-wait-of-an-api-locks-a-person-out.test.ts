import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { type ApiServer, graph, startApi } from '../support/claims-apis.ts'
import { startWorld } from '../support/world.ts'

const tooMany = (seconds: number): Parameters<typeof startApi>[1] => {
  return (_req, res) => res.writeHead(429, { 'retry-after': String(seconds) }).end()
}

/** The groups of a person are at an API, and a rule reads them. */
async function startWithApi(t: TestContext, respond: Parameters<typeof startApi>[1], timeout = '10s') {
  const api: ApiServer = await startApi(t, respond)
  const world = await startWorld(t, {
    providerSettings: `timeout: ${timeout}
  claims_from: [{ url: "${api.origin}/me", select: "value[].id", as: groups }]`,
    upstreamSettings: 'rules: [{ path: /admin/*, require: { claim: groups, any_of: [admins] } }]',
  })
  const jane = world.browser()
  const open = async () => (await jane.get(`${world.url}/admin/`)).status
  return { api, world, open }
}

test('A sign-in waits for a moment when an API asks for it, and the person is not denied', async (t) => {
  const { api, open } = await startWithApi(t, tooMany(1))
  const answer = tooMany(1)
  api.respond((...exchange) => (api.requests.length === 1 ? answer : graph(['admins']))(...exchange))

  assert.equal(await open(), 200)
  assert.equal(api.requests.length, 2)
})

test('A sign-in does not wait for longer than twice the timeout', async (t) => {
  const { api, open } = await startWithApi(t, tooMany(2), '1900ms')

  assert.equal(await open(), 403)
  assert.equal(api.requests.length, 2)
})

for (const seconds of [10, 60])
  test(`After an API asked for ${seconds} s, the first request then gets the claim`, async (t) => {
    const { api, world, open } = await startWithApi(t, tooMany(seconds), '2s')
    assert.equal(await open(), 403)
    api.respond(graph(['admins']))
    assert.equal(await open(), 403, 'not before')

    world.moveClock(seconds * 1000)

    assert.equal(await open(), 200)
    assert.equal(api.requests.length, 2)
  })

test('A request does not wait for long for a claim that could not be read, while its API does not respond', async (t) => {
  const { api, world } = await startWithApi(t, tooMany(60), '10s')
  const jane = world.browser()
  await jane.get(`${world.url}/`)
  let isGivenUp = false
  api.respond((_req, res) => void res.once('close', () => (isGivenUp = true)))
  world.moveClock(60_000)

  assert.equal((await jane.fetch(`${world.url}/`)).status, 200)

  assert.deepEqual([api.requests.length, isGivenUp], [2, false])
})
