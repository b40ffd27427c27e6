import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { type ApiWorld, startApi } from '../support/api-world.ts'
import { withFeatures } from '../support/client-keys.ts'
import { exchangeGrant, withTokenExchange } from '../support/exchanging-provider.ts'
import { startRecordingApplication } from '../support/recording-application.ts'
import { type Handler, type Json, sendJson } from '../support/signing-provider.ts'
import { startWorld, type World } from '../support/world.ts'

const sends = 'headers: { Authorization: { bearer: exchanged_token }, X-Sub: sub }'

/** A gateway with the real provider, and an application that records what it gets. */
async function startReal(t: TestContext, audience = 'orders-api') {
  const { url, seen } = await startRecordingApplication(t)
  const world = await startWorld(t, {
    upstream: url,
    session: 'idle_timeout: 8h',
    headers: '{ Authorization: { bearer: exchanged_token }, X-Sub: sub }',
    upstreamSettings: `token_exchange: { audience: ${audience} }
    rules: [{ path: /public/*, access: public }, { path: /own/*, headers: { Authorization: { bearer: id_token } } }]`,
    provider: {
      adjust: withFeatures({}, { grant_types: ['authorization_code', 'refresh_token', exchangeGrant] }),
      extend: withTokenExchange('orders-api'),
    },
  })
  return { world, seen, grants: grantsAt(world) }
}

/** Records the grant types of the requests to the token endpoint. */
function grantsAt({ provider }: World): (string | null)[] {
  const grants: (string | null)[] = []
  provider.fault('/oauth/token', (req, _res, pass) => {
    let body = ''
    req.on('data', (part: Buffer) => (body += part.toString()))
    req.on('end', () => grants.push(new URLSearchParams(body).get('grant_type')))
    pass()
  })
  return grants
}

const exchanges = (grants: readonly (string | null)[]) => grants.filter((grant) => grant === exchangeGrant).length

test('The application gets a token for its audience, which is exchanged once and renewed in time', async (t) => {
  const { world, seen, grants } = await startReal(t)
  const jane = world.browser()

  await jane.get(`${world.url}/page`)
  await Promise.all([1, 2, 3].map(() => jane.send(`${world.url}/page`)))

  const token = String(seen.at(-1)?.authorization).replace('Bearer ', '')
  const { aud, sub } = decodeJwt(token)
  assert.deepEqual([aud, sub, decodeProtectedHeader(token).typ], ['orders-api', 'jane', 'at+jwt'])
  assert.equal(seen.at(-1)?.['x-sub'], 'jane')
  assert.equal(exchanges(grants), 1)
  world.moveClock(269_000)
  await jane.send(`${world.url}/page`)
  assert.equal(exchanges(grants), 1)
  world.moveClock(2000)
  await jane.send(`${world.url}/page`)
  assert.equal(exchanges(grants), 2)
  assert.notEqual(seen.at(-1)?.authorization, `Bearer ${token}`)
  assert.ok(!JSON.stringify(world.replicas.map(({ log, access }) => [log, access])).includes(token))
})

test('Requests that need no exchanged token cause no exchange', async (t) => {
  const { world, seen, grants } = await startReal(t)
  const jane = world.browser()

  assert.equal((await world.browser().send(`${world.url}/public/x`)).status, 200)
  await jane.get(`${world.url}/own/x`)

  assert.deepEqual([seen[0]?.authorization, exchanges(grants)], [undefined, 0])
  assert.match(String(seen.at(-1)?.authorization), /^Bearer ey/)
})

test('A refused exchange has its own code and a hint, and the application never gets the access token', async (t) => {
  const { world, seen, grants } = await startReal(t, 'another-api')
  const jane = world.browser()

  const page = await jane.get(`${world.url}/page`)
  await jane.send(`${world.url}/page`)

  assert.equal(page.status, 502)
  assert.match(page.body, /issues no token for this application/)
  assert.equal(seen.length, 0)
  // A refusal is not asked about again at once.
  assert.equal(exchanges(grants), 1)
  const failures = world.replicas[0]?.log.filter(({ message }) => message === 'token_exchange.failed')
  assert.equal(failures?.length, 1)
  assert.match(String(failures?.[0]?.fields['reason']), /invalid_target: check token_exchange\.audience/)
})

