import assert from 'node:assert/strict'
import { createPrivateKey, randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { decodeJwt, decodeProtectedHeader, SignJWT } from 'jose'
import type { Configuration } from 'oidc-provider'
import { issueCertificates } from '../support/certificates.ts'
import { assertWholeJourney, startClient } from '../support/client-journey.ts'
import { type ClientKeyPair, clientKeyPair, withFeatures } from '../support/client-keys.ts'
import { folderWith } from '../support/command-line.ts'
import type { TestProvider } from '../support/provider.ts'
import { until } from '../support/until.ts'

/** YAML of a key in a file, on one line. */
function keySetting(t: TestContext, { pem }: Pick<ClientKeyPair, 'pem'>, more = ''): string {
  return `client_key: { file: ${join(folderWith(t, { 'client_key.pem': pem }), 'client_key.pem')}${more} }`
}

/** Records the forms that arrive at the token endpoint. */
function tokenForms(provider: TestProvider): URLSearchParams[] {
  const forms: URLSearchParams[] = []
  provider.fault('/oauth/token', (req, _res, pass) => {
    let body = ''
    req.on('data', (part: Buffer) => (body += part.toString()))
    req.on('end', () => forms.push(new URLSearchParams(body)))
    pass()
  })
  return forms
}

test('A client authenticates with a JWT that is signed with its secret', async (t) => {
  const journey = await startClient(t, {
    providerSettings: 'token_endpoint_auth_method: client_secret_jwt',
    provider: { adjust: withFeatures({}, { token_endpoint_auth_method: 'client_secret_jwt' }) },
  })
  const forms = tokenForms(journey.world.provider)

  await assertWholeJourney(journey)

  assert.equal(forms[0]?.get('client_secret'), null)
  assert.equal(decodeProtectedHeader(forms[0]?.get('client_assertion') ?? '').alg, 'HS256')
})

for (const alg of ['ES256', 'PS256', 'RS256', 'EdDSA'] as const)
  test(`A client authenticates with a JWT that is signed with its key: ${alg}`, async (t) => {
    const pair = clientKeyPair(alg)
    const isJwk = alg === 'PS256'
    const key = isJwk ? { pem: JSON.stringify(pair.privateJwk) } : pair
    const journey = await startClient(t, {
      credentials: keySetting(t, key, isJwk ? '' : `, kid: key-${alg}`),
      providerSettings: 'token_endpoint_auth_method: private_key_jwt',
      provider: {
        adjust: withFeatures(
          {},
          {
            client_secret: undefined,
            token_endpoint_auth_method: 'private_key_jwt',
            token_endpoint_auth_signing_alg: alg,
            jwks: { keys: [pair.publicJwk] },
          },
        ),
      },
    })
    const forms = tokenForms(journey.world.provider)

    await assertWholeJourney(journey)

    const assertions = forms.map((form) => form.get('client_assertion') ?? '')
    const [first = ''] = assertions
    assert.deepEqual(decodeProtectedHeader(first), { alg, kid: `key-${alg}` })
    const { iss, sub, aud, exp = 0, iat = 0 } = decodeJwt(first)
    assert.deepEqual({ iss, sub, aud }, { iss: 'orders', sub: 'orders', aud: journey.world.provider.issuer })
    assert.ok(exp - iat <= 60, 'an assertion is valid for a minute at most')
    assert.equal(new Set(assertions.map((one) => decodeJwt(one).jti)).size, forms.length, 'no assertion is used twice')
  })

test('The audience of the assertion is the token endpoint for a provider that wants it', async (t) => {
  const pair = clientKeyPair('ES256')
  const journey = await startClient(t, {
    credentials: keySetting(t, pair, ', kid: key-ES256'),
    providerSettings: 'token_endpoint_auth_method: private_key_jwt\n  client_assertion_audience: token_endpoint',
    provider: {
      adjust: withFeatures(
        {},
        { client_secret: undefined, token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [pair.publicJwk] } },
      ),
    },
  })
  const forms = tokenForms(journey.world.provider)

  await assertWholeJourney(journey)

  const { aud } = decodeJwt(forms[0]?.get('client_assertion') ?? '')
  assert.equal(aud, `${journey.world.provider.issuer}/oauth/token`)
})

interface AssertionOptions {
  readonly lifetime?: string
  readonly audience?: string
}

/** A JWT for the client, as another program would sign it. */
function assertionFor(
  provider: Pick<TestProvider, 'issuer'>,
  { privateJwk }: ClientKeyPair,
  { lifetime = '1h', audience = provider.issuer }: AssertionOptions = {},
) {
  return new SignJWT({ jti: randomUUID() })
    .setProtectedHeader({ alg: 'ES256', kid: 'key-ES256' })
    .setIssuer('orders')
    .setSubject('orders')
    .setAudience(audience)
    .setIssuedAt()
    .setExpirationTime(lifetime)
    .sign(createPrivateKey({ key: privateJwk, format: 'jwk' }))
}

