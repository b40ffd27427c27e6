import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { type ApiWorld, audience, startApi } from '../support/api-world.ts'
import {
  ecKey,
  type Handler,
  hmacJwt,
  type Json,
  jwt,
  now,
  part,
  rsaKey,
  sendJson,
} from '../support/signing-provider.ts'
import { until } from '../support/until.ts'

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

const signed = { typ: 'token-introspection+jwt' }

/** Responds with a JWT (RFC 9701). */
function introspectWith(world: ApiWorld, jwtOf: (claims: Json) => string): void {
  const claims = { iss: world.provider.issuer, aud: 'orders', iat: now / 1000, token_introspection: active }
  world.provider.respond('/introspect', (_req, res) => {
    res.writeHead(200, { 'content-type': 'application/token-introspection+jwt' }).end(jwtOf(claims))
  })
}

test('A signed response is verified, with any algorithm that the key has', async (t) => {
  const world = await start(t)
  const key = ecKey('two')
  world.provider.publish(world.provider.key.jwk, key.jwk)

  introspectWith(world, (claims) => jwt(claims, world.provider.key, signed))
  assert.equal((await world.call('/api/x', 'one')).status, 200)
  introspectWith(world, (claims) => jwt(claims, key, signed))
  assert.equal((await world.call('/api/x', 'two')).status, 200)

  assert.deepEqual([world.seen[1]?.['x-sub'], world.seen[1]?.['x-client']], ['jane', 'cli'])
  introspectWith(world, (claims) => jwt({ ...claims, token_introspection: { active: false } }, key, signed))
  assert.equal((await world.call('/api/x', 'three')).status, 401)
})

test('A signed response that is not from this provider, or not for this client, admits nobody', async (t) => {
  const world = await start(t)
  const { key } = world.provider
  const stranger = rsaKey('one')
  const forged: readonly (readonly [what: string, jwtOf: (claims: Json) => string])[] = [
    ['a key of somebody else', (claims) => jwt(claims, stranger, signed)],
    ['its own key', (claims) => jwt(claims, stranger, { ...signed, jwk: stranger.jwk, jku: 'https://evil.example' })],
    ['alg none', (claims) => `${part({ ...signed, alg: 'none' })}.${part(claims)}.`],
    ['HMAC with the public key', (claims) => hmacJwt(claims, JSON.stringify(key.jwk), signed)],
    ['HMAC with the secret of the client', (claims) => hmacJwt(claims, 'correct horse battery staple', signed)],
    ['another typ', (claims) => jwt(claims, key, { typ: 'JWT' })],
    ['an access token', (claims) => jwt(claims, key, { typ: 'at+jwt' })],
    ['crit', (claims) => jwt(claims, key, { ...signed, crit: ['x'], x: 1 })],
    ['another client', (claims) => jwt({ ...claims, aud: 'billing' }, key, signed)],
    ['another issuer', (claims) => jwt({ ...claims, iss: 'https://id.example.com' }, key, signed)],
    ['an old copy', (claims) => jwt({ ...claims, iat: now / 1000 - 400 }, key, signed)],
    ['no iat', (claims) => jwt({ ...claims, iat: undefined }, key, signed)],
    ['a text', (claims) => jwt({ ...claims, token_introspection: 'active' }, key, signed)],
    [
      'active beside',
      ({ token_introspection: _, ...claims }) => jwt({ ...claims, ...active, aud: 'orders' }, key, signed),
    ],
    ['encrypted', () => 'e30.e30.e30.e30.e30'],
    ['garbage', () => '{"active":true}'],
  ]

  for (const [what, jwtOf] of forged) {
    introspectWith(world, jwtOf)
    assert.equal((await world.call('/api/x', what.replaceAll(' ', '-'))).status, 503, what)
  }
  assert.equal(world.seen.length, 0)
  const reasons = JSON.stringify(world.gateway.log)
  assert.match(reasons, /the JWT response to an introspection is refused: it is encrypted/)
})

test('A slow introspection is bounded, and does not keep other requests waiting', async (t) => {
  const world = await start(t)
  const waiting: (() => void)[] = []
  world.provider.respond('/introspect', (_req, res) => void waiting.push(() => sendJson(res, active)))
  const calls = [...Array(80).keys()].map((n) => world.call('/api/x', `token-${n}`))

  const refused = await Promise.race(calls)

  assert.equal(refused.status, 503)
  assert.match(JSON.stringify(world.gateway.log), /too many introspections are under way/)
  assert.equal((await world.send('/maybe/x')).status, 200)
  await until('the introspections have arrived', () => {
    for (const respond of waiting.splice(0)) respond()
    return world.seen.length >= 25
  })
  const statuses = (await Promise.all(calls)).map(({ status }) => status)
  assert.equal(statuses.filter((status) => status === 200).length, 24)
  assert.equal(statuses.filter((status) => status === 503).length, 56)
})
