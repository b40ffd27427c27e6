import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { verifyIdToken } from '../../src/provider/id-token.ts'
import { ecKey, jwt, logoutEvent, now, startSigningProvider, type Json } from '../support/signing-provider.ts'
import { expectationsOf } from './expectations.ts'
import { forgeries, wrongClaims } from './forged-tokens.ts'

const at = now / 1000
const refused = { code: 'ERR_SIGN_IN_RESPONSE' }

for (const [why, forge] of forgeries)
  test(`an ID Token is refused: ${why}`, async (t) => {
    const provider = await startSigningProvider(t)
    const claims = { iss: provider.issuer, aud: 'orders', sub: 'jane', nonce: 'n-1', iat: at, exp: at + 120 }
    const token = forge(claims, provider)

    await assert.rejects(verifyIdToken(token, { ...expectationsOf(t, provider), nonce: 'n-1' }), refused)
  })

test('The reason of a token with an unknown key says where the key is missing', async (t) => {
  const provider = await startSigningProvider(t)
  const token = jwt({ iss: provider.issuer, aud: 'orders', sub: 'jane', iat: at, exp: at + 120 }, ecKey('other'), {
    alg: 'RS256',
  })

  await assert.rejects(verifyIdToken(token, { ...expectationsOf(t, provider), nonce: 'n-1' }), {
    message: /ERR_JWKS_NO_MATCHING_KEY\); jwks_uri of the provider does not have the key/,
  })
})

for (const [why, claims] of [
  ...wrongClaims,
  ['"exp" is missing', () => ({ exp: undefined })],
  ['"sub" is missing', () => ({ sub: undefined })],
  ['"nonce" is missing', () => ({ nonce: undefined })],
  ['"nonce" is another', () => ({ nonce: 'n-2' })],
  ['"nonce" is a list', () => ({ nonce: ['n-1'] })],
  ['"azp" names another client', () => ({ azp: 'billing' })],
  ['"azp" is nothing', () => ({ azp: null })],
  ['several audiences, but no "azp"', () => ({ aud: ['orders', 'billing'] })],
  ['several audiences, and "azp" is another', () => ({ aud: ['orders', 'billing'], azp: 'billing' })],
  ['"events" is present', () => ({ events: { [logoutEvent]: {} } })],
] satisfies readonly (readonly [string, (at: number, issuer: string) => Json])[])
  test(`an ID Token is refused: ${why}`, async (t) => {
    const provider = await startSigningProvider(t)
    const token = provider.idToken(claims(at, provider.issuer))

    await assert.rejects(verifyIdToken(token, { ...expectationsOf(t, provider), nonce: 'n-1' }), refused)
  })

for (const [what, claims, isRefused] of [
  ['is missing', {}, true],
  ['is text', { auth_time: String(at) }, true],
  ['lies further back', { auth_time: at - 91 }, true],
  ['lies as far back as it may, with the tolerance of clocks', { auth_time: at - 90 }, false],
  ['is that of a fresh sign-in', { auth_time: at }, false],
] satisfies readonly (readonly [string, Json, boolean])[])
  test(`with max_age an ID Token is ${isRefused ? 'refused' : 'taken'} whose "auth_time" ${what}`, async (t) => {
    const provider = await startSigningProvider(t)
    const expected = { ...expectationsOf(t, provider), nonce: 'n-1', authenticatedSince: (at - 60) * 1000 }

    const verified = verifyIdToken(provider.idToken(claims), expected)

    if (isRefused) await assert.rejects(verified, /"auth_time"/)
    else assert.equal((await verified).sub, 'jane')
  })

for (const typ of ['logout+jwt', 'application/logout+jwt', 'at+jwt', 'AT+JWT', 'secevent+jwt', 'dpop+jwt'])
  test(`an ID Token is refused: its "typ" is ${typ}`, async (t) => {
    const provider = await startSigningProvider(t)
    const token = provider.idToken({}, { typ })

    await assert.rejects(verifyIdToken(token, { ...expectationsOf(t, provider), nonce: 'n-1' }), refused)
  })

for (const [what, claims, header] of [
  ['as it should be', {}, {}],
  ['without "typ"', {}, { typ: undefined }],
  ['for us and others, and issued to us', { aud: ['billing', 'orders'], azp: 'orders' }, {}],
  ['for a list of us alone', { aud: ['orders'] }, {}],
  ['by a clock that is slow', { iat: at - 150, exp: at - 29 }, {}],
  ['by a clock that is fast', { iat: at + 29, nbf: at + 29 }, {}],
  ['without "kid", when there is one key', {}, { kid: undefined }],
] satisfies readonly (readonly [string, Json, Json])[])
  test(`an ID Token says who it is: ${what}`, async (t) => {
    const provider = await startSigningProvider(t)
    const token = provider.idToken(claims, header)

    const who = await verifyIdToken(token, { ...expectationsOf(t, provider), nonce: 'n-1' })

    assert.deepEqual(who, { iss: provider.issuer, sub: 'jane', sid: 's-1', authentication: {} })
  })

