import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { decodeJwt, decodeProtectedHeader, SignJWT } from 'jose'
import { assertWholeJourney, type ClientJourney, startClient } from '../support/client-journey.ts'
import { clientKeyPair, withFeatures } from '../support/client-keys.ts'
import { folderWith } from '../support/command-line.ts'
import { freePort } from '../support/free-port.ts'
import { ecKey, rsaKey } from '../support/signing-provider.ts'

const pushed = { pushedAuthorizationRequests: { enabled: true } } as const

/** Where the gateway sends the browser to sign in. */
async function authorizationUrl({ world, jane }: ClientJourney): Promise<URL> {
  return new URL(await jane.until(`${world.url}/echo`, '/oauth/authorize'))
}

// Pushed authorization requests (RFC 9126).

test('A provider that requires pushed requests gets them, and the browser carries only a reference', async (t) => {
  const journey = await startClient(t, {
    provider: {
      adjust: withFeatures({
        pushedAuthorizationRequests: { enabled: true, requirePushedAuthorizationRequests: true },
      }),
    },
  })

  const url = await authorizationUrl(journey)

  assert.deepEqual([...url.searchParams.keys()].toSorted(), ['client_id', 'request_uri'])
  await assertWholeJourney(journey)
})

test('A provider that supports pushed requests gets them only when the setting says so', async (t) => {
  const provider = { adjust: withFeatures(pushed) }
  const byDefault = await startClient(t, { provider })
  const always = await startClient(t, { provider, providerSettings: 'pushed_authorization_requests: always' })

  assert.equal((await authorizationUrl(byDefault)).searchParams.has('request_uri'), false)
  assert.equal((await authorizationUrl(always)).searchParams.has('request_uri'), true)
  await assertWholeJourney(always)
})

for (const [what, respond, status, code] of [
  ['is away', (_: unknown, res: { destroy(): void }) => res.destroy(), 503, 'ERR_PROVIDER_UNAVAILABLE'],
  [
    'rejects the client',
    (_: unknown, res: import('node:http').ServerResponse) =>
      res.writeHead(401, { 'content-type': 'application/json' }).end('{"error":"invalid_client"}'),
    502,
    'ERR_SIGN_IN_RESPONSE',
  ],
] as const)
  test(`While the endpoint for pushed requests ${what}, no sign-in begins, and no request goes through the browser`, async (t) => {
    const journey = await startClient(t, {
      provider: { adjust: withFeatures(pushed) },
      providerSettings: 'pushed_authorization_requests: always',
    })
    const { world, jane, log } = journey
    const repair = world.provider.fault('/request', respond)

    const during = await jane.get(`${world.url}/echo`)

    assert.equal(during.status, status, log())
    assert.equal(new URL(during.url).origin, world.url)
    assert.match(log(), new RegExp(`sign_in.not_started.*${code}.*(?:/request: |not pushed)`))
    assert.equal(world.provider.hits('/oauth/authorize'), 0)
    repair()
    await assertWholeJourney(journey)
  })

// Signed requests (RFC 9101).

function signing(t: TestContext, more = '') {
  const pair = clientKeyPair('ES256')
  const file = join(folderWith(t, { 'client_key.pem': pair.pem }), 'client_key.pem')
  return {
    credentials: `client_secret: { env: CLIENT_SECRET }\n  client_key: { file: ${file}, kid: key-ES256 }`,
    providerSettings: `signed_requests: true\n  ${more}`,
    provider: {
      adjust: withFeatures(
        { ...pushed, requestObjects: { enabled: true, requireSignedRequestObject: true } },
        { jwks: { keys: [pair.publicJwk] }, request_object_signing_alg: 'ES256' },
      ),
    },
  }
}

