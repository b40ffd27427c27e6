import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose'
import type { ProviderConfig } from '../../../src/config/model/provider.ts'
import type { IdentityAlgorithm, SignedIdentityConfig } from '../../../src/config/model/upstream.ts'
import { type Claims, parseClaimPath } from '../../../src/core/claims.ts'
import { SignedIdentities } from '../../../src/identity/signed/signed-identity.ts'
import { createSigningKey, identityType } from '../../../src/identity/signed/signing-key.ts'
import type { RotatingKey } from '../../../src/keys/rotating-key.ts'
import type { SessionRecord } from '../../../src/session/record/record.ts'

const start = Date.UTC(2026, 0, 1)
const externalUrl = new URL('https://wiki.example.com')
const lifetimeMs = 300_000

const provider = {} as ProviderConfig

function setUp(alg: IdentityAlgorithm = 'ES256', others: readonly ProviderConfig[] = []) {
  let now = start
  let key: RotatingKey | undefined = createSigningKey(alg, start)
  const clock = { now: () => now }
  const keys = { has: () => key !== undefined, inUse: () => key }
  return {
    identities: new SignedIdentities({ externalUrl, providers: [provider, ...others] }, { keys, clock }),
    pass: (ms: number) => void (now += ms),
    replaceKey: (next: RotatingKey | undefined) => void (key = next),
    jwks: (): JSONWebKeySet => ({ keys: [{ ...key?.publicJwk, kid: key?.kid ?? '', alg, use: 'sig' }] }),
  }
}

function config(more: Partial<SignedIdentityConfig> = {}, ...names: readonly string[]): SignedIdentityConfig {
  const claims = names.map((name) => ({ name, path: parseClaimPath(name) }))
  return { header: 'X-Gatehouse-Identity', audience: 'wiki', lifetimeMs, algorithm: 'ES256', claims, ...more }
}

function recordOf(claims: Claims = {}, absolute_expires_at = start + 86_400_000): SessionRecord {
  return {
    ...{ iss: 'https://id.example.com', sub: 'jane', sid: 'secret-sid', created_at: start, absolute_expires_at },
    tokens: { access_token: 'at', id_token: 'it', obtained_at: start },
    claims: { iss: 'https://id.example.com', sub: 'jane', sid: 'secret-sid', ...claims },
    userinfo_read_at: start,
  }
}

function tokenOf(identity: ReturnType<SignedIdentities['of']>): string {
  assert.ok('token' in identity, JSON.stringify(identity))
  return identity.token
}

for (const algorithm of ['ES256', 'EdDSA'] as const)
  test(`A verifier accepts the JWT with ${algorithm}, for its audience and type only`, async () => {
    const { identities, jwks } = setUp(algorithm)
    const token = tokenOf(
      identities.of(
        recordOf({ email: 'jane@example.com', groups: ['a', 'ü'] }),
        config({ algorithm }, 'email', 'groups'),
      ),
    )
    const expected = {
      ...{ issuer: 'https://wiki.example.com', audience: 'wiki', typ: identityType, algorithms: [algorithm] },
      currentDate: new Date(start),
    }
    const verify = (more: object) => jwtVerify(token, createLocalJWKSet(jwks()), { ...expected, ...more })

    const { payload, protectedHeader } = await verify({})
    assert.deepEqual(payload, {
      ...{ iss: 'https://wiki.example.com', sub: 'jane', aud: 'wiki' },
      ...{ iat: start / 1000, exp: (start + lifetimeMs) / 1000 },
      ...{ email: 'jane@example.com', groups: ['a', 'ü'] },
    })
    assert.deepEqual(Object.keys(protectedHeader).toSorted(), ['alg', 'kid', 'typ'])
    await assert.rejects(() => verify({ audience: 'orders' }))
    await assert.rejects(() => verify({ typ: 'JWT' }))
    await assert.rejects(() => verify({ currentDate: new Date(start + lifetimeMs) }))
  })

test('With several providers the JWT also says whose person it is about', () => {
  const { identities } = setUp('ES256', [provider])
  const token = tokenOf(identities.of(recordOf({ idp: 'https://somebody-else.example.com' }), config({}, 'idp')))

  assert.equal(decodeJwt(token)['idp'], 'https://id.example.com')
})

