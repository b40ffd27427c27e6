import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rsaKey } from '../support/signing-provider.ts'
import { startWorld, type World } from '../support/world.ts'

const anotherKey = rsaKey('another')

/**
 * Signs in, applies `change` at the provider and signs out. Returns the parameters that the browser
 * takes to the provider.
 */
async function signOutAfter(world: World, change: () => void | Promise<void>): Promise<URLSearchParams> {
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  // The cached keys of the gateway are out of date after this.
  world.moveClock(2 * 60_000)
  await change()
  const headers = { 'sec-fetch-site': 'same-origin' }
  const { headers: answered } = await jane.send(`${world.url}/.gatehouse/sign-out`, { headers })
  return new URL(String(answered['location'])).searchParams
}

test('The provider gets the client_id instead of an ID Token whose key it no longer publishes', async (t) => {
  const world = await startWorld(t)

  const parameters = await signOutAfter(world, () => {
    world.provider.fault('/oauth/jwks', (_req, res) => {
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ keys: [anotherKey.jwk] }))
    })
  })

  assert.deepEqual([...parameters.keys()].sort(), ['client_id', 'post_logout_redirect_uri', 'state'])
  assert.equal(parameters.get('client_id'), 'orders')
})

for (const [what, change] of [
  ['still publishes the key', () => {}],
  [
    'publishes another key beside it',
    (world) => world.provider.bend('/oauth/jwks', (body) => (body['keys'] as unknown[]).push(anotherKey.jwk)),
  ],
  [
    'does not give its keys',
    (world) => world.provider.fault('/oauth/jwks', (_req, res) => void res.writeHead(503).end()),
  ],
] satisfies readonly (readonly [string, (world: World) => unknown])[])
  test(`The provider gets the ID Token as a hint when it ${what}`, async (t) => {
    const world = await startWorld(t)

    const parameters = await signOutAfter(world, () => void change(world))

    assert.deepEqual([...parameters.keys()].sort(), ['id_token_hint', 'post_logout_redirect_uri', 'state'])
  })
