import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from 'jose'
import * as oidc from 'openid-client'
import { startDemoProvider } from '../../../examples/demo/provider.ts'
import {
  Browser,
  post_logout_redirect_uri,
  redirect_uri,
  signIn,
  startApplication,
  type Application,
} from './support.ts'

const fields = 'https://id.example.com/claims/fields'
const invalidGrant = { error: 'invalid_grant' }

async function refresh({ client }: Application, refresh_token: string | undefined) {
  return oidc.refreshTokenGrant(client, refresh_token ?? '')
}

async function userinfoStatus({ client }: Application, access_token: string): Promise<number> {
  const { userinfo_endpoint = '' } = client.serverMetadata()
  return (await fetch(userinfo_endpoint, { headers: { authorization: `Bearer ${access_token}` } })).status
}

test('Discovery announces the features that the gateway needs', async (t) => {
  const { provider, client } = await startApplication(t)

  const metadata = client.serverMetadata()

  assert.equal(metadata.issuer, provider.issuer)
  assert.equal(metadata.end_session_endpoint, `${provider.issuer}/oauth/logout`)
  assert.equal(metadata.userinfo_endpoint, `${provider.issuer}/oauth/userinfo`)
  assert.deepEqual(metadata.code_challenge_methods_supported, ['S256'])
  assert.deepEqual(metadata.id_token_signing_alg_values_supported, ['RS256'])
  assert.equal(metadata['backchannel_logout_session_supported'], true)
  assert.equal(metadata.authorization_response_iss_parameter_supported, true)
})

test('The ID Token identifies the person and has no other claims about them', async (t) => {
  const application = await startApplication(t)

  const tokens = await signIn(application, 'zoe')

  const claims = tokens.claims()
  assert.equal(claims?.sub, 'zoe')
  assert.equal(claims?.['sid'], application.provider.sessions()[0]?.sid)
  assert.deepEqual(
    Object.keys(claims ?? {}).filter((name) => /name|email|fields/.test(name)),
    [],
  )
  assert.equal(tokens.expires_in, 3600)
})

test('UserInfo returns the name, the e-mail address and the custom fields', async (t) => {
  const application = await startApplication(t)
  const { access_token } = await signIn(application, 'zoe')

  const userinfo = await oidc.fetchUserInfo(application.client, access_token, 'zoe')

  assert.deepEqual(userinfo, {
    sub: 'zoe',
    email: 'zoe.mueller@example.com',
    given_name: 'Zoë',
    family_name: 'Müller',
    preferred_username: 'zoe',
    [fields]: { costCentre: 'CC-1200', employeeNumber: '100871', groups: ['sales', 'Vertrieb Süd'] },
  })
})

test('A scope that was not requested adds no claims', async (t) => {
  const application = await startApplication(t)

  const { access_token, refresh_token } = await signIn(application, 'noa', { scope: 'openid' })

  const userinfo = await oidc.fetchUserInfo(application.client, access_token, 'noa')
  assert.deepEqual(Object.keys(userinfo).sort(), [fields, 'sub'])
  assert.equal(refresh_token, undefined)
})

test('An authorization request without PKCE is rejected', async (t) => {
  const { client } = await startApplication(t)
  const start = oidc.buildAuthorizationUrl(client, { redirect_uri, scope: 'openid' })

  const callback = await new Browser().goThrough(start, 'jane')

  assert.equal(callback.searchParams.get('error'), 'invalid_request')
})

test('A person who cancels returns to the client with access_denied', async (t) => {
  const { client } = await startApplication(t)
  const browser = new Browser()
  const code_challenge = await oidc.calculatePKCECodeChallenge(oidc.randomPKCECodeVerifier())
  const start = oidc.buildAuthorizationUrl(client, {
    redirect_uri,
    scope: 'openid',
    code_challenge,
    code_challenge_method: 'S256',
  })
  const asked = await browser.fetch(start)
  const picker = new URL(asked.headers.get('location') ?? '', start)

  const resumed = await browser.fetch(picker, { method: 'POST', body: new URLSearchParams({ cancel: 'yes' }) })

  const callback = await browser.goThrough(new URL(resumed.headers.get('location') ?? '', start), 'nobody')
  assert.equal(callback.searchParams.get('error'), 'access_denied')
})

