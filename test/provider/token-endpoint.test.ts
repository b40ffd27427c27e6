import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  bearer,
  ecKey,
  paths,
  sendJson,
  startSigningProvider,
  type Handler,
  type Json,
} from '../support/signing-provider.ts'
import { until } from '../support/until.ts'
import { authorizationRequest, clientOf } from './a-client.ts'

const secret = 'a:b%c+d é&=/'
const { redirect_uri, state } = authorizationRequest
const tokens = { access_token: 'at', obtained_at: 0, id_token: 'it', refresh_token: 'rt' }

/** Where the provider sends the browser back to. */
function callback(parameters: Readonly<Record<string, string>> = {}): URL {
  return new URL(`?${new URLSearchParams({ code: 'c-1', state, ...parameters }).toString()}`, redirect_uri)
}

/** An `exp` that openid-client, which goes by the real time, accepts too. */
function soon(): { readonly iat: number; readonly exp: number } {
  const iat = Math.floor(Date.now() / 1000)
  return { iat, exp: iat + 120 }
}

test('client_secret_basic sends id and secret form-encoded', async (t) => {
  const provider = await startSigningProvider(t, { client_secret: secret })

  await clientOf(t, provider)
    .refresh(tokens, 'jane')
    .catch(() => {})

  const [scheme, credentials = ''] = provider.lastTokenRequest?.authorization?.split(' ') ?? []
  const [id, password] = Buffer.from(credentials, 'base64').toString().split(':')
  assert.equal(scheme, 'Basic')
  assert.equal(id, 'orders')
  assert.equal(new URLSearchParams(`secret=${password}`).get('secret'), secret)
  assert.equal(provider.lastTokenRequest?.form.has('client_secret'), false)
})

test('client_secret_post sends them in the form, and nowhere else', async (t) => {
  const provider = await startSigningProvider(t, {
    client_secret: secret,
    token_endpoint_auth_method: 'client_secret_post',
  })

  await clientOf(t, provider)
    .refresh(tokens, 'jane')
    .catch(() => {})

  assert.equal(provider.lastTokenRequest?.form.get('client_id'), 'orders')
  assert.equal(provider.lastTokenRequest?.form.get('client_secret'), secret)
  assert.equal(provider.lastTokenRequest?.authorization, undefined)
})

test('a code is exchanged with the verifier and the redirect URI of its authorization request', async (t) => {
  const provider = await startSigningProvider(t)
  provider.respond(paths.token, (_req, res) => sendJson(res, { ...bearer(), id_token: provider.idToken(soon()) }))
  const clock = { now: () => Date.now(), move: () => {} }

  const { idToken } = await clientOf(t, provider, clock).exchangeCode(callback(), authorizationRequest)

  assert.equal(idToken.sub, 'jane')
  assert.deepEqual(Object.fromEntries(provider.lastTokenRequest?.form ?? []), {
    grant_type: 'authorization_code',
    code: 'c-1',
    redirect_uri,
    code_verifier: authorizationRequest.code_verifier,
  })
})

test('an access token without expires_in is refreshed after an hour, if there is a refresh token', async (t) => {
  const provider = await startSigningProvider(t)
  const clock = { now: () => Date.now(), move: () => {} }
  const lifetimeWith = async (more: object) => {
    const { expires_in: _, ...response } = { ...bearer(), id_token: provider.idToken(soon()), ...more } as Record<
      string,
      unknown
    >
    provider.respond(paths.token, (_req, res) => sendJson(res, response))
    const { tokens } = await clientOf(t, provider, clock).exchangeCode(callback(), authorizationRequest)
    return (tokens.access_token_expires_at ?? Infinity) - tokens.obtained_at
  }

  assert.equal(await lifetimeWith({ refresh_token: 'rt' }), 3_600_000)
  assert.equal(await lifetimeWith({ refresh_token: undefined }), Infinity)
})

test('PKCE is S256 and the parameters of the configuration are added, whatever the metadata says', async (t) => {
  const provider = await startSigningProvider(t, { authorizationParams: { prompt: 'login', acr_values: 'urn:mfa' } })
  provider.respond(paths.discovery, (_req, res) =>
    sendJson(res, { ...provider.metadata, code_challenge_methods_supported: ['plain'] }),
  )

  const url = await clientOf(t, provider).authorizationUrl(authorizationRequest)

  assert.deepEqual(Object.fromEntries(url.searchParams), {
    prompt: 'login',
    acr_values: 'urn:mfa',
    response_type: 'code',
    client_id: 'orders',
    scope: 'openid offline_access',
    redirect_uri,
    state,
    nonce: 'n-1',
    // RFC 7636 §4.2: the hash of 43 times "v".
    code_challenge: '7w_YNF9DSfIdPf_pRjSq646_kPr-2-o9NAl16JGghdM',
    code_challenge_method: 'S256',
  })
})

