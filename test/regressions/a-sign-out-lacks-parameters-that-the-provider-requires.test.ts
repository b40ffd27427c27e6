import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startWorld } from '../support/world.ts'

const fromThisSite = { headers: { 'sec-fetch-site': 'same-origin' } }

/** What Amazon Cognito gets by default: see docs/providers/cognito.md. */
const asCognito =
  "end_session_params: { client_id: '{client_id}', logout_uri: '{post_logout_redirect_uri}', id_token_hint: null, post_logout_redirect_uri: null, state: null }"

test('The sign-out sends the parameters of end_session_params, and leaves out those that are null', async (t) => {
  const world = await startWorld(t, { providerSettings: asCognito })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)

  const first = await jane.send(`${world.url}/.gatehouse/sign-out`, fromThisSite)

  const { searchParams } = new URL(String(first.headers['location']))
  assert.deepEqual(Object.fromEntries(searchParams), {
    client_id: 'orders',
    logout_uri: `${world.url}/.gatehouse/signed-out`,
  })
})

test('Where the provider returns no state, another person signs in after the sign-out', async (t) => {
  const world = await startWorld(t, { providerSettings: asCognito })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  await jane.send(`${world.url}/.gatehouse/sign-out?then=sign-in&return_to=%2Forders`, fromThisSite)

  const returned = await jane.send(`${world.url}/.gatehouse/signed-out`, {
    headers: { 'sec-fetch-site': 'cross-site' },
  })

  assert.equal(returned.status, 303)
  assert.match(String(returned.headers['location']), /\/sign-in\?prompt=login&return_to=%2Forders$/)
})

test('A script learns that the provider ends no session without a browser, and the provider gets no ID Token', async (t) => {
  const world = await startWorld(t, { providerSettings: asCognito })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)

  const response = await jane.fetch(`${world.url}/.gatehouse/sign-out`, { method: 'POST' })

  assert.deepEqual(JSON.parse(response.body), { signed_out: true, provider: 'unsupported' })
  assert.equal(world.provider.hits('/oauth/logout'), 0)
})
