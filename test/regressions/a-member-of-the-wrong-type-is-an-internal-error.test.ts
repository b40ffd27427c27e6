import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GatewayError } from '../../src/core/errors.ts'
import { verifyAccessToken } from '../../src/provider/access-token.ts'
import { Decryption } from '../../src/provider/encrypted-token.ts'
import { verifyIdToken } from '../../src/provider/id-token.ts'
import { readIntrospectionJwt, readJwtResponse, readUserinfoJwt } from '../../src/provider/jwt-response.ts'
import { verifyLogoutToken } from '../../src/provider/logout-token.ts'
import { verifySecurityEvent } from '../../src/provider/security-event.ts'
import { expectationsOf } from '../provider/expectations.ts'
import { type Json, jwt, logoutEvent, now, startSigningProvider } from '../support/signing-provider.ts'

const at = now / 1000
const others: readonly unknown[] = [7, -1, 1e308, true, null, '', 'x', [], ['x', 7], {}, { x: {} }]

type Expectations = ReturnType<typeof expectationsOf>

/** Each kind of token: what is in its header and its claims, and how it is read. */
const kinds: readonly (readonly [string, Json, Json, (token: string, expected: Expectations) => Promise<unknown>])[] = [
  [
    'ID Token',
    { typ: 'JWT' },
    { sub: 'jane', sid: 's-1', nonce: 'n-1', azp: 'orders', at_hash: 'x', auth_time: at, acr: 'mfa', amr: ['pwd'] },
    (token, expected) =>
      verifyIdToken(token, {
        ...expected,
        nonce: 'n-1',
        access_token: 'a',
        authenticatedSince: now,
        acr_values: ['mfa'],
      }),
  ],
  [
    'Logout Token',
    { typ: 'logout+jwt' },
    { sub: 'jane', sid: 's-1', jti: 'j', events: { [logoutEvent]: {} } },
    verifyLogoutToken,
  ],
  [
    'access token',
    { typ: 'at+jwt' },
    { sub: 'jane', sid: 's-1', client_id: 'cli', azp: 'cli', scope: 'x', jti: 'j', cnf: {}, events: {}, acr: 'mfa' },
    (token, { issuer, clockToleranceMs, keys }) =>
      verifyAccessToken(token, {
        ...{ keys, now, accepts: { audience: ['orders'], types: ['at+jwt'] } },
        config: { issuer, clockToleranceMs, profile: undefined },
      }),
  ],
  [
    'security event',
    { typ: 'secevent+jwt' },
    { jti: 'j', sub_id: { format: 'opaque', id: 'x' }, events: { 'https://e.example/a': {} }, txn: 't', toe: at },
    verifySecurityEvent,
  ],
  [
    'authorization response',
    { typ: 'JWT' },
    { code: 'c', state: 's', error: 'e' },
    (token, expected) => readJwtResponse(new URLSearchParams({ response: token }), expected),
  ],
  [
    'introspection response',
    { typ: 'token-introspection+jwt' },
    { token_introspection: { active: true } },
    (token, { issuer, clockToleranceMs, keys, client_id }) =>
      readIntrospectionJwt(token, {
        ...{ endpoint: 'introspection', keys, decryption: new Decryption({}), now },
        config: { issuer, client_id, clockToleranceMs, profile: undefined, userinfo_signed_response_alg: undefined },
      }),
  ],
  [
    'UserInfo',
    { typ: 'JWT' },
    { sub: 'jane', email: 'jane@example.com' },
    (token, { issuer, clockToleranceMs, keys, client_id }) =>
      readUserinfoJwt(token, {
        ...{ endpoint: 'userinfo', keys, decryption: new Decryption({}), now },
        config: { issuer, client_id, clockToleranceMs, profile: undefined, userinfo_signed_response_alg: 'RS256' },
      }),
  ],
]

for (const [kind, header, claims, read] of kinds)
  test(`A member of another type makes no internal error: ${kind}`, async (t) => {
    const provider = await startSigningProvider(t)
    const expected = expectationsOf(t, provider)
    const standard = { iss: provider.issuer, aud: 'orders', iat: at, exp: at + 120, nbf: at, jti: 'j', ...claims }
    const tokens = others.flatMap((value) => [
      ...['typ', 'kid', 'cty', 'crit', 'b64', 'jwk', 'jku', 'x5c', 'x5t', 'zip', 'alg'].map(
        (name) => [name, value, () => jwt(standard, provider.key, { ...header, [name]: value })] as const,
      ),
      ...Object.keys(standard).map(
        (name) => [name, value, () => jwt({ ...standard, [name]: value }, provider.key, header)] as const,
      ),
    ])

    for (const [name, value, token] of tokens) {
      const outcome = await read(token(), expected).then(
        () => undefined,
        (error: unknown) => error,
      )
      const what = `${name}: ${JSON.stringify(value)}: ${String(outcome)}`
      assert.ok(outcome === undefined || outcome instanceof GatewayError, what)
    }
  })