for (const [what, parameters, code] of [
  ['the state of another', { state: 'another' }, 'ERR_SIGN_IN_RESPONSE'],
  ['a strange issuer', { iss: 'https://evil.example' }, 'ERR_SIGN_IN_RESPONSE'],
  ['access_denied', { error: 'access_denied' }, 'ERR_SIGN_IN_DECLINED'],
  ['login_required', { error: 'login_required' }, 'ERR_SIGN_IN_REFUSED'],
  ['temporarily_unavailable', { error: 'temporarily_unavailable' }, 'ERR_PROVIDER_UNAVAILABLE'],
] as const)
  test(`a callback with ${what} redeems no code`, async (t) => {
    const provider = await startSigningProvider(t)

    await assert.rejects(clientOf(t, provider).exchangeCode(callback(parameters), authorizationRequest), { code })

    assert.equal(provider.hits(paths.token), 0)
  })

for (const name of ['code', 'state', 'iss', 'error'])
  test(`a callback with two values of "${name}" redeems no code`, async (t) => {
    const provider = await startSigningProvider(t)
    const url = callback(name === 'iss' ? { iss: provider.issuer } : {})
    url.searchParams.append(name, 'another')
    if (name === 'error') url.searchParams.append(name, 'and another')

    await assert.rejects(clientOf(t, provider).exchangeCode(url, authorizationRequest), (error: { code?: string }) =>
      ['ERR_SIGN_IN_RESPONSE', 'ERR_SIGN_IN_REFUSED'].includes(error.code ?? ''),
    )

    assert.equal(provider.hits(paths.token), 0)
  })

test('a provider that announces "iss" must send it (RFC 9207)', async (t) => {
  const provider = await startSigningProvider(t)
  provider.respond(paths.discovery, (_req, res) =>
    sendJson(res, { ...provider.metadata, authorization_response_iss_parameter_supported: true }),
  )

  await assert.rejects(clientOf(t, provider).exchangeCode(callback(), authorizationRequest), {
    code: 'ERR_SIGN_IN_RESPONSE',
  })

  assert.equal(provider.hits(paths.token), 0)
})

for (const [what, response, code] of [
  ['500', (_req, res) => res.writeHead(500).end(), 'ERR_PROVIDER_UNAVAILABLE'],
  ['429', (_req, res) => res.writeHead(429).end(), 'ERR_PROVIDER_UNAVAILABLE'],
  ['nothing, and hangs up', (req) => req.destroy(), 'ERR_PROVIDER_UNAVAILABLE'],
  ['nothing at all', () => {}, 'ERR_PROVIDER_UNAVAILABLE'],
  ['five megabytes', (_req, res) => sendJson(res, { pad: 'x'.repeat(5_000_000) }), 'ERR_PROVIDER_UNAVAILABLE'],
  ['a page', (_req, res) => res.writeHead(200, { 'content-type': 'text/html' }).end('<html>'), 'ERR_SIGN_IN_RESPONSE'],
  ['a list', (_req, res) => sendJson(res, []), 'ERR_SIGN_IN_RESPONSE'],
  ['no tokens', (_req, res) => sendJson(res, {}), 'ERR_SIGN_IN_RESPONSE'],
  ['no ID Token', (_req, res) => sendJson(res, bearer()), 'ERR_SIGN_IN_RESPONSE'],
  [
    'an access token that is a number',
    (_req, res) => sendJson(res, { ...bearer(), access_token: 1 }),
    'ERR_SIGN_IN_RESPONSE',
  ],
  ['invalid_grant', (_req, res) => sendJson(res, { error: 'invalid_grant' }, 400), 'ERR_SIGN_IN_EXPIRED'],
  ['invalid_client', (_req, res) => sendJson(res, { error: 'invalid_client' }, 401), 'ERR_SIGN_IN_RESPONSE'],
  ['an error without a name', (_req, res) => sendJson(res, {}, 400), 'ERR_SIGN_IN_RESPONSE'],
] satisfies readonly (readonly [string, Handler, string])[])
  test(`a token endpoint that responds to a code with ${what} is ${code}`, async (t) => {
    const provider = await startSigningProvider(t, { timeoutMs: what.startsWith('nothing') ? 300 : 2_000 })
    provider.respond(paths.token, response)

    await assert.rejects(clientOf(t, provider).exchangeCode(callback(), authorizationRequest), { code })
  })

