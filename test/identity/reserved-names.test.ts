import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parsePathPattern } from '../../src/core/path-pattern.ts'
import { canonicalName, reservedNames } from '../../src/identity/reserved-names.ts'

const headers = ['X-User-Sub', 'Remote-User'].map((name) => ({
  name,
  template: [['sub']],
  join: ',',
  encode: 'utf8' as const,
  maxBytes: 100,
  required: false,
}))

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
  test(`${spoofed} is a name that the configuration keeps for itself`, () => {
    assert.ok(reservedNames({ headers, rules: [] }).has(canonicalName(spoofed)))
  })
}

test('other names are nobody’s business', () => {
  for (const name of ['X-User-Subject', 'X-UserSub', 'User-Sub', 'Remote-User-2', '_', ''])
    assert.equal(reservedNames({ headers, rules: [] }).has(canonicalName(name)), false, name)
})

test('a rule that looks at the method cannot be got round by a header that changes it', () => {
  const rule = { path: parsePathPattern('/*'), access: 'signed_in', unauthenticated: 'auto', require: [] } as const

  const names = reservedNames({ headers, rules: [{ ...rule, methods: ['GET'] }] })

  assert.ok(names.has(canonicalName('X-HTTP-Method-Override')))
  assert.ok(!reservedNames({ headers, rules: [{ ...rule, methods: undefined }] }).has('x-http-method-override'))
})