test('A signed request carries every parameter in a JWT for this provider', async (t) => {
  const journey = await startClient(t, signing(t))

  const url = await authorizationUrl(journey)

  assert.deepEqual([...url.searchParams.keys()].toSorted(), ['client_id', 'request'])
  const request = url.searchParams.get('request') ?? ''
  assert.deepEqual(decodeProtectedHeader(request), { alg: 'ES256', typ: 'oauth-authz-req+jwt', kid: 'key-ES256' })
  const { iss, aud, response_type, code_challenge_method } = decodeJwt(request)
  assert.deepEqual(
    { iss, aud, response_type, code_challenge_method },
    {
      iss: 'orders',
      aud: journey.world.provider.issuer,
      response_type: 'code',
      code_challenge_method: 'S256',
    },
  )
  await assertWholeJourney(journey)
})

test('A signed request can be pushed', async (t) => {
  const journey = await startClient(t, signing(t, 'pushed_authorization_requests: always'))

  const url = await authorizationUrl(journey)

  assert.deepEqual([...url.searchParams.keys()].toSorted(), ['client_id', 'request_uri'])
  await assertWholeJourney(journey)
})

// Signed responses (JARM).

const signedResponses = { adjust: withFeatures({ jwtResponseModes: { enabled: true } }) }

for (const mode of ['jwt', 'query.jwt', 'form_post.jwt'])
  test(`A signed response brings the code: ${mode}`, async (t) => {
    const journey = await startClient(t, { provider: signedResponses, providerSettings: `response_mode: ${mode}` })

    if (mode === 'form_post.jwt') await postForms(journey)
    await assertWholeJourney(journey)
  })

/** The browser of the tests posts no forms of pages: this proxy of the callback does it instead. */
async function postForms({ world, jane }: ClientJourney): Promise<void> {
  const get = jane.get.bind(jane)
  jane.get = async (url, options) => {
    const page = await get(url, options)
    const action = /action="([^"]+)"/.exec(page.body)?.[1]
    const response = /name="response" value="([^"]+)"/.exec(page.body)?.[1]
    if (action === undefined || response === undefined) return page
    return get(action.replaceAll('&amp;', '&'), {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        'sec-fetch-site': 'cross-site',
        origin: world.provider.issuer,
      },
      body: new URLSearchParams({ response }).toString(),
    })
  }
}

/** Jane signs in at the provider. `change` gets the response that her browser would carry. */
async function bringBack(
  { world, jane }: ClientJourney,
  change: (back: URL) => URL | Promise<URL>,
): Promise<{ readonly status: number; readonly body: string }> {
  const back = new URL(await jane.until(`${world.url}/echo`, '/.gatehouse/callback'))
  const page = await jane.send((await change(back)).href, { headers: { 'sec-fetch-site': 'cross-site' } })
  assert.equal(world.provider.hits('/oauth/token'), 0, 'no code was sent to the provider')
  assert.equal(jane.cookies.has('gatehouse'), false)
  return page
}

for (const [what, change, said] of [
  [
    'plain',
    (back: URL) => {
      const { code, state, iss } = decodeJwt(back.searchParams.get('response') ?? '')
      back.search = new URLSearchParams({ code: String(code), state: String(state), iss: String(iss) }).toString()
      return back
    },
    /is not a JWT, although provider\.response_mode asks for one/,
  ],
  [
    'a plain error',
    (back: URL) => {
      const { state } = decodeJwt(back.searchParams.get('response') ?? '')
      back.search = new URLSearchParams({ error: 'access_denied', state: String(state) }).toString()
      return back
    },
    /is not a JWT/,
  ],
  [
    'changed',
    (back: URL) => {
      const [header, payload = '', signature] = (back.searchParams.get('response') ?? '').split('.')
      const claims = { ...(JSON.parse(Buffer.from(payload, 'base64url').toString()) as object), code: 'another' }
      const changed = Buffer.from(JSON.stringify(claims)).toString('base64url')
      back.searchParams.set('response', `${header}.${changed}.${signature}`)
      return back
    },
    /authorization response refused: signature verification failed/,
  ],
  ['signed by nobody', (back: URL) => resigned(back, (claims) => claims, 'none'), /authorization response refused/],
  ['signed with another key', (back: URL) => resigned(back, (claims) => claims), /authorization response refused/],
] as const)
  test(`A response that is ${what} is refused in a mode with signed responses`, async (t) => {
    const journey = await startClient(t, { provider: signedResponses, providerSettings: 'response_mode: jwt' })

    const page = await bringBack(journey, change)

    assert.equal(page.status, 502)
    assert.match(journey.log(), said)
  })