test('A completed sign-in shows that it is over', async (t) => {
  const { provider } = await startApplication(t)

  const response = await fetch(`${provider.issuer}/sign-in/over`)

  assert.equal(response.status, 400)
  assert.match(await response.text(), /This sign-in has ended/)
})

test('Each refresh rotates the refresh token', async (t) => {
  const application = await startApplication(t)
  const first = await signIn(application, 'jane')

  const second = await refresh(application, first.refresh_token)

  assert.ok(second.refresh_token)
  assert.notEqual(second.refresh_token, first.refresh_token)
  assert.equal(second.claims()?.['sid'], first.claims()?.['sid'])
  await assert.rejects(refresh(application, first.refresh_token), invalidGrant)
})

test('A signed-in browser signs in again without a page and keeps its sid', async (t) => {
  const application = await startApplication(t)
  const browser = new Browser()
  const first = await signIn(application, 'jane', { browser })

  const second = await signIn(application, 'unknown person', { browser })

  assert.equal(second.claims()?.sub, 'jane')
  assert.equal(second.claims()?.['sid'], first.claims()?.['sid'])
  assert.equal(application.provider.sessions().length, 1)
})

test('The button ends one session and sends a valid Logout Token', async (t) => {
  const application = await startApplication(t)
  const { provider, client, received } = application
  const ended = await signIn(application, 'jane')
  const other = await signIn(application, 'jane')
  const sid = String(ended.claims()?.['sid'])
  const before = await (await fetch(provider.issuer)).text()
  assert.ok(before.includes(sid))

  const pressed = await new Browser().fetch(new URL('/sessions/end', provider.issuer), {
    method: 'POST',
    body: new URLSearchParams({ sid }),
  })

  assert.equal(pressed.headers.get('location'), '/')
  assert.equal(received.length, 1)
  const logout_token = received[0]?.get('logout_token') ?? ''
  const jwks = createRemoteJWKSet(new URL(client.serverMetadata().jwks_uri ?? ''))
  const { payload } = await jwtVerify(logout_token, jwks, {
    issuer: provider.issuer,
    audience: 'demo',
    typ: 'logout+jwt',
    requiredClaims: ['iat', 'exp', 'jti'],
  })
  assert.equal(decodeProtectedHeader(logout_token).alg, 'RS256')
  assert.equal(payload.sub, 'jane')
  assert.equal(payload['sid'], sid)
  assert.deepEqual(payload['events'], { 'http://schemas.openid.net/event/backchannel-logout': {} })
  assert.equal('nonce' in payload, false)

  await assert.rejects(refresh(application, ended.refresh_token), invalidGrant)
  assert.equal(await userinfoStatus(application, ended.access_token), 401)
  assert.equal(await userinfoStatus(application, other.access_token), 200)
  const after = await (await fetch(provider.issuer)).text()
  assert.equal(after.includes(sid), false)
  assert.match(after, /responded to the Logout Token with 200/)
})

test('endSession returns the result of the Logout Token', async (t) => {
  const application = await startApplication(t, 503)
  const tokens = await signIn(application, 'samir')

  const delivery = await application.provider.endSession(String(tokens.claims()?.['sid']))

  assert.deepEqual(delivery, { kind: 'delivered', status: 503 })
  assert.deepEqual(await application.provider.endSession('nobody'), { kind: 'no_session' })
})

test('The expiry of a session sends no Logout Token', async (t) => {
  const application = await startApplication(t)
  const tokens = await signIn(application, 'samir')

  assert.equal(application.provider.expireSession(String(tokens.claims()?.['sid'])), true)

  await assert.rejects(refresh(application, tokens.refresh_token), invalidGrant)
  assert.equal(application.received.length, 0)
})

