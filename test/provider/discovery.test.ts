import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Discovery } from '../../src/provider/discovery.ts'
import { createOutbound, type Outbound } from '../../src/provider/outbound.ts'
import {
  paths,
  sendJson,
  silent,
  startSigningProvider,
  type Handler,
  type Json,
  type SigningProvider,
} from '../support/signing-provider.ts'
import { movableClock, type MovableClock } from './expectations.ts'

/** How many questions to the provider are under way. */
let asking = 0

function discoveryOf(t: TestContext, provider: SigningProvider, clock: MovableClock = movableClock()): Discovery {
  const { fetch, close } = createOutbound(provider.config)
  const outbound: Outbound = {
    fetch: (url, options) => {
      asking += 1
      return fetch(url, options).finally(() => (asking -= 1))
    },
    close,
  }
  const discovery = new Discovery(provider.config, { outbound, clock, log: silent })
  t.after(async () => {
    discovery.close()
    await outbound.close()
  })
  return discovery
}

const announce =
  (change: (metadata: Json) => Json): ((provider: SigningProvider) => Handler) =>
  ({ metadata }) =>
  (_req, res) =>
    sendJson(res, change(metadata))

for (const [what, change] of [
  ['another issuer', (all) => ({ ...all, issuer: 'https://id.example.com' })],
  ['its issuer with a slash at the end', (all) => ({ ...all, issuer: `${String(all['issuer'])}/` })],
  ['its issuer in capitals', (all) => ({ ...all, issuer: String(all['issuer']).replace('http', 'HTTP') })],
  ['no issuer', (all) => ({ ...all, issuer: undefined })],
  ['an issuer that is a number', (all) => ({ ...all, issuer: 7 })],
  ['no authorization_endpoint', (all) => ({ ...all, authorization_endpoint: undefined })],
  ['no token_endpoint', (all) => ({ ...all, token_endpoint: undefined })],
  ['no userinfo_endpoint', (all) => ({ ...all, userinfo_endpoint: undefined })],
  ['no jwks_uri', (all) => ({ ...all, jwks_uri: undefined })],
  ['a script for an authorization_endpoint', (all) => ({ ...all, authorization_endpoint: 'javascript:alert(1)' })],
  ['a path for a token_endpoint', (all) => ({ ...all, token_endpoint: '/token' })],
  ['a file for a jwks_uri', (all) => ({ ...all, jwks_uri: 'file:///etc/passwd' })],
  ['a list for a userinfo_endpoint', (all) => ({ ...all, userinfo_endpoint: ['http://127.0.0.1/userinfo'] })],
  ['a script for an end_session_endpoint', (all) => ({ ...all, end_session_endpoint: 'data:text/html,bye' })],
  [
    'only algorithms that prove nothing',
    (all) => ({ ...all, id_token_signing_alg_values_supported: ['none', 'HS256'] }),
  ],
  [
    'a choice of algorithms without the usual one',
    (all) => ({ ...all, id_token_signing_alg_values_supported: ['ES256', 'PS256'] }),
  ],
] satisfies readonly (readonly [string, (metadata: Json) => Json])[])
  test(`a provider is rejected when its metadata has ${what}`, async (t) => {
    const provider = await startSigningProvider(t)
    provider.respond(paths.discovery, announce(change)(provider))

    await assert.rejects(discoveryOf(t, provider).provider(), { code: 'ERR_PROVIDER_UNAVAILABLE', status: 503 })
  })

