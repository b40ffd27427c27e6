import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { request } from 'undici'
import { loadConfig } from '../../src/config/load.ts'
import { audience } from '../support/api-world.ts'
import { withFeatures } from '../support/client-keys.ts'
import { exchangeGrant, withTokenExchange } from '../support/exchanging-provider.ts'
import { replacePauses } from '../support/pauses.ts'
import { openEventStream } from '../support/streams.ts'
import { until } from '../support/until.ts'
import { type Replica, secrets, startWorld, type World } from '../support/world.ts'

/** An application that records what it gets, with event streams that do not end. */
async function startApplication(t: TestContext) {
  const seen: IncomingMessage['headers'][] = []
  const server = createServer((req, res) => {
    seen.push(req.headers)
    if (/events$/.test(req.url ?? ''))
      res.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: first\n\n')
    else res.end('ok')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), seen }
}

/** What oidc-provider can do. People get opaque access tokens for the API. */
const features = {
  introspection: { enabled: true, allowedPolicy: () => true },
  revocation: { enabled: true, allowedPolicy: () => true },
  resourceIndicators: {
    enabled: true,
    useGrantedResource: () => true,
    getResourceServerInfo: (_ctx: unknown, resource: string) => ({
      ...{ scope: 'read', audience: resource, accessTokenFormat: 'opaque', accessTokenTTL: 600 },
    }),
  },
} as unknown as Parameters<typeof withFeatures>[0]

/** Gateways that exchange the tokens of people and of agents at the real provider. */
async function start(
  t: TestContext,
  options: { readonly replicas?: number; readonly format?: 'jwt' | 'opaque'; readonly isForAgents?: boolean } = {},
) {
  const { replicas = 1, format = 'opaque', isForAgents = false } = options
  const application = await startApplication(t)
  const rules = isForAgents
    ? `access_tokens: { audience: [${audience}], check: introspection }
    rules: [{ path: /api/*, access_tokens: true }, { path: /page, headers: {} }]`
    : ''
  const world = await startWorld(t, {
    upstream: application.url,
    ...(replicas > 1 && { store: 'redis', replicas }),
    headers: '{ Authorization: { bearer: exchanged_token } }',
    ...(isForAgents && { providerSettings: `resource: [${audience}]` }),
    upstreamSettings: `token_exchange: { audience: orders-api }\n    ${rules}`,
    provider: {
      adjust: withFeatures(features, { grant_types: ['authorization_code', 'refresh_token', exchangeGrant] }),
      extend: withTokenExchange('orders-api', { format }),
    },
  })
  const tokens = () => [...new Set(application.seen.flatMap(({ authorization = [] }) => authorization))].map(bearer)
  return { world, seen: application.seen, tokens, jane: world.browser() }
}

const bearer = (authorization: string) => authorization.replace(/^Bearer /, '')

/** Asks the provider about tokens, as their client. */
async function areActive({ provider }: World, tokens: readonly string[]): Promise<unknown[]> {
  const post = async (token: string) => {
    const response = await atProvider(provider.issuer, 'introspection_endpoint', token)
    return ((await response.json()) as { readonly active: unknown }).active
  }
  return Promise.all(tokens.map(post))
}

