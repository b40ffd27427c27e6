import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { readIntrospection, verifyAccessToken } from '../../src/provider/access-token.ts'
import { ecKey, jwt, logoutEvent, now, startSigningProvider, type Json } from '../support/signing-provider.ts'
import { expectationsOf } from './expectations.ts'
import { forgeries, wrongClaims } from './forged-tokens.ts'

const at = now / 1000
const refused = { code: 'ERR_TOKEN_INVALID' }

type Provider = Awaited<ReturnType<typeof startSigningProvider>>

function expected(t: TestContext, provider: Provider, accepts: { types?: readonly string[] } = {}) {
  const { keys, clockToleranceMs } = expectationsOf(t, provider)
  const config = { issuer: provider.issuer, clockToleranceMs, profile: undefined }
  return { config, keys, accepts: { audience: ['orders'], types: ['at+jwt'], ...accepts }, now }
}

const claimsOf = ({ issuer }: Provider) => ({
  ...{ iss: issuer, aud: 'orders', sub: 'jane', sid: 's-1', client_id: 'cli', iat: at, exp: at + 120 },
})
const withClaims = (provider: Provider, changes: Json) =>
  JSON.parse(JSON.stringify({ ...claimsOf(provider), ...changes })) as Json
const type = { typ: 'at+jwt' }

// An access token may have another algorithm than ID Tokens. The key of the provider decides.
const forgedTokens = forgeries.filter(([why]) => !why.includes('another algorithm than the registered one'))

for (const [why, forge] of forgedTokens)
  test(`an access token is rejected: ${why}`, async (t) => {
    const provider = await startSigningProvider(t)
    const forged = forge(claimsOf(provider), provider)

    await assert.rejects(
      verifyAccessToken(forged, expected(t, provider, { types: ['at+jwt', 'jwt', 'none'] })),
      refused,
    )
    assert.equal(provider.hits('/strange-keys'), 0)
  })

for (const [why, claims] of [
  ...wrongClaims,
  ['"exp" is missing', () => ({ exp: undefined })],
  ['"sub" is missing, and "client_id" does not replace it', () => ({ sub: undefined })],
  ['it is an ID Token, because it has a "nonce"', () => ({ nonce: 'n' })],
  ['it is an ID Token, because it has "at_hash"', () => ({ at_hash: 'x' })],
  ['it is a Logout Token', () => ({ events: { [logoutEvent]: {} } })],
  ['it is an ID Token of Keycloak', () => ({ typ: 'ID' })],
  ['it is a refresh token of Keycloak', () => ({ typ: 'Refresh' })],
  ['it is bound to a key', () => ({ cnf: { jkt: 'x' } })],
] satisfies readonly (readonly [string, (at: number, issuer: string) => Json])[])
  test(`an access token is rejected: ${why}`, async (t) => {
    const provider = await startSigningProvider(t)
    const token = jwt(withClaims(provider, claims(at, provider.issuer)), provider.key, type)

    await assert.rejects(verifyAccessToken(token, expected(t, provider)), refused)
  })

for (const typ of ['JWT', 'id_token+jwt', 'logout+jwt', 'at', undefined])
  test(`an access token is rejected unless types says otherwise: its "typ" is ${typ}`, async (t) => {
    const provider = await startSigningProvider(t)
    const token = jwt(claimsOf(provider), provider.key, { typ })

    await assert.rejects(verifyAccessToken(token, expected(t, provider)), refused)
  })

for (const [typ, types] of [
  ['at+jwt', ['at+jwt']],
  ['application/at+JWT', ['at+jwt']],
  ['JWT', ['jwt']],
  [undefined, ['none']],
] as const)
  test(`an access token with the "typ" ${typ} is accepted with types ${types.join()}`, async (t) => {
    const provider = await startSigningProvider(t)

    const token = await verifyAccessToken(
      jwt(claimsOf(provider), provider.key, { typ }),
      expected(t, provider, { types }),
    )

    assert.deepEqual([token.sub, token.sid, token.expiresAt], ['jane', 's-1', now + 120_000])
    assert.equal(token.claims['client_id'], 'cli')
  })

test('an access token may have another algorithm than ID Tokens', async (t) => {
  const provider = await startSigningProvider(t)
  const elliptic = ecKey('elliptic')
  provider.publish(provider.key.jwk, elliptic.jwk)

  assert.equal((await verifyAccessToken(jwt(claimsOf(provider), elliptic, type), expected(t, provider))).sub, 'jane')
})

test('a client that acts for itself may have azp instead of client_id', async (t) => {
  const provider = await startSigningProvider(t)
  const claims = withClaims(provider, { client_id: undefined, azp: 'cron', sub: 'cron' })

  const token = await verifyAccessToken(jwt(claims, provider.key, type), expected(t, provider))

  assert.deepEqual([token.sub, token.claims['client_id']], ['cron', 'cron'])
})

test('a token without keys to verify it says that the provider is unavailable', async (t) => {
  const provider = await startSigningProvider(t)
  provider.respond('/jwks', (_req, res) => void res.writeHead(500).end())

  await assert.rejects(verifyAccessToken(jwt(claimsOf(provider), provider.key, type), expected(t, provider)), {
    code: 'ERR_PROVIDER_UNAVAILABLE',
  })
})

for (const [why, changes] of [
  ['it is not active', { active: false }],
  ['"active" is text', { active: 'true' }],
  ['"active" is missing', { active: undefined }],
  ['"iss" is another', { iss: 'https://id.example.com' }],
  ['"aud" is missing', { aud: undefined }],
  ['"aud" is another', { aud: ['billing'] }],
  ['"exp" has passed', { exp: at - 31 }],
  ['"exp" is text', { exp: String(at + 100) }],
  ['"nbf" lies ahead', { nbf: at + 31 }],
  ['it is about a refresh token', { token_type: 'refresh_token' }],
  ['it is bound to a key', { token_type: 'DPoP' }],
  ['it is bound to a key by cnf', { cnf: { 'x5t#S256': 'x' } }],
  ['nobody is named', { sub: undefined, client_id: undefined }],
] as const)
  test(`an introspection is rejected: ${why}`, async (t) => {
    const provider = await startSigningProvider(t)
    const response = withClaims(provider, { active: true, token_type: 'Bearer', ...changes })

    assert.throws(() => readIntrospection(response, 'opaque', expected(t, provider)), refused)
  })

test('an introspection about another token is rejected', async (t) => {
  const provider = await startSigningProvider(t)
  const token = jwt({ ...claimsOf(provider), jti: 'one' }, provider.key, type)
  const response = (jti: string) => ({ ...claimsOf(provider), active: true, jti })

  assert.throws(() => readIntrospection(response('two'), token, expected(t, provider)), refused)
  assert.equal(readIntrospection(response('one'), token, expected(t, provider)).sub, 'jane')
})