test('a redirect of the token endpoint is not followed with credentials', async (t) => {
  const [provider, elsewhere] = [await startSigningProvider(t), await startSigningProvider(t)]
  provider.respond(paths.token, (_req, res) =>
    res.writeHead(307, { location: `${elsewhere.issuer}${paths.token}` }).end(),
  )

  await assert.rejects(clientOf(t, provider).refresh(tokens, 'jane'), { code: 'ERR_SIGN_IN_RESPONSE' })

  assert.equal(elsewhere.hits(paths.token), 0)
})

// Keycloak responds with unauthorized_client to a wrong secret.
for (const error of ['invalid_client', 'unauthorized_client'])
  for (const status of [400, 401])
    test(`a wrong client secret is named to the operator: ${error} with ${status}`, async (t) => {
      const provider = await startSigningProvider(t)
      provider.respond(paths.token, (_req, res) => sendJson(res, { error }, status))
      const told = { message: /check provider\.client_id, client_secret and token_endpoint_auth_method/ }

      await assert.rejects(clientOf(t, provider).refresh(tokens, 'jane'), told)
      await assert.rejects(clientOf(t, provider).exchangeCode(callback(), authorizationRequest), told)
    })

test('invalid_scope is logged with the description of the provider, cut and without control characters', async (t) => {
  const provider = await startSigningProvider(t)
  const parameters = {
    error: 'invalid_scope',
    error_description: `Invalid scopes: "openid\u001b[2J\n ü${'x'.repeat(999)}`,
  }
  const told = (error: Error) => {
    assert.match(error.message, /"invalid_scope" \("Invalid scopes: .openid\?\[2J\?/)
    assert.match(error.message, /check provider\.scopes/)
    assert.match(error.message, /^[\x20-\x7e]{1,500}$/)
    return true
  }
  provider.respond(paths.token, (_req, res) => sendJson(res, parameters, 400))
  const client = clientOf(t, provider)

  await assert.rejects(client.exchangeCode(callback(parameters), authorizationRequest), told)
  await assert.rejects(client.refresh(tokens, 'jane'), told)
})

test('descriptions of other errors are not logged, because they may quote a code or a token', async (t) => {
  const provider = await startSigningProvider(t)
  const response = { error: 'invalid_request', error_description: 'the refresh token rt-secret is malformed' }
  provider.respond(paths.token, (_req, res) => sendJson(res, response, 400))

  await assert.rejects(clientOf(t, provider).refresh(tokens, 'jane'), (error: Error) => !error.message.includes('rt-'))
})

test('an ID Token of another algorithm is logged with both algorithms and the setting', async (t) => {
  const provider = await startSigningProvider(t, { id_token_signed_response_alg: 'RS256' })
  const key = ecKey('ec')
  const clock = { now: () => Date.now(), move: () => {} }
  const respondWith = (header: Json) =>
    provider.respond(paths.token, (_req, res) =>
      sendJson(res, { ...bearer(), id_token: provider.idToken(soon(), header, key) }),
    )
  const client = clientOf(t, provider, clock)
  provider.publish(provider.key.jwk, key.jwk)

  respondWith({})
  const told = { message: /signed with ES256 and not with RS256: set provider\.id_token_signed_response_alg/ }
  await assert.rejects(client.exchangeCode(callback(), authorizationRequest), told)
  await assert.rejects(client.refresh(tokens, 'jane'), told)
  await assert.rejects(client.verifyLogoutToken(provider.logoutToken({}, {}, key)), told)

  respondWith({ alg: 'HS256' })
  await assert.rejects(client.exchangeCode(callback(), authorizationRequest), {
    message: /configure the provider to sign the tokens of this client with RS256/,
  })
})

test('a rejected refresh is a result, not an error', async (t) => {
  const provider = await startSigningProvider(t)
  provider.respond(paths.token, (_req, res) => sendJson(res, { error: 'invalid_grant' }, 400))

  assert.deepEqual(await clientOf(t, provider).refresh(tokens, 'jane'), { kind: 'invalid_grant' })
})

// The last two rows, and the types below, are the regression "a token response is misread".
for (const [what, response, kept, granted] of [
  ['rotates the refresh token', { ...bearer(), refresh_token: 'rt-2' }, 'rt-2', 'rt-2'],
  ['keeps the refresh token', bearer(), 'rt', undefined],
  ['has another letter case in the type of the token', { ...bearer(), token_type: 'bEARER' }, 'rt', undefined],
  ['is null in members', { ...bearer(), refresh_token: null, scope: null, expires_in: null }, 'rt', undefined],
] as const)
  test(`a refresh that ${what} leaves the right one, and the last ID Token; so does a sign-in`, async (t) => {
    const provider = await startSigningProvider(t)
    const client = clientOf(t, provider, { now: () => Date.now(), move: () => {} })
    provider.respond(paths.token, (_req, res) => sendJson(res, response))

    const refreshed = await client.refresh(tokens, 'jane')

    assert.equal(refreshed.kind, 'refreshed')
    assert.equal(refreshed.kind === 'refreshed' && refreshed.tokens.refresh_token, kept)
    assert.equal(refreshed.kind === 'refreshed' && refreshed.tokens.id_token, 'it')

    provider.respond(paths.token, (_req, res) => sendJson(res, { ...response, id_token: provider.idToken(soon()) }))
    const signedIn = await client.exchangeCode(callback(), authorizationRequest)

    assert.equal(signedIn.tokens.refresh_token, granted)
  })

for (const token_type of ['DPoP', 'dpop', 'mac', 'N_A'])
  test(`an access token of the type ${token_type} is rejected because the gateway cannot use it`, async (t) => {
    const provider = await startSigningProvider(t)
    const client = clientOf(t, provider, { now: () => Date.now(), move: () => {} })
    provider.respond(paths.token, (_req, res) =>
      sendJson(res, { ...bearer(), token_type, id_token: provider.idToken(soon()) }),
    )

    const refused = { code: 'ERR_SIGN_IN_RESPONSE' }
    await assert.rejects(client.exchangeCode(callback(), authorizationRequest), refused)
    await assert.rejects(client.refresh(tokens, 'jane'), refused)
  })

test('The reason of an ID Token for another client names client_id', async (t) => {
  const provider = await startSigningProvider(t)
  provider.respond(paths.token, (_req, res) =>
    sendJson(res, { ...bearer(), id_token: provider.idToken({ ...soon(), aud: 'billing' }) }),
  )
  const client = clientOf(t, provider, { now: () => Date.now(), move: () => {} })

  await assert.rejects(client.exchangeCode(callback(), authorizationRequest), {
    message: /; .*compare provider\.client_id/,
  })
})

for (const [what, claims] of [
  ['of somebody else', { sub: 'samir' }],
  ['of another provider', { iss: 'https://id.example.com' }],
  ['for another client', { aud: 'billing' }],
] as const)
  test(`a refresh with an ID Token ${what} is refused`, async (t) => {
    const provider = await startSigningProvider(t)
    provider.respond(paths.token, (_req, res) =>
      sendJson(res, { ...bearer(), id_token: provider.idToken({ ...soon(), ...claims, nonce: undefined }) }),
    )
    const clock = { now: () => Date.now(), move: () => {} }

    await assert.rejects(clientOf(t, provider, clock).refresh(tokens, 'jane'), { code: 'ERR_SIGN_IN_RESPONSE' })
  })

test('a refresh with an ID Token that the provider has not signed is refused', async (t) => {
  const provider = await startSigningProvider(t)
  provider.respond(paths.token, (_req, res) =>
    sendJson(res, { ...bearer(), id_token: provider.idToken(soon()).replace(/[^.]{6}$/, 'AAAAAA') }),
  )
  const clock = { now: () => Date.now(), move: () => {} }

  await assert.rejects(clientOf(t, provider, clock).refresh(tokens, 'jane'), { code: 'ERR_SIGN_IN_RESPONSE' })
})

for (const [what, expires_in, lifetime] of [
  ['an hour', 3600, 3_600_000],
  ['an hour, as text', '3600', 3_600_000],
  ['a thousand years', 31_536_000_000, 366 * 24 * 3_600_000],
] as const)
  test(`an access token that lives for ${what}`, async (t) => {
    const provider = await startSigningProvider(t)
    provider.respond(paths.token, (_req, res) => sendJson(res, { ...bearer(), expires_in }))

    const refreshed = await clientOf(t, provider).refresh(tokens, 'jane')

    assert.ok(refreshed.kind === 'refreshed')
    const { obtained_at, access_token_expires_at = 0 } = refreshed.tokens
    assert.equal(access_token_expires_at - obtained_at, lifetime)
  })

test('the keys are fetched when a sign-in begins, so that its callback does not wait for them', async (t) => {
  const provider = await startSigningProvider(t)

  await clientOf(t, provider).authorizationUrl(authorizationRequest)

  await until('the keys are fetched', () => provider.hits(paths.jwks) === 1)
})
