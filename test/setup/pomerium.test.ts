import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse } from 'yaml'
import { translatePomerium } from '../../src/setup/pomerium.ts'

const settings = `
authenticate_service_url: https://authenticate.example.com
insecure_server: true
idp_provider: oidc
idp_provider_url: https://id.example.com
idp_client_id: gate
`

function translated(text: string) {
  const { yaml, notes } = translatePomerium([{ name: 'config.yaml', text: settings + text }], undefined)
  const { upstreams } = parse(yaml) as {
    upstreams: Record<string, { rules: readonly { require?: unknown; access?: string }[] }>
  }
  const [upstream] = Object.values(upstreams)
  return { yaml, notes, rules: upstream?.rules ?? [] }
}

const route = 'routes:\n  - from: https://a.example.com\n    to: http://127.0.0.1:3000\n'

function ruleFor(policy: string) {
  const { rules, notes } = translated(`${route}    policy: ${policy}\n`)
  assert.equal(rules.length, 1)
  return { rule: rules[0], notes }
}

const nobody = { not: { networks: ['0.0.0.0/0', '::/0'] } }

for (const [policy, require] of [
  ['{ allow: { and: [{ authenticated_user: true }] } }', undefined],
  [
    '{ allow: { or: [{ claim/groups: a }, { user: { is: u1 } }] } }',
    [
      {
        any: [
          { claim: 'groups', any_of: ['a'] },
          { claim: 'sub', any_of: ['u1'] },
        ],
      },
    ],
  ],
  // "not" is neither, and "nor" is not both.
  [
    '{ allow: { not: [{ claim/a: x }, { claim/b: y }] } }',
    [{ not: { claim: 'a', any_of: ['x'] } }, { not: { claim: 'b', any_of: ['y'] } }],
  ],
  [
    '{ allow: { nor: [{ claim/a: x }, { claim/b: y }] } }',
    [{ any: [{ not: { claim: 'a', any_of: ['x'] } }, { not: { claim: 'b', any_of: ['y'] } }] }],
  ],
  [
    '[{ allow: { or: [{ accept: true }] } }, { deny: { or: [{ email: { ends_with: "@x.example" } }] } }]',
    [{ not: { claim: 'email', ends_with: '@x.example' } }],
  ],
  ['{ allow: { and: [{ accept: true }, { http_method: { in: [GET, HEAD] } }] } }', [{ methods: ['GET', 'HEAD'] }]],
  ['{ allow: { or: [{ reject: true }] } }', [nobody]],
  ['{ allow: { and: [] } }', [nobody]],
  ['[]', [nobody]],
] as const)
  test(`The policy ${policy} keeps its meaning`, () => {
    const { rule } = ruleFor(policy)
    assert.equal(rule?.access, undefined)
    assert.deepEqual(rule?.require, require)
  })

test('"accept" alone is public', () => {
  assert.equal(ruleFor('{ allow: { or: [{ accept: true }] } }').rule?.access, 'public')
})

for (const policy of [
  '{ allow: { or: [{ device: { type: any } }, { claim/groups: a }] } }',
  '{ allow: { or: [{ claim/groups: { is: a } }] } }',
  '{ allow: { and: [{ date: { after: 2020-01-02T16:20:00 } }] } }',
  '{ allow: { and: [{ http_path: { starts_with: /api } }] } }',
  '{ allow: { and: [{ record: { field: x, is: y } }] } }',
  '{ permit: { and: [{ accept: true }] } }',
  '{ allow: { xor: [{ accept: true }] } }',
  '{ allow: { and: [{ unheard_of: true }] } }',
])
  test(`What rules cannot express denies all people: ${policy}`, () => {
    const { rule, notes } = ruleFor(policy)
    assert.deepEqual(rule?.require, [nobody])
    assert.ok(notes.some(({ level }) => level === 'decide'))
  })

for (const [what, text] of Object.entries({
  'an unknown option': `unheard_of: 1\n${route}    allow_public_unauthenticated_access: true\n`,
  'an unknown setting of a route': `${route}    allow_public_unauthenticated_access: true\n    unheard_of: 1\n`,
  'a regular expression': `${route}    allow_public_unauthenticated_access: true\n  - from: https://a.example.com\n    to: http://127.0.0.1:3000\n    regex: ^/a\n`,
  'certificates of clients': `downstream_mtls: { ca_file: ca.pem }\n${route}    allow_public_unauthenticated_access: true\n`,
}))
  test(`Until an operator decides, all people are denied: ${what}`, () => {
    const { rules, notes } = translated(text)
    assert.deepEqual(rules[0]?.require, [nobody])
    assert.ok(notes.some(({ level }) => level === 'decide'))
  })

for (const wider of ['allow_public_unauthenticated_access', 'allow_any_authenticated_user'])
  test(`A prefix that ends within a name denies all people beside a wider route with ${wider}`, () => {
    const both = `${route}    ${wider}: true\n  - from: https://a.example.com\n    to: http://127.0.0.1:3000\n    prefix: /admin\n    policy: { allow: { and: [{ claim/groups: admins }] } }\n`
    assert.match(
      translated(both).yaml,
      /# Denies all people until this is decided:\n +# - prefix: \/admin: it also matched \/admin-other/,
    )
    assert.doesNotMatch(translated(both.replace('/admin\n', '/admin/\n')).yaml, /Denies all people/)
  })

test('Invalid YAML is named by its line, and not quoted', () => {
  assert.throws(
    () => translatePomerium([{ name: 'config.yaml', text: 'a: 1\nshared_secret: "never-to-be-printed\n' }], undefined),
    (error: Error) => error instanceof SyntaxError && /^config\.yaml: line \d is invalid YAML$/.test(error.message),
  )
})