/** A key that the provider does not have. */
const foreignKey = rsaKey('another')
/** A key of the provider that the test knows too. */
const sharedKey = rsaKey('shared')

async function resigned(
  back: URL,
  change: (claims: Record<string, unknown>) => Record<string, unknown>,
  alg: 'RS256' | 'none' = 'RS256',
  key = foreignKey,
): Promise<URL> {
  const claims = change({ ...decodeJwt(back.searchParams.get('response') ?? '') })
  const jwt =
    alg === 'none'
      ? `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.`
      : await new SignJWT(claims).setProtectedHeader({ alg, kid: String(key.jwk['kid']) }).sign(key.privateKey)
  back.searchParams.set('response', jwt)
  return back
}

for (const [what, change, said] of [
  ['another issuer', (claims: object) => ({ ...claims, iss: 'https://other.example.com' }), /unexpected "iss" claim/],
  ['another client', (claims: object) => ({ ...claims, aud: 'wiki' }), /unexpected "aud" claim/],
  ['no audience', (claims: object) => ({ ...claims, aud: undefined }), /"aud"/],
  ['the past', (claims: object) => ({ ...claims, exp: Math.floor(Date.now() / 1000) - 600 }), /"exp" claim timestamp/],
  ['no time', (claims: object) => ({ ...claims, exp: undefined }), /"exp"/],
] as const)
  test(`A signed response of ${what} is refused, although the signature is that of the provider`, async (t) => {
    const journey = await startClient(t, { provider: signedResponses, providerSettings: 'response_mode: jwt' })
    journey.world.provider.bend('/oauth/jwks', (body) => void (body['keys'] as unknown[]).push(sharedKey.jwk))

    const page = await bringBack(journey, (back) => resigned(back, change, 'RS256', sharedKey))

    assert.equal(page.status, 502)
    assert.match(journey.log(), said)
  })

test('A response of another algorithm than that of the provider is refused', async (t) => {
  const key = ecKey('shared')
  const journey = await startClient(t, { provider: signedResponses, providerSettings: 'response_mode: jwt' })
  journey.world.provider.bend('/oauth/jwks', (body) => void (body['keys'] as unknown[]).push(key.jwk))

  const page = await bringBack(journey, async (back) => {
    const claims = decodeJwt(back.searchParams.get('response') ?? '')
    const jwt = await new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: 'shared' }).sign(key.privateKey)
    back.searchParams.set('response', jwt)
    return back
  })

  assert.equal(page.status, 502)
  assert.match(journey.log(), /authorization response refused/)
})

test('An error in a signed response is the answer of the provider', async (t) => {
  const journey = await startClient(t, { provider: signedResponses, providerSettings: 'response_mode: jwt' })
  const { world, jane } = journey
  const signIn = await jane.until(`${world.url}/echo`, '/oauth/authorize')
  const url = new URL(signIn)
  url.searchParams.set('prompt', 'none')

  const page = await jane.get(url.href)

  assert.equal(page.status, 403)
  assert.match(journey.log(), /login_required/)
})

// Resource indicators (RFC 8707).