async function atProvider(issuer: string, endpoint: string, token: string): Promise<Response> {
  const metadata = (await (await fetch(`${issuer}/.well-known/openid-configuration`)).json()) as Record<string, string>
  const credentials = `orders:${encodeURIComponent(secrets.CLIENT_SECRET)}`
  return fetch(metadata[endpoint] ?? assert.fail(), {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` },
    body: new URLSearchParams({ token }),
  })
}

const haveEnded = (world: World, tokens: readonly string[]) =>
  until('the provider says that they are not active', async () => {
    const active = await areActive(world, tokens)
    return active.every((each) => each === false)
  })

const outcomes = ({ log }: Pick<Replica, 'log'>) =>
  log.flatMap(({ message, fields }) =>
    message === 'provider.revocation' && fields['upstream'] === 'orders' ? [fields['outcome']] : [],
  )

/** A Logout Token, of which the provider has ended nothing itself. */
async function logOut({ provider, postLogoutToken }: World, at?: Replica) {
  const [session = assert.fail()] = provider.sessions()
  return postLogoutToken({ logout_token: await provider.logoutToken(session) }, at)
}

test('When a session ends, the tokens and the streams that came from it end, on every replica', async (t) => {
  const { world, tokens, jane } = await start(t, { replicas: 2 })
  await jane.get(`${world.url}/page`)
  const streams = await Promise.all(
    world.replicas.map(({ url }) => openEventStream(t, `${url}/events`, jane.cookieHeader)),
  )
  const [first, second] = tokens()
  assert.deepEqual(await areActive(world, tokens()), [true, true])
  assert.notEqual(first, second)

  assert.equal((await logOut(world)).status, 200)

  await Promise.all(streams.map(({ ended }) => ended))
  await haveEnded(world, tokens())
  await until('each replica has revoked its own', () => world.replicas.every((one) => outcomes(one).length > 0))
  assert.deepEqual(world.replicas.map(outcomes), [['revoked'], ['revoked']])
})

test('A sign-out does not wait for the revocation, which is repeated after a 503', async (t) => {
  replacePauses(t, { retryRevocationsMs: 5 })
  const { world, tokens, jane } = await start(t)
  await jane.get(`${world.url}/page`)
  let attempts = 0
  let form = ''
  world.provider.fault('/oauth/revoke', (req, res, pass) => {
    attempts += 1
    if (attempts < 3) return void res.writeHead(503, { 'retry-after': '0' }).end()
    req.on('data', (chunk: Buffer) => (form += chunk.toString()))
    pass()
  })

  assert.equal((await logOut(world)).status, 200)

  await haveEnded(world, tokens())
  const [gateway = assert.fail()] = world.replicas
  await until('it is recorded', () => outcomes(gateway).length > 0)
  assert.deepEqual([attempts, outcomes(gateway)], [3, ['revoked']])
  assert.equal(new URLSearchParams(form).get('token_type_hint'), 'access_token')
})

for (const [what, status, outcome, attempts] of [
  ['cannot be reached', 0, 'unreachable', 4],
  ['responds with 429', 429, 'unreachable', 4],
  ['refuses the client', 401, 'refused', 1],
] as const)
  test(`When the provider ${what}, the outcome of the revocation is ${outcome}`, async (t) => {
    replacePauses(t, { retryRevocationsMs: 5 })
    const { world, tokens, jane } = await start(t)
    await jane.get(`${world.url}/page`)
    let tried = 0
    world.provider.fault('/oauth/revoke', (req, res) => {
      tried += 1
      if (status === 0) req.socket.destroy()
      else res.writeHead(status, { 'content-type': 'application/json' }).end('{ "error": "invalid_client" }')
    })

    assert.equal((await logOut(world)).status, 200)

    const [gateway = assert.fail()] = world.replicas
    await until('it is recorded', () => outcomes(gateway).length > 0)
    assert.deepEqual([tried, outcomes(gateway)], [attempts, [outcome]])
    const counted = gateway.metrics.read('gatehouse_provider_logouts_total')?.cells
    assert.deepEqual(
      counted?.map(({ labels, values }) => [...labels, ...values]),
      [['revocation', outcome, 1]],
    )
    assert.deepEqual(await areActive(world, tokens()), [true])
    assert.equal(JSON.stringify(gateway.log).includes(tokens()[0] ?? ''), false)
  })

test('A provider that revokes no such token is asked once', async (t) => {
  const { world, jane } = await start(t, { format: 'jwt' })
  await jane.get(`${world.url}/page`)

  assert.equal((await logOut(world)).status, 200)

  const [gateway = assert.fail()] = world.replicas
  await until('it is recorded', () => outcomes(gateway).length > 0)
  assert.deepEqual([outcomes(gateway), world.provider.hits('/oauth/revoke')], [['unsupported'], 1])
})

test('After a reload, the tokens of an earlier configuration still end', async (t) => {
  const { world, seen, tokens, jane } = await start(t)
  await jane.get(`${world.url}/page`)
  const [gateway = assert.fail()] = world.replicas
  const loaded = loadConfig(gateway.file, secrets)
  assert.ok(loaded.ok)

  await gateway.gateway.reload(loaded.config)
  await jane.send(`${world.url}/page`)
  assert.deepEqual([seen.length, tokens().length], [2, 1], 'the token is still used')
  await logOut(world)

  await haveEnded(world, tokens())
})

test('A revocation that waits for another attempt is tried once more before the gateway stops', async (t) => {
  const { world, tokens, jane } = await start(t)
  await jane.get(`${world.url}/page`)
  const mend = world.provider.fault('/oauth/revoke', (_req, res) => res.writeHead(503, { 'retry-after': '600' }).end())
  await logOut(world)
  await until('it was tried', () => world.provider.hits('/oauth/revoke') === 1)
  mend()

  await world.replicas[0]?.stop()

  assert.deepEqual(await areActive(world, tokens()), [false])
  assert.deepEqual(outcomes(world.replicas[0] as Replica), ['revoked'])
})

test('When a gateway stops, the tokens of sessions that go on are not revoked', async (t) => {
  const { world, tokens, jane } = await start(t)
  await jane.get(`${world.url}/page`)

  await world.replicas[0]?.stop()

  assert.deepEqual(await areActive(world, tokens()), [true])
})

/** An access token of Jane, as an agent has it, and its requests. */
async function startAgent(t: TestContext, replicas: number) {
  const started = await start(t, { replicas, isForAgents: true })
  const { world, jane } = started
  let token = ''
  world.provider.bend('/oauth/token', (body) => {
    if (body['id_token'] !== undefined) token = String(body['access_token'])
  })
  await jane.get(`${world.url}/page`)
  started.seen.length = 0
  const as = { authorization: `Bearer ${token}` }
  const statusAt = async ({ url }: Pick<Replica, 'url'>) => {
    const response = await request(`${url}/api/x`, { headers: as })
    await response.body.dump()
    return response.statusCode
  }
  const streams = await Promise.all(world.replicas.map(({ url }) => openEventStream(t, `${url}/api/events`, as)))
  assert.deepEqual(await areActive(world, started.tokens()), Array(replicas).fill(true))
  return { ...started, token, streams, statusAt }
}

test('When a Logout Token ends the tokens of an agent, the tokens that came from them end, on every replica', async (t) => {
  // The check of every five seconds would find it too.
  replacePauses(t, { checkStreamsMs: 600_000 })
  const { world, tokens, streams } = await startAgent(t, 2)
  const [, other = assert.fail()] = world.replicas

  const response = await world.postLogoutToken(
    { logout_token: await world.provider.logoutToken({ sub: 'jane' }) },
    other,
  )

  assert.equal(response.status, 200)
  await Promise.all(streams.map(({ ended }) => ended))
  await haveEnded(world, tokens())
})

test('When the provider has revoked the token of an agent, the tokens and streams that came from it end', async (t) => {
  replacePauses(t, { checkStreamsMs: 20 })
  const { world, token, tokens, streams, statusAt } = await startAgent(t, 1)
  await atProvider(world.provider.issuer, 'revocation_endpoint', token)
  const held = tokens()
  assert.deepEqual(await areActive(world, held), [true], 'the provider ends the token alone')

  world.moveClock(31_000)
  assert.equal(await statusAt(world), 401)

  await Promise.all(streams.map(({ ended }) => ended))
  await haveEnded(world, held)
})