async function startWithAssertion(t: TestContext, others: Configuration = {}) {
  const pair = clientKeyPair('ES256')
  const folder = folderWith(t, { token: '' })
  const file = join(folder, 'token')
  const journey = await startClient(t, {
    credentials: `client_assertion: { file: ${file} }`,
    provider: {
      adjust: withFeatures(
        {},
        { client_secret: undefined, token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [pair.publicJwk] } },
        others,
      ),
    },
  })
  const { provider } = journey.world
  return {
    ...journey,
    file,
    renew: async (options?: AssertionOptions) => writeFileSync(file, await assertionFor(provider, pair, options)),
  }
}

test('The client authenticates with the JWT of a file, which another program renews', async (t) => {
  const { renew, ...journey } = await startWithAssertion(t)
  await renew()
  const forms: URLSearchParams[] = []
  journey.world.provider.fault('/oauth/token', (req, _res, pass) => {
    let body = ''
    req.on('data', (part: Buffer) => (body += part.toString()))
    // The provider accepts each JWT once.
    req.on('end', () => void renew().then(() => forms.push(new URLSearchParams(body))))
    pass()
  })

  await assertWholeJourney(journey)

  const assertions = forms.map((form) => form.get('client_assertion') ?? '')
  assert.equal(new Set(assertions).size, assertions.length)
  assert.ok(assertions.length > 1)
  assert.equal(forms[0]?.get('client_secret'), null)
  assert.equal(forms[0]?.get('client_assertion_type'), 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
})

test('While the file is half written, the last JWT is sent until it expires; then a sign-in gets 503', async (t) => {
  const { file, renew, world, jane, log } = await startWithAssertion(t)
  await renew({ lifetime: '5m' })
  const whole = readFileSync(file, 'utf8')
  assert.equal((await jane.get(`${world.url}/echo`)).status, 200)

  writeFileSync(file, whole.slice(0, 100))
  const forms = tokenForms(world.provider)
  await world.browser('zoe').get(`${world.url}/echo`)
  await until('a token request', () => forms.length > 0)
  assert.equal(forms[0]?.get('client_assertion'), whole)

  world.moveClock(5 * 60_000 + 1)
  const refused = await world.browser('zoe').get(`${world.url}/echo`)
  assert.equal(refused.status, 503)
  assert.match(log(), new RegExp(`client_assertion\\): ${file} is not a signed JWT`))
  assert.equal((await jane.get(`${world.url}/echo`)).status, 200, 'a session goes on')
})

test('A key that the provider does not know ends the sign-in, and the log says what to check', async (t) => {
  const journey = await startClient(t, {
    credentials: keySetting(t, clientKeyPair('ES256')),
    providerSettings: 'token_endpoint_auth_method: private_key_jwt',
    provider: {
      adjust: withFeatures(
        {},
        {
          client_secret: undefined,
          token_endpoint_auth_method: 'private_key_jwt',
          jwks: { keys: [clientKeyPair('ES256').publicJwk] },
        },
      ),
    },
  })

  const page = await journey.jane.get(`${journey.world.url}/echo`)

  assert.equal(page.status, 502)
  assert.match(journey.log(), /invalid_client.*check provider\.client_id.*client_key/)
  assert.equal(journey.jane.cookies.has('gatehouse'), false)
})

test('An assertion that arrives too late ends the sign-in', async (t) => {
  const pair = clientKeyPair('ES256')
  const journey = await startClient(t, {
    credentials: keySetting(t, pair, ', kid: key-ES256'),
    providerSettings: 'token_endpoint_auth_method: private_key_jwt',
    provider: {
      adjust: withFeatures(
        {},
        { client_secret: undefined, token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [pair.publicJwk] } },
        { assertJwtClientAuthClaimsAndHeader: rejectExpired },
      ),
    },
  })

  const page = await journey.jane.get(`${journey.world.url}/echo`)

  assert.equal(page.status, 502)
  assert.match(journey.log(), /invalid_client/)
})

for (const [what, options, others] of [
  ['lacks the end of its signature', {}, {}],
  ['is for another audience', { audience: 'https://kubernetes.default.svc' }, {}],
  [
    'has expired by the clock of the provider',
    { lifetime: '1m' },
    { assertJwtClientAuthClaimsAndHeader: rejectExpired },
  ],
] as const)
  test(`A JWT of a file that ${what} ends the sign-in, and the next JWT is tried`, async (t) => {
    const { file, renew, world, jane, log } = await startWithAssertion(t, others)
    await renew(options)
    if (what.startsWith('lacks')) writeFileSync(file, readFileSync(file, 'utf8').slice(0, -10))

    const refused = await jane.get(`${world.url}/echo`)

    assert.equal(refused.status, 502)
    assert.match(log(), /invalid_client.*check provider\.client_id.*client_assertion/)
    await renew()
    assert.equal((await jane.get(`${world.url}/echo`)).status, 200)
  })

