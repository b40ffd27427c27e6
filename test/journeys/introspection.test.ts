import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { type ApiWorld, audience, startApi } from '../support/api-world.ts'
import { type Handler, type Json, sendJson } from '../support/signing-provider.ts'

/** Responds to introspections, and records their forms. */
function introspect(world: ApiWorld, response: Json): URLSearchParams[] {
  const forms: URLSearchParams[] = []
  world.provider.respond('/introspect', (req, res, body) => {
    assert.match(req.headers.authorization ?? '', /^Basic /)
    forms.push(new URLSearchParams(body))
    sendJson(res, response)
  })
  return forms
}

const start = (t: TestContext, settings = '') =>
  startApi(t, { accessTokens: `{ audience: [${audience}], check: introspection${settings} }` })
const active = { active: true, aud: audience, sub: 'jane', client_id: 'cli', scope: 'read', token_type: 'Bearer' }

test('An opaque token is introspected once, with the authentication of the client', async (t) => {
  const world = await start(t)
  const forms = introspect(world, active)

  const all = await Promise.all([1, 2, 3].map(() => world.call('/api/x', 'opaque-token')))

  assert.deepEqual(
    all.map(({ status }) => status),
    [200, 200, 200],
  )
  assert.deepEqual(
    forms.map((form) => [form.get('token'), form.get('token_type_hint')]),
    [['opaque-token', 'access_token']],
  )
  assert.deepEqual([world.seen[0]?.['x-sub'], world.seen[0]?.['x-client']], ['jane', 'cli'])
  assert.ok(!JSON.stringify([world.gateway.log, world.gateway.access]).includes('opaque-token'))
})

test('A revoked token is refused after introspection_cache at the latest', async (t) => {
  const world = await start(t)
  introspect(world, active)
  assert.equal((await world.call('/api/x', 'opaque')).status, 200)
  introspect(world, { active: false })

  world.move(29_999)
  assert.equal((await world.call('/api/x', 'opaque')).status, 200)
  world.move(1)
  assert.equal((await world.call('/api/x', 'opaque')).status, 401)
})

test('A response is not used after exp of the token, and with introspection_cache: 0s not at all', async (t) => {
  const world = await start(t)
  introspect(world, { ...active, exp: Date.UTC(2026, 0, 1) / 1000 + 5 })
  assert.equal((await world.call('/api/x', 'opaque')).status, 200)
  const again = introspect(world, { active: false })
  world.move(5000)
  assert.equal((await world.call('/api/x', 'opaque')).status, 401)
  assert.equal(again.length, 1)

  const always = await start(t, ', introspection_cache: 0s')
  const forms = introspect(always, active)
  await always.call('/api/x', 'opaque')
  await always.call('/api/x', 'opaque')
  assert.equal(forms.length, 2)
})

const failures: readonly (readonly [what: string, handler: Handler])[] = [
  ['an error', (_req, res) => void res.writeHead(500).end()],
  ['401 for the client', (_req, res) => sendJson(res, { error: 'invalid_client' }, 401)],
  ['HTML', (_req, res) => void res.writeHead(200, { 'content-type': 'text/html' }).end('<p>active</p>')],
  ['garbage', (_req, res) => void res.writeHead(200, { 'content-type': 'application/json' }).end('{"active":')],
  ['active as text', (_req, res) => sendJson(res, { ...active, active: 'true' })],
  ['a list', (_req, res) => sendJson(res, [active])],
  ['a redirect', (_req, res) => void res.writeHead(302, { location: '/elsewhere' }).end()],
  ['a closed connection', (req) => void req.socket.destroy()],
]
for (const [what, handler] of failures)
  test(`An introspection that fails admits nobody: ${what}`, async (t) => {
    const world = await start(t)
    world.provider.respond('/introspect', handler)

    for (const path of ['/api/x', '/maybe/x']) assert.equal((await world.call(path, 'opaque')).status, 503)
    assert.equal(world.seen.length, 0)
  })

test('A response for another audience, of another issuer, or about a refresh token admits nobody', async (t) => {
  const world = await start(t)
  for (const change of [
    { aud: 'billing' },
    { aud: undefined },
    { iss: 'https://id.example.com' },
    { token_type: 'refresh_token' },
  ]) {
    introspect(world, JSON.parse(JSON.stringify({ ...active, ...change })) as Json)
    assert.equal((await world.call('/api/x', 'opaque')).status, 401, JSON.stringify(change))
  }
})

test('After a Logout Token, the provider is asked again at once', async (t) => {
  const world = await start(t)
  introspect(world, { ...active, sid: 's-1' })
  assert.equal((await world.call('/api/x', 'opaque')).status, 200)
  introspect(world, { active: false })

  const { status } = await fetch(`${world.url}/.gatehouse/backchannel-logout`, {
    method: 'POST',
    body: new URLSearchParams({ logout_token: world.provider.logoutToken() }),
  })

  assert.equal(status, 200)
  assert.equal((await world.call('/api/x', 'opaque')).status, 401)
})
