import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parsePathPattern } from '../../src/core/patterns.ts'
import { canonicalName, reservedNames } from '../../src/identity/reserved-names.ts'

const targetsAt = (...texts: readonly string[]) =>
  texts.map((text) => ({ url: new URL(text), socketPath: undefined, weight: 1, backup: false }))
const headers = ['X-User-Sub', 'Remote-User'].map((name) => ({
  name,
  source: { kind: 'claim' as const, path: ['sub'] },
  join: ',',
  encode: 'utf8' as const,
  maxBytes: 100,
  tooLong: 'omit' as const,
  required: false,
}))

const upstream = {
  targets: targetsAt('http://127.0.0.1:3000'),
  headers,
  removedFields: [],
  rules: [],
  signedIdentity: undefined,
}

for (const spoofed of [
  'x-user-sub',
  'X-USER-SUB',
  'X_User_Sub',
  'x-user_sub',
  'X.User.Sub',
  'X-User--Sub',
  '-X-User-Sub',
  'X-User-Sub_',
  "X-User-Sub'",
  'REMOTE_USER',
]) {
  test(`A client cannot send the reserved header ${spoofed}`, () => {
    assert.ok(reservedNames({ ...upstream, rules: [] }, []).has(canonicalName(spoofed)))
  })
}

for (const spoofed of ['x-gatehouse-identity', 'X_Gatehouse_Identity', 'X-Gatehouse--Identity', 'x.gatehouse.identity'])
  test(`A client cannot send ${spoofed}, even to an upstream without a signed identity`, () => {
    assert.ok(reservedNames(upstream, []).has(canonicalName(spoofed)))
  })

test('The header with the signed identity is reserved under its configured name, for the whole application', () => {
  const signed = {
    ...upstream,
    signedIdentity: { header: 'X-Wiki-Jwt', audience: 'wiki', lifetimeMs: 1, claims: [], algorithm: 'ES256' as const },
  }
  for (const names of [reservedNames(signed, []), reservedNames(upstream, [upstream, signed])])
    for (const spoofed of ['x-wiki-jwt', 'X_Wiki_JWT']) assert.ok(names.has(canonicalName(spoofed)))
})

test('Other headers are not reserved', () => {
  for (const name of ['X-User-Subject', 'X-UserSub', 'User-Sub', 'Remote-User-2', '_', ''])
    assert.equal(reservedNames({ ...upstream, rules: [] }, []).has(canonicalName(name)), false, name)
})

test('Fields that request_headers removes are reserved for the whole application, but none that frames a request', () => {
  const removing = { ...upstream, headers: [], removedFields: ['X-Deployer-User', 'Content-*', 'Authorization'] }
  const [own, theirs] = [reservedNames(removing, []), reservedNames({ ...upstream, headers: [] }, [removing])]

  for (const names of [own, theirs])
    for (const spoofed of ['x-deployer-user', 'X_Deployer_User', 'Content-Type', 'content_md5'])
      assert.ok(names.has(canonicalName(spoofed)), spoofed)
  // Without it, a request would have no content.
  for (const names of [own, theirs]) assert.ok(!names.has('content-length'))
  // Another path of the application may accept a token of the client.
  assert.deepEqual([own.has('authorization'), theirs.has('authorization')], [true, false])
})

test('A header that overrides the method is reserved when a rule depends on the method', () => {
  const rule = { path: parsePathPattern('/*'), access: 'signed_in', unauthenticated: 'auto', require: [] } as const

  const names = reservedNames({ ...upstream, rules: [{ ...rule, methods: ['GET'] }] }, [])

  assert.ok(names.has(canonicalName('X-HTTP-Method-Override')))
  assert.ok(!reservedNames({ ...upstream, rules: [{ ...rule, methods: undefined }] }, []).has('x-http-method-override'))
})

const methods = { kind: 'methods', methods: ['GET'] } as const
const rule = { path: parsePathPattern('/*'), methods: undefined, access: 'signed_in', unauthenticated: 'auto' } as const

for (const [what, settings] of [
  ['a policy decision point', { authorizeWith: { url: new URL('http://127.0.0.1:8181') } as never }],
  ['require', { rules: [{ ...rule, require: [methods] }] }],
  ['any of a requirement', { rules: [{ ...rule, require: [{ kind: 'any', any: [methods] }] }] }],
  [
    'all and not of a requirement',
    { rules: [{ ...rule, require: [{ kind: 'all', all: [{ kind: 'not', not: methods }] }] }] },
  ],
  [
    'unless of maintenance',
    { rules: [{ ...rule, require: [], respond: { kind: 'maintenance', unless: [methods], retryAfterMs: 1 } }] },
  ],
  [
    'a logout link',
    {
      rules: [],
      logout: {
        ...{ paths: [{ path: rule.path, query: [], methods: ['DELETE'] }], passFirst: false, cookies: [] },
        call: undefined,
      },
    },
  ],
] as const)
  test(`A client cannot override the method where ${what} depends on it`, () => {
    const names = reservedNames({ ...upstream, rules: [], ...settings }, [])
    for (const name of ['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override', 'X_HTTP_Method_Override'])
      assert.ok(names.has(canonicalName(name)), name)
    // The same application gets none of another upstream either.
    const other = { ...upstream, rules: [], signedIdentity: undefined }
    assert.ok(reservedNames(other, [{ ...upstream, rules: [], ...settings }]).has('x-http-method'))
    assert.ok(!reservedNames(other, []).has('x-http-method'))
  })

test('Upstreams with the same host and port are the same application, in any spelling of the URL', () => {
  const at = (...texts: readonly string[]) => ({ ...upstream, targets: targetsAt(...texts) })
  const isKeptFor = (text: string, other: string) =>
    reservedNames({ ...at(text), headers: [] }, [at(other)]).has('x-user-sub')

  for (const same of ['http://localhost:3000/a/', 'https://127.0.0.2:3000', 'http://[::1]:3000', 'http://0.0.0.0:3000'])
    assert.ok(isKeptFor(same, 'http://127.0.0.1:3000'), same)
  assert.ok(isKeptFor('http://app.internal', 'http://APP.internal.:80/public/'))
  assert.ok(isKeptFor('http://app.internal:443', 'https://app.internal'))
  for (const other of ['http://127.0.0.1:3001', 'http://127.0.0.1', 'http://app.internal:3000'])
    assert.ok(!isKeptFor(other, 'http://127.0.0.1:3000'), other)
})

test('Upstreams that share one of several targets are the same application', () => {
  const at = (...texts: readonly string[]) => ({ ...upstream, targets: targetsAt(...texts) })
  const one = at('http://10.0.0.1:80', 'http://10.0.0.2:80')

  assert.ok(reservedNames({ ...at('http://10.0.0.2'), headers: [] }, [one]).has('x-user-sub'))
  assert.ok(!reservedNames({ ...at('http://10.0.0.3'), headers: [] }, [one]).has('x-user-sub'))
})