for (const [what, settings, change, message] of [
  [
    'no endpoint for the pushed requests that it requires',
    {},
    { require_pushed_authorization_requests: true },
    /no pushed_authorization_request_endpoint/,
  ],
  [
    'no endpoint for the pushed requests that are configured',
    { pushedAuthorizationRequests: 'always' },
    {},
    /no pushed_authorization_request_endpoint/,
  ],
  [
    'a script for that endpoint',
    { pushedAuthorizationRequests: 'always' },
    { pushed_authorization_request_endpoint: 'javascript:alert(1)' },
    /pushed_authorization_request_endpoint is not an/,
  ],
  [
    'pushed requests only, which are switched off',
    { pushedAuthorizationRequests: 'never' },
    { require_pushed_authorization_requests: true },
    /requires pushed authorization requests: remove/,
  ],
  ['signed requests only', {}, { require_signed_request_object: true }, /requires signed authorization requests: set/],
  [
    'a path for an endpoint of a certificate',
    { clientCertificate: { cert: '', key: '' } },
    { mtls_endpoint_aliases: { token_endpoint: '/token' } },
    /mtls_endpoint_aliases\.token_endpoint is not an/,
  ],
] as const)
  test(`a provider with ${what} is not used`, async (t) => {
    const provider = await startSigningProvider(t, settings)
    provider.respond(paths.discovery, announce((all) => ({ ...all, ...change }))(provider))

    await assert.rejects(discoveryOf(t, provider).provider(), { code: 'ERR_PROVIDER_UNAVAILABLE', message })
  })

test('an endpoint that is not needed may be invalid', async (t) => {
  const provider = await startSigningProvider(t)
  const change = { pushed_authorization_request_endpoint: 'http', mtls_endpoint_aliases: { token_endpoint: '/t' } }
  provider.respond(paths.discovery, announce((all) => ({ ...all, ...change }))(provider))

  const { isPushed } = await discoveryOf(t, provider).provider()

  assert.equal(isPushed, false)
})

for (const path of ['/application/o/orders/', '/realms/main'])
  test(`the metadata is fetched below the issuer as it is written: ${path}`, async (t) => {
    const provider = await startSigningProvider(t)
    const issuer = `${provider.config.issuer}${path}`
    const document = `${path.replace(/\/$/, '')}/.well-known/openid-configuration`
    provider.respond(document, (_req, res) => sendJson(res, { ...provider.metadata, issuer }))

    const found = await discoveryOf(t, { ...provider, config: { ...provider.config, issuer } }).provider()

    assert.equal(found.configuration.serverMetadata().issuer, issuer)
  })

for (const [announced, message] of [
  [['none', 'HS256'], /signs with none, HS256 only, .*: configure it to sign the tokens of this client with RS256$/],
  [['ES256', 'PS256'], /set provider.id_token_signed_response_alg to one of PS256, ES256$/],
] as const)
  test(`what to do is said when a provider signs with ${announced.join(' and ')}`, async (t) => {
    const provider = await startSigningProvider(t)
    const change = (all: Json) => ({ ...all, id_token_signing_alg_values_supported: announced })
    provider.respond(paths.discovery, announce(change)(provider))

    await assert.rejects(discoveryOf(t, provider).provider(), { message })
  })

for (const [what, response] of [
  ['an error', (_req, res) => res.writeHead(500).end()],
  ['nothing that exists', (_req, res) => res.writeHead(404).end()],
  ['a page', (_req, res) => res.writeHead(200, { 'content-type': 'text/html' }).end('<html></html>')],
  ['broken JSON', (_req, res) => res.writeHead(200, { 'content-type': 'application/json' }).end('{"issuer":')],
  ['a list', (_req, res) => sendJson(res, [])],
  ['five megabytes', (_req, res) => sendJson(res, { pad: 'x'.repeat(5 * 1024 * 1024) })],
  ['half an answer', (_req, res) => void res.writeHead(200, { 'content-length': 100 }).write('{', () => res.destroy())],
  ['a hung-up telephone', (req) => req.socket.destroy()],
] satisfies readonly (readonly [string, Handler])[])
  test(`a provider whose discovery response is ${what} is tried again, and then found`, async (t) => {
    const provider = await startSigningProvider(t)
    const clock = movableClock()
    const discovery = discoveryOf(t, provider, clock)
    provider.respond(paths.discovery, response)
    await assert.rejects(discovery.provider(), { code: 'ERR_PROVIDER_UNAVAILABLE' })

    provider.respond(paths.discovery)
    clock.move(1_000)

    assert.equal((await discovery.provider()).jwks_uri, `${provider.issuer}/jwks`)
  })

