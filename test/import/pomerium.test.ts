import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse } from 'yaml'
import { translatePomerium } from '../../packages/import/pomerium/pomerium.ts'

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

interface Upstream {
  readonly external_url: string
  readonly rules: readonly object[]
  readonly [setting: string]: unknown
}

function upstreamsOf(text: string): Record<string, Upstream> {
  const { yaml } = translatePomerium([{ name: 'config.yaml', text: settings + text }], undefined)
  return (parse(yaml) as { upstreams: Record<string, Upstream> }).upstreams
}

const open = 'allow_public_unauthenticated_access: true'
const twoHosts = `${route}    ${open}\n  - from: https://b.example.com\n    to: http://127.0.0.1:3001\n    ${open}\n`

test('No upstream serves a host that no route names', () => {
  for (const { external_url } of Object.values(upstreamsOf(twoHosts)))
    assert.match(external_url, /^https:\/\/[ab]\.example/)
})

for (const setting of [
  'allow_any_authenticated_user: true',
  'policy: { allow: { and: [{ authenticated_user: true }] } }',
])
  test(`A route for all people who sign in has no rules: ${setting}`, () => {
    const { yaml, rules } = translated(`${route}    ${setting}\n`)
    assert.deepEqual(rules, [])
    assert.match(yaml, /url: http:\/\/127\.0\.0\.1:3000/)
    assert.match(yaml, /get: \/,.* expect: sign_in/)
  })

for (const [what, text, words] of [
  [
    'a regular expression alone',
    'routes: [{ from: "https://a.example.com", to: "http://a", regex: ^/a }]',
    /have a regex;.*write prefix: \/PATH\/ or path: \/PATH in place of regex/,
  ],
  ['a wildcard alone', 'routes: [{ from: "https://*.example.com", to: "http://a" }]', /wildcard; .*--url/],
  ['no route', 'routes: []', /^there is no route with from: https/],
] as const)
  test(`Without a route that can be translated, the error says what to write: ${what}`, () => {
    assert.throws(() => translated(text), { name: 'SyntaxError', message: words })
    const withUrl = () => translatePomerium([{ name: 'config.yaml', text: settings + text }], 'https://a.example.com')
    if (what === 'a wildcard alone') assert.match(withUrl().yaml, /external_url: https:\/\/a\.example\.com/)
    else assert.throws(withUrl, { name: 'SyntaxError', message: words })
  })

for (const [what, more, option = ''] of [
  ['a regular expression', '  - from: https://a.example.com\n    to: http://127.0.0.1:3000\n    regex: ^/a\n'],
  ['two routes with the same path', `  - from: https://a.example.com\n    to: http://127.0.0.1:3002\n    ${open}\n`],
  ['a prefix within a name', '  - { from: https://a.example.com, to: http://127.0.0.1:3000, prefix: /admin }\n'],
  [
    'addresses behind another proxy',
    '  - from: https://a.example.com\n    to: http://127.0.0.1:3000\n    prefix: /ip/\n    policy: { allow: { and: [{ source_ip: 10.0.0.0/8 }] } }\n',
    'use_proxy_protocol: true\n',
  ],
] as const)
  test(`What a route cannot say denies its host, and no other one: ${what}`, () => {
    const upstreams = upstreamsOf(option + twoHosts + more)
    assert.deepEqual(upstreams['a']?.rules[0], { path: '/*', require: [nobody] })
    assert.deepEqual(upstreams['b']?.rules, [{ path: '/*', access: 'public' }])
  })

for (const setting of [
  'regex_rewrite_pattern: ^/a',
  'host_rewrite: other.internal',
  'idp_client_id: another',
  'unheard_of: 1',
  'tls_downstream_client_ca: abc',
])
  test(`A setting that may restrict access denies the route: ${setting}`, () => {
    const upstreams = upstreamsOf(`${twoHosts}    ${setting}\n`)
    assert.deepEqual(upstreams['b']?.rules, [{ path: '/*', require: [nobody] }])
    assert.deepEqual(upstreams['a']?.rules, [{ path: '/*', access: 'public' }])
  })

test('Redirects and responses of Pomerium are translated, and others deny all people', () => {
  const text = `${route}    ${open}
  - { from: https://a.example.com, prefix: /old/, ${open}, redirect: { host_redirect: new.example.com, response_code: 308 } }
  - { from: https://a.example.com, prefix: /gone/, allow_any_authenticated_user: true, response: { status: 410, body: Gone } }
  - { from: https://a.example.com, prefix: /other/, ${open}, redirect: { prefix_rewrite: /x } }
`
  const upstreams = upstreamsOf(text)
  const of = (name: string) => upstreams[name]?.rules.at(-1)
  assert.deepEqual(of('a-old'), {
    path: '/*',
    access: 'public',
    respond: { to: 'https://new.example.com/*', status: 308 },
  })
  assert.deepEqual(of('a-gone'), { path: '/*', respond: { status: 410, text: 'Gone' } })
  assert.deepEqual(of('a-other'), { path: '/*', require: [nobody], respond: { status: 404 } })
  for (const more of ['', '  - { from: https://a.example.com, to: http://127.0.0.1:3000, regex: ^/x }\n'])
    assert.ok(!translated(text + more).notes.some((note) => note.text.includes('this file has an error')))
})

test('Fields, health checks and Redis are translated', () => {
  const text = `databroker_storage_type: redis
databroker_storage_connection_string: rediss://user:never-to-be-printed@redis:6379/2
set_response_headers: { X-Frame-Options: DENY, Cache-Control: no-store }
${route}    ${open}
    tls_skip_verify: false
    remove_request_headers: [X-Internal, Host, Proxy-User]
    set_response_headers: { X-Robots-Tag: noindex }
    remove_response_headers: [Server]
    health_checks: [{ timeout: 2s, interval: 10s, healthy_threshold: 2, unhealthy_threshold: 3, http_health_check: { path: /up, expected_statuses: [{ start: 200, end: 202 }] } }]
`
  const { a } = upstreamsOf(text)
  const { yaml, notes } = translated(text)
  assert.deepEqual(a?.['request_headers'], { remove: ['X-Pomerium-*', 'X-Internal', 'Proxy-User'] })
  assert.deepEqual(a?.['response_headers'], {
    set: { 'X-Frame-Options': 'DENY', 'X-Robots-Tag': 'noindex' },
    remove: ['Server'],
  })
  assert.deepEqual(a?.['health_check'], {
    path: '/up',
    every: '10s',
    timeout: '2s',
    healthy_after: 2,
    unhealthy_after: 3,
    expect: [200, 201],
  })
  const { store } = (parse(yaml) as { session: { store: object } }).session
  assert.deepEqual(store, {
    redis: { url: 'rediss://redis:6379/2', username: 'user', password: { env: 'REDIS_PASSWORD' } },
  })
  assert.doesNotMatch(yaml, /never-to/)
  assert.deepEqual(
    notes.filter(({ level }) => level === 'lost').map(({ option }) => option),
    ['from: https://a.example.com set_response_headers.Cache-Control'],
  )
})

test('Invalid YAML is named by its line, and not quoted', () => {
  assert.throws(
    () => translatePomerium([{ name: 'config.yaml', text: 'a: 1\nshared_secret: "never-to-be-printed\n' }], undefined),
    (error: Error) => error instanceof SyntaxError && /^config\.yaml: line \d is invalid YAML$/.test(error.message),
  )
})