test('Every request names the resource server, and UserInfo is not read when nothing needs it', async (t) => {
  const resource = 'https://api.example.com/orders'
  const journey = await startClient(t, {
    headers: 'X-Remote-User: sub',
    upstreamSettings: 'set_cookie: {}',
    providerSettings: `resource: ${resource}`,
    provider: {
      adjust: withFeatures({
        resourceIndicators: {
          enabled: true,
          useGrantedResource: () => false,
          defaultResource: () => [],
          getResourceServerInfo: () => ({ scope: '', accessTokenFormat: 'jwt' }),
        },
      }),
    },
  })
  const { world, jane, log } = journey
  const audiences: unknown[] = []
  world.provider.bend('/oauth/token', (body) => void audiences.push(decodeJwt(String(body['access_token'])).aud))

  const url = await authorizationUrl(journey)
  assert.equal((await jane.get(`${world.url}/echo`)).status, 200, log())
  world.moveClock(11 * 60_000)
  assert.equal((await jane.get(`${world.url}/echo`)).status, 200, log())

  assert.deepEqual(url.searchParams.getAll('resource'), [resource])
  assert.deepEqual(audiences, [resource, resource])
  assert.equal(world.provider.hits('/oauth/userinfo'), 0)
})

test('Several resource servers are several parameters', async (t) => {
  const journey = await startClient(t, {
    providerSettings: 'resource: [https://one.example.com, urn:example:two]',
  })

  const { searchParams } = await authorizationUrl(journey)

  assert.deepEqual(searchParams.getAll('resource'), ['https://one.example.com', 'urn:example:two'])
})

// Parameters of a link.

test('A link sets only the parameters that the configuration allows, and they are encoded', async (t) => {
  const { world, jane } = await startClient(t, {
    providerSettings:
      'authorization_params: { ui_locales: en, prompt: consent }\n  link_params: [ui_locales, login_hint]',
  })
  const redirectOf = async (query: string) => {
    const { headers } = await jane.send(`${world.url}/.gatehouse/sign-in?${query}`)
    return new URL(String(headers['location'])).searchParams
  }
  const state = (await redirectOf('')).get('state')

  const linked = await redirectOf(
    `ui_locales=de%20%26state%3Dx&login_hint=jane%40example.com&state=forged&redirect_uri=https://evil.example&acr_values=0&nonce=1&display=page`,
  )

  assert.equal(linked.get('ui_locales'), 'de &state=x')
  assert.equal(linked.get('login_hint'), 'jane@example.com')
  assert.deepEqual(linked.getAll('state').length, 1)
  assert.notEqual(linked.get('state'), 'forged')
  assert.notEqual(linked.get('state'), state)
  assert.equal(linked.get('redirect_uri'), `${world.url}/.gatehouse/callback`)
  for (const name of ['acr_values', 'display']) assert.equal(linked.has(name), false, name)
  assert.equal((await redirectOf('')).get('ui_locales'), 'en')
  assert.equal((await redirectOf('ui_locales=a&ui_locales=b')).get('ui_locales'), 'en')
  assert.equal((await redirectOf(`ui_locales=${'x'.repeat(501)}`)).get('ui_locales'), 'en')
  assert.equal((await redirectOf(`ui_locales=${'x'.repeat(500)}`)).get('ui_locales'), 'x'.repeat(500))
})

// Metadata in the configuration.

test('A provider without a discovery document is described in the configuration', async (t) => {
  const issuer = `http://127.0.0.1:${await freePort()}`
  const journey = await startClient(t, {
    providerSettings: `metadata:
    authorization_endpoint: ${issuer}/oauth/authorize
    token_endpoint: ${issuer}/oauth/token
    jwks_uri: ${issuer}/oauth/jwks
    userinfo_endpoint: ${issuer}/oauth/userinfo
    end_session_endpoint: ${issuer}/oauth/logout
    revocation_endpoint: ${issuer}/oauth/revoke
    authorization_response_iss_parameter_supported: true`,
    provider: { port: Number(new URL(issuer).port), adjust: withFeatures({}) },
  })
  const { world, jane } = journey

  await assertWholeJourney(journey)
  const out = await jane.get(`${world.url}/.gatehouse/sign-out`)

  assert.equal(world.provider.hits('/.well-known/openid-configuration'), 0)
  assert.ok(world.provider.hits('/oauth/jwks') > 0)
  assert.equal(out.status, 200)
})