for (const [what, response, message] of [
  ['a status', (_req, res) => res.writeHead(404).end(), /status 404$/],
  [
    'a page',
    (_req, res) => res.writeHead(200, { 'content-type': 'text/html' }).end('<html></html>'),
    /text\/html, not JSON$/,
  ],
  [
    'JSON of another kind',
    (_req, res) => res.writeHead(200, { 'content-type': 'application/json' }).end('{ "error": "not found" }'),
    /JSON without an issuer$/,
  ],
] satisfies readonly (readonly [string, Handler, RegExp])[])
  test(`the log names the response instead of a discovery document, and its URL: ${what}`, async (t) => {
    const provider = await startSigningProvider(t)
    provider.respond(paths.discovery, response)

    const rejection: unknown = await discoveryOf(t, provider)
      .provider()
      .catch((error: unknown) => error)

    const { message: said } = rejection as Error
    assert.ok(said.includes(`GET ${provider.issuer}/.well-known/openid-configuration: it responded with`), said)
    assert.match(said, message)
  })

test('a redirect of the metadata is not followed', async (t) => {
  const [provider, elsewhere] = [await startSigningProvider(t), await startSigningProvider(t)]
  provider.respond(paths.discovery, (_req, res) =>
    res.writeHead(302, { location: `${elsewhere.issuer}${paths.discovery}` }).end(),
  )

  await assert.rejects(discoveryOf(t, provider).provider(), { code: 'ERR_PROVIDER_UNAVAILABLE' })

  assert.equal(elsewhere.hits(paths.discovery), 0)
})

test('a request to a provider that never responds ends after the timeout', async (t) => {
  const provider = await startSigningProvider(t, { timeoutMs: 100 })
  provider.respond(paths.discovery, () => {})

  await assert.rejects(discoveryOf(t, provider).provider(), { code: 'ERR_PROVIDER_UNAVAILABLE' })
})

for (const name of [
  'authorization_endpoint',
  'token_endpoint',
  'userinfo_endpoint',
  'jwks_uri',
  'end_session_endpoint',
])
  test(`a provider that is reached over https may not have its ${name} elsewhere over http`, async (t) => {
    const provider = await startSigningProvider(t)
    const issuer = 'https://id.example.com'
    const secure = JSON.parse(JSON.stringify(provider.metadata).replaceAll(provider.issuer, issuer)) as Json
    const discover = (metadata: Json) => {
      const outbound = { fetch: async () => Response.json(metadata), close: async () => {} }
      return new Discovery({ ...provider.config, issuer }, { outbound, clock: movableClock(), log: silent }).provider()
    }

    assert.equal((await discover(secure)).jwks_uri, `${issuer}/jwks`)
    await assert.rejects(discover({ ...secure, [name]: 'http://id.example.com/somewhere' }), {
      code: 'ERR_PROVIDER_UNAVAILABLE',
    })
  })

test('an issuer that ends in a slash is another issuer, and is found as such', async (t) => {
  const provider = await startSigningProvider(t, { issuerPath: '/tenant/' })

  const { configuration } = await discoveryOf(t, provider).provider()

  assert.match(configuration.serverMetadata().issuer, /\/tenant\/$/)
})

test('not every sign-in asks a provider that is down', async (t) => {
  const provider = await startSigningProvider(t)
  const discovery = discoveryOf(t, provider)
  provider.respond(paths.discovery, (_req, res) => res.writeHead(500).end())

  await Promise.allSettled(Array.from({ length: 10 }, () => discovery.provider()))
  await Promise.allSettled(Array.from({ length: 10 }, () => discovery.provider()))

  assert.equal(provider.hits(paths.discovery), 2)
})