test('A JWT of a file that has expired by the clock of the gateway is not sent', async (t) => {
  const { file, renew, world, jane, log } = await startWithAssertion(t)
  await renew({ lifetime: '5m' })
  const forms = tokenForms(world.provider)
  world.moveClock(5 * 60_000)

  const refused = await jane.get(`${world.url}/echo`)

  assert.equal(refused.status, 503)
  assert.match(log(), new RegExp(`client_assertion\\): ${file} has expired \\(exp 20`))
  assert.equal(forms.length, 0)
})

/** A provider whose clock is two minutes ahead. */
async function rejectExpired(_ctx: unknown, claims: Readonly<Record<string, unknown>>): Promise<void> {
  const { errors } = await import('oidc-provider')
  if (Number(claims['exp']) < Date.now() / 1000 + 120) throw new errors.InvalidClientAuth('the assertion has expired')
}

/** The features of a provider that sees certificates in a field of the proxy before it. */
const mtls: NonNullable<Configuration['features']> = {
  mTLS: {
    enabled: true,
    certificateBoundAccessTokens: true,
    tlsClientAuth: true,
    selfSignedTlsClientAuth: true,
    getCertificate: (ctx) => ctx.get('x-client-certificate') || undefined,
    certificateAuthorized: () => true,
    certificateSubjectMatches: (ctx, property, expected) =>
      property === 'tls_client_auth_san_dns' && expected === 'gatehouse' && ctx.get('x-client-certificate') !== '',
  },
}

function tlsWorld(
  registration: Readonly<Record<string, unknown>>,
  method: string,
  t: TestContext,
  providerStartsDown = false,
) {
  const { server, client } = issueCertificates()
  const textOf = (file: string) => readFileSync(file, 'utf8')
  const folder = folderWith(t, { 'client.crt': client.cert, 'client.key': client.key })
  return startClient(t, {
    credentials: `client_certificate: { cert_file: ${folder}/client.crt, key_file: ${folder}/client.key }`,
    providerSettings: `token_endpoint_auth_method: ${method}\n  ca_file: ${server.ca}`,
    browserCa: client.ca,
    providerStartsDown,
    provider: {
      tls: { cert: textOf(server.cert), key: textOf(server.key) },
      adjust: withFeatures(
        mtls,
        {
          client_secret: undefined,
          token_endpoint_auth_method: method,
          tls_client_certificate_bound_access_tokens: true,
          ...registration,
        },
        { clientAuthMethods: ['tls_client_auth', 'self_signed_tls_client_auth'] },
      ),
    },
  })
}

test('A client authenticates with a certificate of an authority, and its tokens are bound to it', async (t) => {
  const journey = await tlsWorld({ tls_client_auth_san_dns: 'gatehouse' }, 'tls_client_auth', t)
  const forms = tokenForms(journey.world.provider)

  await assertWholeJourney(journey)

  assert.deepEqual([...(forms[0]?.keys() ?? [])].toSorted(), [
    'client_id',
    'code',
    'code_verifier',
    'grant_type',
    'redirect_uri',
  ])
})

test('A client authenticates with a certificate that is registered at the provider', async (t) => {
  const { client } = issueCertificates()
  const x5c = client.cert.replaceAll(/-----[A-Z ]+-----|\s/g, '')
  const { createPublicKey } = await import('node:crypto')
  const jwk = createPublicKey(client.cert).export({ format: 'jwk' })

  const journey = await tlsWorld({ jwks: { keys: [{ ...jwk, x5c: [x5c] }] } }, 'self_signed_tls_client_auth', t)

  await assertWholeJourney(journey)
})

test('A client with a certificate uses the endpoints for it', async (t) => {
  const journey = await tlsWorld({ tls_client_auth_san_dns: 'gatehouse' }, 'tls_client_auth', t, true)
  const { provider } = journey.world
  provider.bend('/.well-known/openid-configuration', (body) => {
    body['mtls_endpoint_aliases'] = {
      token_endpoint: body['token_endpoint'],
      userinfo_endpoint: body['userinfo_endpoint'],
    }
    body['token_endpoint'] = `${provider.issuer}/no-certificate/token`
    body['userinfo_endpoint'] = `${provider.issuer}/no-certificate/userinfo`
  })
  await provider.up()
  await until('the provider was found', async () => journey.log().includes('provider.found'))

  await assertWholeJourney(journey)

  assert.ok(provider.hits('/oauth/token') > 0)
  assert.equal(provider.hits('/no-certificate/token'), 0)
  assert.equal(provider.hits('/no-certificate/userinfo'), 0)
})