test('POST to the end-session endpoint ends the session and sends no Logout Token', async (t) => {
  const application = await startApplication(t)
  const tokens = await signIn(application, 'jane')
  const end_session_endpoint = application.client.serverMetadata().end_session_endpoint ?? ''
  const body = new URLSearchParams({ id_token_hint: tokens.id_token ?? '' })

  const response = await fetch(end_session_endpoint, { method: 'POST', body, redirect: 'manual' })

  assert.equal(response.status, 200)
  assert.deepEqual(application.provider.sessions(), [])
  await assert.rejects(refresh(application, tokens.refresh_token), invalidGrant)
  assert.equal(application.received.length, 0)
  // A client that lost the first response repeats the request.
  assert.equal((await fetch(end_session_endpoint, { method: 'POST', body })).status, 200)
})

for (const [why, fields] of [
  ['no hint', {}],
  ['not a JWT', { id_token_hint: 'x' }],
  ['a foreign signature', { id_token_hint: 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJqYW5lIiwiYXVkIjoiZGVtbyJ9.AAAA' }],
] as const) {
  test(`POST to the end-session endpoint is rejected: ${why}`, async (t) => {
    const application = await startApplication(t)
    await signIn(application, 'jane')

    const response = await fetch(`${application.provider.issuer}/oauth/logout`, {
      method: 'POST',
      body: new URLSearchParams(fields),
    })

    assert.equal(response.status, 400)
    assert.equal(application.provider.sessions().length, 1)
  })
}

test('GET of the end-session endpoint redirects the browser back at once, with state', async (t) => {
  const application = await startApplication(t)
  const browser = new Browser()
  const tokens = await signIn(application, 'jane', { browser })
  const url = oidc.buildEndSessionUrl(application.client, {
    id_token_hint: tokens.id_token ?? '',
    post_logout_redirect_uri,
    state: 'a b&c',
  })

  const response = await browser.fetch(url)

  assert.equal(response.status, 303)
  const back = new URL(response.headers.get('location') ?? '')
  assert.equal(back.origin + back.pathname, post_logout_redirect_uri)
  assert.equal(back.searchParams.get('state'), 'a b&c')
  await assert.rejects(refresh(application, tokens.refresh_token), invalidGrant)
  assert.equal(application.received.length, 0)
  const again = await signIn(application, 'zoe', { browser })
  assert.equal(again.claims()?.sub, 'zoe')
  assert.notEqual(again.claims()?.['sid'], tokens.claims()?.['sid'])
})

test('GET of the end-session endpoint never redirects to an unregistered URI', async (t) => {
  const application = await startApplication(t)
  const tokens = await signIn(application, 'jane')
  const url = oidc.buildEndSessionUrl(application.client, {
    id_token_hint: tokens.id_token ?? '',
    post_logout_redirect_uri: 'http://evil.example/',
  })

  const response = await new Browser().fetch(url)

  assert.equal(response.status, 400)
  assert.equal(response.headers.get('location'), null)
})

test('prompt=login shows the sign-in page again, and the response has a refresh token', async (t) => {
  const application = await startApplication(t)
  const { client } = application
  const browser = new Browser()
  await signIn(application, 'jane', { browser })
  const pkceCodeVerifier = oidc.randomPKCECodeVerifier()
  const start = oidc.buildAuthorizationUrl(client, {
    redirect_uri,
    scope: 'openid offline_access',
    prompt: 'login',
    code_challenge: await oidc.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
  })

  const callback = await browser.goThrough(start, 'jane')

  const tokens = await oidc.authorizationCodeGrant(client, callback, { pkceCodeVerifier })
  assert.equal(tokens.claims()?.sub, 'jane')
  assert.ok(tokens.refresh_token)
})

test('The provider listens on loopback only', async () => {
  const options = {
    client_id: 'demo',
    client_secret: 'correct horse',
    redirect_uris: [redirect_uri],
    post_logout_redirect_uris: [post_logout_redirect_uri],
    backchannel_logout_uri: 'http://127.0.0.1:8080/.gatehouse/backchannel-logout',
    host: '0.0.0.0',
    port: 0,
  }

  await assert.rejects(startDemoProvider(options), { name: 'OperatorError', message: /loopback only/ })
})