test('a sign-in right after a short failure is served', async (t) => {
  const provider = await startSigningProvider(t)
  const discovery = discoveryOf(t, provider)
  provider.respond(paths.discovery, (_req, res) => res.writeHead(500).end())
  await assert.rejects(discovery.provider())
  provider.respond(paths.discovery)

  assert.equal((await discovery.provider()).algorithm, 'RS256')
})

test('a provider that is available again is not reported as failing', async (t) => {
  const provider = await startSigningProvider(t)
  const clock = movableClock()
  const discovery = discoveryOf(t, provider, clock)
  provider.respond(paths.discovery, (_req, res) => res.writeHead(500).end())
  await assert.rejects(discovery.provider())
  assert.match(String(discovery.state.failure), /status 500$/)
  provider.respond(paths.discovery)
  clock.move(1_000)

  await discovery.provider()

  assert.deepEqual(discovery.state, { readAt: clock.now(), failure: undefined })
})

test('the metadata is fetched in the background until that succeeds', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const provider = await startSigningProvider(t)
  const discovery = discoveryOf(t, provider)
  provider.respond(paths.discovery, (_req, res) => res.writeHead(500).end())
  discovery.start()
  await assert.rejects(discovery.provider())
  provider.respond(paths.discovery)

  await until(t, () => discovery.known !== undefined)

  assert.equal(discovery.known?.algorithm, 'RS256')
})

test('the metadata is renewed once an hour, and stays in use during an outage', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const provider = await startSigningProvider(t)
  const discovery = discoveryOf(t, provider)
  discovery.start()
  await until(t, () => discovery.known !== undefined)

  provider.respond(paths.discovery, (_req, res) => res.writeHead(500).end())
  await until(t, () => provider.hits(paths.discovery) >= 3)
  assert.equal((await discovery.provider()).jwks_uri, `${provider.issuer}/jwks`)

  provider.respond(paths.discovery, (_req, res) =>
    sendJson(res, { ...provider.metadata, jwks_uri: `${provider.issuer}/new` }),
  )
  await until(t, () => discovery.known?.jwks_uri === `${provider.issuer}/new`)
})

test('the registered algorithm is the one that is configured, else RS256, else the only one there is', async (t) => {
  const algorithmOf = async (announced: readonly string[] | undefined, configured?: 'ES256') => {
    const provider = await startSigningProvider(t, { id_token_signed_response_alg: configured })
    provider.respond(paths.discovery, (_req, res) =>
      sendJson(res, { ...provider.metadata, id_token_signing_alg_values_supported: announced }),
    )
    return (await discoveryOf(t, provider).provider()).algorithm
  }

  assert.equal(await algorithmOf(['RS256', 'ES256'], 'ES256'), 'ES256')
  assert.equal(await algorithmOf(['ES256', 'RS256']), 'RS256')
  assert.equal(await algorithmOf(undefined), 'RS256')
  assert.equal(await algorithmOf(['none', 'ES384']), 'ES384')
})

/**
 * Moves the mocked time until a condition is true. The time stands still while a response is under
 * way, because the sockets are real.
 */
async function until(t: TestContext, isSo: () => boolean): Promise<void> {
  for (let minutes = 0; minutes < 5000 && !isSo();) {
    if (asking === 0) {
      t.mock.timers.tick(60_000)
      minutes += 1
    }
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.ok(isSo())
}

test('An issuer for any tenant is not a value to copy: the message says to put the tenant into it', async (t) => {
  const provider = await startSigningProvider(t)
  const issuer = 'https://login.microsoftonline.com/{tenantid}/v2.0'
  provider.respond(paths.discovery, (_req, res) => sendJson(res, { ...provider.metadata, issuer }))

  await assert.rejects(discoveryOf(t, provider).provider(), (error: Error) => {
    assert.match(error.message, /with the ID of your tenant in place of \{tenantid\}/)
    assert.doesNotMatch(error.message, /set provider\.issuer to this value$/)
    return true
  })
})