test('an ID Token without "sid" gives a session without "sid"', async (t) => {
  const provider = await startSigningProvider(t)

  const who = await verifyIdToken(provider.idToken({ sid: undefined }), expectationsOf(t, provider))

  assert.deepEqual(who, { iss: provider.issuer, sub: 'jane', authentication: {} })
})

test('any character may stand in "sub" and "sid"', async (t) => {
  const provider = await startSigningProvider(t)
  const sub = 'jane\r\nX-Admin: 1'
  const sid = 'a:b*c{d}\u0000'

  const who = await verifyIdToken(provider.idToken({ sub, sid }), expectationsOf(t, provider))

  assert.deepEqual(who, { iss: provider.issuer, sub, sid, authentication: {} })
})

for (const [what, claims, authentication] of [
  ['as it should be', { acr: 'mfa', auth_time: 1_760_000_000 }, { acr: 'mfa', auth_time: 1_760_000_000_000 }],
  ['of unexpected types', { acr: 2, auth_time: '1760000000' }, {}],
  ['null', { acr: null, auth_time: null }, {}],
  ['in ms instead of s', { auth_time: at * 1000 }, {}],
] satisfies readonly (readonly [string, Json, Json])[])
  test(`an ID Token says how the person authenticated: acr and auth_time ${what}`, async (t) => {
    const provider = await startSigningProvider(t)

    const who = await verifyIdToken(provider.idToken(claims), expectationsOf(t, provider))

    assert.deepEqual(who.authentication, authentication)
  })

for (const acr of ['pwd', 'MFA', 'mfa phr', '', undefined, null, ['mfa'], 1])
  test(`an ID Token whose acr is ${JSON.stringify(acr)} does not meet acr_values`, async (t) => {
    const provider = await startSigningProvider(t)
    const expected = { ...expectationsOf(t, provider), acr_values: ['mfa', 'phr'] }

    await assert.rejects(verifyIdToken(provider.idToken({ acr }), expected), { code: 'ERR_STEP_UP_UNMET' })
  })

test('a refreshed ID Token must have the "sub" of the session', async (t) => {
  const provider = await startSigningProvider(t)
  const token = provider.idToken({ sub: 'samir', nonce: undefined })

  await assert.rejects(verifyIdToken(token, { ...expectationsOf(t, provider), sub: 'jane' }), {
    code: 'ERR_SIGN_IN_RESPONSE',
    message: 'ID Token refused: "sub" is not that of the session',
  })
})

test('a clock that differs by minutes is named in the error', async (t) => {
  const provider = await startSigningProvider(t)
  const token = provider.idToken({ iat: at + 300, exp: at + 600 })

  await assert.rejects(verifyIdToken(token, expectationsOf(t, provider)), {
    message:
      '"iat" is 300 s ahead of the clock of this machine: synchronize the clocks of this machine and of the provider',
  })
})

test('when the keys are unavailable, the token is not rejected and the person may try again', async (t) => {
  const provider = await startSigningProvider(t)
  provider.respond('/jwks', (_req, res) => res.writeHead(500).end())

  await assert.rejects(verifyIdToken(provider.idToken(), expectationsOf(t, provider)), {
    code: 'ERR_PROVIDER_UNAVAILABLE',
  })
})

test('a client that is registered with ES256 rejects RS256', async (t) => {
  const provider = await startSigningProvider(t)
  const token = jwt({ iss: provider.issuer, aud: 'orders', sub: 'jane', iat: at, exp: at + 60 }, provider.key)

  await assert.rejects(verifyIdToken(token, { ...expectationsOf(t, provider), algorithm: 'ES256' }), refused)
})

for (const [algorithm, key, sha] of [
  ['RS256', undefined, 'sha256'],
  ['ES256', ecKey('ec'), 'sha256'],
] as const)
  for (const [what, hashOf, isRefused] of [
    ['that of the access token', 'at-1', false],
    ['that of another one', 'at-2', true],
  ] as const)
    test(`an ID Token is ${isRefused ? 'refused' : 'taken'} whose "at_hash" is ${what}: ${algorithm}`, async (t) => {
      const provider = await startSigningProvider(t)
      provider.publish((key ?? provider.key).jwk)
      const at_hash = createHash(sha).update(hashOf).digest().subarray(0, 16).toString('base64url')
      const expected = { ...expectationsOf(t, provider), algorithm, nonce: 'n-1', access_token: 'at-1' }

      const verified = verifyIdToken(provider.idToken({ at_hash }, {}, key), expected)

      if (isRefused) await assert.rejects(verified, /"at_hash"/)
      else assert.equal((await verified).sub, 'jane')
    })

for (const at_hash of [null, 1, '', ['AAAA']])
  test(`an ID Token is refused whose "at_hash" is ${JSON.stringify(at_hash)}`, async (t) => {
    const provider = await startSigningProvider(t)
    const expected = { ...expectationsOf(t, provider), nonce: 'n-1', access_token: 'at-1' }

    await assert.rejects(verifyIdToken(provider.idToken({ at_hash }), expected), /"at_hash"/)
  })
