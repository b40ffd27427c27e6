import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import type { Configuration } from 'oidc-provider'
import { assertWholeJourney, type ClientJourney, startClient } from '../support/client-journey.ts'
import { clientKeyPair, withFeatures } from '../support/client-keys.ts'
import { folderWith } from '../support/command-line.ts'
import { replacePauses } from '../support/pauses.ts'
import { tlsProvider } from '../support/tls-provider.ts'

const providerKey = clientKeyPair('ES256', 'provider')

interface Profile {
  /** Features of the provider beside those of the profile. */
  readonly features?: NonNullable<Configuration['features']>
  /** The registration of the client. */
  readonly client?: Readonly<Record<string, unknown>>
  /** YAML below `provider:`. */
  readonly settings: readonly string[]
  readonly credentials?: string
}

/** A provider that enforces FAPI 2.0, and a gateway with the profile. */
function startFapi(
  t: TestContext,
  { features = {}, client = {}, settings, credentials }: Profile,
): Promise<ClientJourney> {
  const pair = clientKeyPair('ES256')
  const file = join(folderWith(t, { 'client_key.pem': pair.pem }), 'client_key.pem')
  const { tls, browserCa, caFile } = tlsProvider(t)
  return startClient(t, {
    credentials: credentials ?? `client_key: { file: ${file}, kid: key-ES256 }`,
    providerSettings: [caFile, ...settings].join('\n  '),
    browserCa,
    provider: {
      tls,
      adjust: withFeatures(
        {
          fapi: { enabled: true, profile: '2.0' },
          pushedAuthorizationRequests: { enabled: true, requirePushedAuthorizationRequests: true },
          dPoP: { enabled: true },
          ...features,
        },
        {
          client_secret: undefined,
          token_endpoint_auth_method: 'private_key_jwt',
          token_endpoint_auth_signing_alg: 'ES256',
          dpop_bound_access_tokens: true,
          id_token_signed_response_alg: 'ES256',
          jwks: { keys: [pair.publicJwk] },
          ...client,
        },
        {
          jwks: { keys: [providerKey.privateJwk] },
          enabledJWA: { idTokenSigningAlgValues: ['ES256'], authorizationSigningAlgValues: ['ES256'] },
          clientAuthMethods: [features.mTLS === undefined ? 'private_key_jwt' : 'tls_client_auth'],
        } as Configuration,
      ),
    },
  })
}

const securityProfile = {
  settings: [
    'profile: fapi2',
    'token_endpoint_auth_method: private_key_jwt',
    'pushed_authorization_requests: always',
    'dpop: true',
  ],
}

test('FAPI 2.0 Security Profile with a private key and DPoP: a whole journey', async (t) => {
  const journey = await startFapi(t, securityProfile)

  const url = new URL(await journey.jane.until(`${journey.world.url}/echo`, '/oauth/authorize'))

  assert.deepEqual([...url.searchParams.keys()].toSorted(), ['client_id', 'request_uri'])
  await assertWholeJourney(journey)
})

test('FAPI 2.0 Security Profile with a certificate: a whole journey', async (t) => {
  const { clientCertificate } = tlsProvider(t)
  const journey = await startFapi(t, {
    credentials: clientCertificate,
    settings: [
      'profile: fapi2',
      'token_endpoint_auth_method: tls_client_auth',
      'pushed_authorization_requests: always',
    ],
    client: {
      token_endpoint_auth_method: 'tls_client_auth',
      token_endpoint_auth_signing_alg: undefined,
      dpop_bound_access_tokens: undefined,
      tls_client_certificate_bound_access_tokens: true,
      tls_client_auth_san_dns: 'gatehouse',
      jwks: undefined,
    },
    features: {
      mTLS: {
        enabled: true,
        certificateBoundAccessTokens: true,
        tlsClientAuth: true,
        getCertificate: (ctx) => ctx.get('x-client-certificate') || undefined,
        certificateAuthorized: () => true,
        certificateSubjectMatches: (ctx) => ctx.get('x-client-certificate') !== '',
      },
    },
  })
  let bound: unknown
  journey.world.provider.bend('/oauth/token', (body) => void (bound = body['token_type']))

  await assertWholeJourney(journey)

  assert.equal(bound, 'Bearer')
})

test('FAPI 2.0 Message Signing: a whole journey with signed requests and responses', async (t) => {
  const journey = await startFapi(t, {
    settings: [
      'profile: fapi2_message_signing',
      ...securityProfile.settings.slice(1),
      'signed_requests: true',
      'response_mode: jwt',
    ],
    client: { request_object_signing_alg: 'ES256', authorization_signed_response_alg: 'ES256' },
    features: {
      requestObjects: { enabled: true, requireSignedRequestObject: true },
      jwtResponseModes: { enabled: true },
    },
  })
  const { world } = journey

  const back = new URL(await world.browser('zoe').until(`${world.url}/echo`, '/.gatehouse/callback'))

  assert.deepEqual([...back.searchParams.keys()], ['response'])
  const response = back.searchParams.get('response') ?? ''
  assert.equal(decodeProtectedHeader(response).alg, 'ES256')
  assert.equal(decodeJwt(response).iss, world.provider.issuer)
  await assertWholeJourney(journey)
})

for (const [what, change, said] of [
  ['no iss in responses', (body) => delete body['authorization_response_iss_parameter_supported'], /iss.*§5\.3\.3\.2/],
  ['another algorithm', (body) => (body['id_token_signing_alg_values_supported'] = ['RS256']), /RS256.*§5\.4\.1/],
  ['no PKCE with S256', (body) => (body['code_challenge_methods_supported'] = ['plain']), /S256.*§5\.3\.3\.2/],
  ['no endpoint for pushed requests', (body) => delete body['pushed_authorization_request_endpoint'], /no pushed_/],
  ['an endpoint with http', (body) => (body['token_endpoint'] = 'http://127.0.0.1/token'), /not an https URL/],
] as const satisfies readonly (readonly [string, (body: Record<string, unknown>) => unknown, RegExp])[])
  test(`With the profile, a provider with ${what} is not used`, async (t) => {
    replacePauses(t, { waitForDependenciesMs: 300 })
    const { world, jane, log } = await startFapi(t, securityProfile)
    world.provider.bend('/.well-known/openid-configuration', (body) => void change(body))
    const { url } = await world.startReplica()

    await jane.send(`${url}/.gatehouse/sign-in`)

    assert.match(log(), said)
  })

test('With the profile, an authorization response without iss is refused', async (t) => {
  const { world, jane, log } = await startFapi(t, securityProfile)
  const back = new URL(await jane.until(`${world.url}/echo`, '/.gatehouse/callback'))
  back.searchParams.delete('iss')

  const page = await jane.send(back.href)

  assert.equal(page.status, 502)
  assert.equal(world.provider.hits('/oauth/token'), 0)
  assert.match(log(), /iss/)
})