const start = (
  t: TestContext,
  exchange = '{ audience: orders-api, scopes: [orders, items], resource: "urn:orders" }',
) =>
  startApi(t, {
    headers: sends.replace('headers: ', ''),
    upstream: `token_exchange: ${exchange}`,
  })

function respondWith(world: ApiWorld, response: Json, status = 200): void {
  world.provider.respond('/token', (_req, res) => sendJson(res, response, status))
}

test('The token of a caller is exchanged with the parameters of RFC 8693', async (t) => {
  const world = await start(t)
  respondWith(world, { access_token: 'for-orders', token_type: 'bearer', expires_in: 60 })
  const token = world.token()

  assert.equal((await world.call('/api/x', token)).status, 200)

  assert.equal(world.seen[0]?.authorization, 'Bearer for-orders')
  assert.deepEqual(Object.fromEntries(world.provider.lastTokenRequest?.form ?? []), {
    grant_type: exchangeGrant,
    subject_token: token,
    subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    audience: 'orders-api',
    resource: 'urn:orders',
    scope: 'orders items',
  })
  assert.match(world.provider.lastTokenRequest?.authorization ?? '', /^Basic /)
  // Another token is another caller.
  respondWith(world, { access_token: 'for-john', token_type: 'Bearer', expires_in: 60 })
  assert.equal((await world.call('/api/x', world.token({ sub: 'john' }))).status, 200)
  assert.deepEqual([world.seen[1]?.authorization, world.seen[1]?.['x-sub']], ['Bearer for-john', 'john'])
})

const failures: readonly (readonly [what: string, status: number, handler: Handler])[] = [
  ['500', 503, (_req, res) => void res.writeHead(500).end()],
  ['429', 503, (_req, res) => sendJson(res, { error: 'slow_down' }, 429)],
  ['a closed connection', 503, (req) => void req.socket.destroy()],
  ['unauthorized_client', 502, (_req, res) => sendJson(res, { error: 'unauthorized_client' }, 400)],
  ['invalid_scope', 502, (_req, res) => sendJson(res, { error: 'invalid_scope' }, 400)],
  ['invalid_request', 502, (_req, res) => sendJson(res, { error: 'invalid_request' }, 400)],
  ['invalid_client', 502, (_req, res) => sendJson(res, { error: 'invalid_client' }, 401)],
  ['HTML', 502, (_req, res) => void res.writeHead(200, { 'content-type': 'text/html' }).end('<p>token</p>')],
  ['no token', 502, (_req, res) => sendJson(res, { token_type: 'bearer' })],
  ['a bound token', 502, (_req, res) => sendJson(res, { access_token: 'x', token_type: 'DPoP' })],
  ['a token that is no access token', 502, (_req, res) => sendJson(res, { access_token: 'x', token_type: 'N_A' })],
  ['two lines', 502, (_req, res) => sendJson(res, { access_token: 'x\r\nX-Sub: root', token_type: 'bearer' })],
  [
    'a refresh token',
    502,
    (_req, res) =>
      sendJson(res, {
        ...{ access_token: 'x', token_type: 'N_A' },
        issued_token_type: 'urn:ietf:params:oauth:token-type:refresh_token',
      }),
  ],
]

test('Without a usable token, the application gets no request', async (t) => {
  const world = await start(t)
  for (const [what, status, handler] of failures) {
    world.provider.respond('/token', handler)
    assert.equal((await world.call('/api/x', world.token({ jti: what }))).status, status, what)
  }
  assert.equal(world.seen.length, 0)
  const written = JSON.stringify(world.gateway.log)
  assert.ok(!written.includes('X-Sub: root'))
})

test('When the provider is back, the next request gets its token', async (t) => {
  const world = await start(t)
  const token = world.token()
  world.provider.respond('/token', (req) => void req.socket.destroy())
  assert.equal((await world.call('/api/x', token)).status, 503)

  respondWith(world, { access_token: 'for-orders', token_type: 'bearer', expires_in: 60 })

  assert.equal((await world.call('/api/x', token)).status, 200)
})