test('Only the claims that are listed are revealed', () => {
  const { identities } = setUp()
  const token = tokenOf(identities.of(recordOf({ email: 'jane@example.com' }), config()))

  assert.deepEqual(Object.keys(decodeJwt(token)).toSorted(), ['aud', 'exp', 'iat', 'iss', 'sub'])
  assert.ok(!JSON.stringify([decodeJwt(token), decodeProtectedHeader(token)]).includes('secret-sid'))
})

test('Claims have their names and types, and a claim without a value is absent', () => {
  const { identities } = setUp()
  const record = recordOf({ fields: { costCentre: 'C-7', levels: [1, 2] }, verified: false })

  const token = tokenOf(
    identities.of(record, config({}, 'fields.costCentre', 'fields.levels', 'verified', 'absent', '__proto__')),
  )

  const payload = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()
  assert.match(payload, /"fields.costCentre":"C-7","fields.levels":\[1,2\],"verified":false/)
  assert.doesNotMatch(payload, /absent/)
})

test('An integer that has lost digits is left out, because it may be the number of another person', () => {
  const { identities } = setUp()
  const claims = JSON.parse('{ "id": 9007199254740993, "deep": { "id": 9007199254740993 } }') as Claims

  const identity = identities.of(recordOf(claims), config({}, 'id', 'deep'))

  assert.deepEqual(decodeJwt(tokenOf(identity))['id'], undefined)
  assert.deepEqual('dropped' in identity ? identity.dropped.map(({ why }) => why) : [], [
    'id: an integer beyond 2^53, which has lost digits',
    'deep: an integer beyond 2^53, which has lost digits',
  ])
})

test('Requests share a JWT until half of its life is over', () => {
  const { identities, pass } = setUp()
  const [record, settings] = [recordOf(), config()]
  const first = identities.of(record, settings)

  pass(lifetimeMs / 2 - 1)
  assert.equal(identities.of(record, settings), first)
  pass(1)
  const second = tokenOf(identities.of(record, settings))
  assert.notEqual(second, tokenOf(first))
  assert.equal(decodeJwt(second).exp, (start + lifetimeMs * 1.5) / 1000)
  assert.notEqual(tokenOf(identities.of(record, config({ audience: 'other' }))), second)
})

test('Other claims make another JWT at once', () => {
  const { identities } = setUp()
  const settings = config({}, 'email')
  const before = tokenOf(identities.of(recordOf({ email: 'a@example.com' }), settings))
  const after = tokenOf(identities.of(recordOf({ email: 'b@example.com' }), settings))

  assert.equal(decodeJwt(before)['email'], 'a@example.com')
  assert.equal(decodeJwt(after)['email'], 'b@example.com')
})

test('A JWT ends with the session at the latest, and is then not signed for each request', () => {
  const { identities, pass } = setUp()
  const record = recordOf({}, start + 200_000)
  const settings = config()
  const first = identities.of(record, settings)

  assert.equal(decodeJwt(tokenOf(first)).exp, (start + 200_000) / 1000)
  pass(199_000)
  assert.equal(identities.of(record, settings), first)
})

test('A clock that was set back does not keep a JWT of the future', () => {
  const { identities, pass } = setUp()
  const [record, settings] = [recordOf(), config()]
  const first = tokenOf(identities.of(record, settings))

  pass(-600_000)
  assert.notEqual(tokenOf(identities.of(record, settings)), first)
})

test('Without a key, or with a JWT that is too long, there is a reason instead', () => {
  const { identities, replaceKey } = setUp()
  const settings = config({}, 'groups')
  const long = recordOf({ groups: ['x'.repeat(16 * 1024)] })
  assert.deepEqual(identities.of(long, settings), { why: 'longer than 16384 bytes' })

  const record = recordOf()
  replaceKey(undefined)
  assert.deepEqual(identities.of(record, settings), { why: 'there is no signing key yet' })
  replaceKey(createSigningKey('ES256', start))
  assert.ok('token' in identities.of(record, settings))
})
