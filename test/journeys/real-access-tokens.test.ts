import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Configuration } from 'oidc-provider'
import { request } from 'undici'
import { audience } from '../support/api-world.ts'
import { withFeatures } from '../support/client-keys.ts'
import { freePort } from '../support/free-port.ts'
import { startRecordingApplication } from '../support/recording-application.ts'
import { jwt, now, startSigningProvider } from '../support/signing-provider.ts'
import { runReplica, startWorld, type World } from '../support/world.ts'

const robot = { id: 'robot', secret: 'a secret of the robot, long enough' }
const basic = {
  authorization: `Basic ${Buffer.from(`${robot.id}:${encodeURIComponent(robot.secret)}`).toString('base64')}`,
}

/** Resource indicators (RFC 8707), introspection, revocation, and a client that acts for itself. */
function issuing(accessTokenFormat: 'jwt' | 'opaque'): (base: Configuration) => Configuration {
  const features = {
    clientCredentials: { enabled: true },
    introspection: { enabled: true, allowedPolicy: () => true },
    revocation: { enabled: true, allowedPolicy: () => true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_ctx: unknown, resource: string) => ({
        ...{ scope: 'read write', audience: resource, accessTokenFormat, accessTokenTTL: 600 },
      }),
    },
  } as unknown as NonNullable<Configuration['features']>
  return (base) => {
    const adjusted = withFeatures(features)(base)
    const client = {
      ...{ client_id: robot.id, client_secret: robot.secret, grant_types: ['client_credentials'] },
      ...{ redirect_uris: [], response_types: [] },
    }
    return { ...adjusted, clients: [...(adjusted.clients ?? []), client] } as Configuration
  }
}

async function startReal(t: TestContext, check: 'jwt' | 'introspection') {
  const { url, seen } = await startRecordingApplication(t)
  const world = await startWorld(t, {
    upstream: url,
    headers: '{ X-Remote-User: sub, X-Client: client_id }',
    providerSettings: `resource: [${audience}]`,
    upstreamSettings: `access_tokens: { audience: [${audience}], check: ${check} }
    rules:
      - { path: /api/machines/*, access_tokens: true, require: { claim: client_id, any_of: [robot] } }
      - { path: /api/people/*, access_tokens: true, require: { not: { claim: client_id, any_of: [robot] } } }
      - { path: /api/*, access_tokens: { scopes: [read] } }
      - { path: /*, access_tokens: true }`,
    provider: { adjust: issuing(check === 'jwt' ? 'jwt' : 'opaque') },
  })
  return { world, seen, call: (path: string, token: string) => callWith(world, path, token) }
}

async function callWith({ url }: World, path: string, token: string) {
  const response = await request(url + path, { headers: { authorization: `Bearer ${token}` } })
  return { status: response.statusCode, body: await response.body.text() }
}

async function post(url: string, form: Record<string, string>): Promise<Record<string, unknown>> {
  const response = await fetch(url, { method: 'POST', headers: basic, body: new URLSearchParams(form) })
  const text = await response.text()
  assert.equal(response.status, 200, text)
  return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>)
}

async function robotToken({ provider }: World, scope = 'read', resource = audience): Promise<string> {
  const form = { grant_type: 'client_credentials', resource, scope }
  return String((await post(`${provider.issuer}/oauth/token`, form))['access_token'])
}

test('A client that acts for itself calls the API with a JWT of oidc-provider, and rules tell it from people', async (t) => {
  const { world, seen, call } = await startReal(t, 'jwt')
  const token = await robotToken(world)
  let ofJane = ''
  world.provider.bend('/oauth/token', (body) => void (ofJane = String(body['access_token'])))
  await world.browser().get(`${world.url}/page`)

  const machine = await call('/api/machines/x', token)

  assert.equal(machine.status, 200, machine.body)
  assert.deepEqual([seen.at(-1)?.['x-remote-user'], seen.at(-1)?.['x-client']], [robot.id, robot.id])
  assert.equal((await call('/api/people/x', token)).status, 403)
  assert.equal((await call('/api/people/x', ofJane)).status, 200)
  assert.equal((await call('/api/machines/x', ofJane)).status, 403)
  assert.equal((await call('/api/x', await robotToken(world, 'write'))).status, 403)
  assert.equal(
    (await call('/api/machines/x', await robotToken(world, 'read', 'https://other.example.com'))).status,
    401,
  )
})

test('oidc-provider is asked about an opaque token, and a revoked one is refused after the time of the cache', async (t) => {
  const { world, call } = await startReal(t, 'introspection')
  const token = await robotToken(world)
  assert.doesNotMatch(token, /\./)
  const first = await call('/api/machines/x', token)
  assert.equal(first.status, 200, first.body)

  await post(`${world.provider.issuer}/oauth/revoke`, { token })

  assert.equal((await call('/api/machines/x', token)).status, 200)
  world.moveClock(30_000)
  assert.equal((await call('/api/machines/x', token)).status, 401)
  // A token that is for no API: that of the session.
  assert.equal((await call('/api/machines/x', 'unknown')).status, 401)
})

test('The token of one provider is accepted for its upstream only', async (t) => {
  const application = await startRecordingApplication(t)
  const [staff, partners] = await Promise.all([startSigningProvider(t), startSigningProvider(t)])
  const url = `http://127.0.0.1:${await freePort()}`
  const upstream = (path: string, providers: string) =>
    `{ path: ${path}, url: "${application.url.origin}", providers: [${providers}], access_tokens: { audience: [${audience}] }, rules: [{ path: "${path}/*", access_tokens: true }] }`
  const client = 'client_id: orders, client_secret: { env: CLIENT_SECRET }'
  const gateway = await runReplica(
    t,
    `version: 1
listen: ${url.slice('http://'.length)}
external_url: ${url}
providers:
  staff: { issuer: "${staff.issuer}", ${client} }
  partners: { issuer: "${partners.issuer}", ${client} }
session: { keys: [{ env: SESSION_KEY }], store: memory }
upstreams:
  one: ${upstream('/one', 'staff')}
  two: ${upstream('/two', 'partners')}
  both: ${upstream('/both', 'staff, partners')}
`,
    { now: () => now },
  )
  // Both providers sign with the same key, so that only the issuer decides.
  const tokenOf = ({ issuer, key }: typeof staff) =>
    jwt({ iss: issuer, aud: audience, sub: 'jane', iat: now / 1000, exp: now / 1000 + 60 }, key, { typ: 'at+jwt' })
  const status = async (path: string, provider: typeof staff) => {
    const response = await request(gateway.url + path, { headers: { authorization: `Bearer ${tokenOf(provider)}` } })
    await response.body.dump()
    return response.statusCode
  }

  for (const [path, expected] of [
    ['/one/x', [200, 401]],
    ['/two/x', [401, 200]],
    ['/both/x', [200, 200]],
  ] as const)
    assert.deepEqual([await status(path, staff), await status(path, partners)], expected, path)
})
