import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import type { JsonValue } from '../../src/core/claims.ts'
import { systemClock } from '../../src/core/clock.ts'
import { personWith, trialIdentities } from '../../src/explain/trial.ts'
import { headerPairs } from '../../src/explain/upstream-request.ts'
import type { Admission } from '../../src/gate/admission.ts'
import { createAdmit } from '../../src/gate/admit.ts'
import { createRouteTable } from '../../src/gate/rules/route-table.ts'
import { TrustedProxies } from '../../src/http/forwarded.ts'
import { requestFacts } from '../../src/http/request-facts.ts'
import { reservedNames } from '../../src/identity/reserved-names.ts'
import { folderWith } from '../support/command-line.ts'
import { formatDiagnostics } from '../support/diagnostics.ts'

// What an upstream receives for the headers of its configuration, from YAML to header fields.

const environment = { CLIENT_SECRET: 'correct horse battery staple', WIKI_TOKEN: 'wiki-token-4711' }

type Person = Readonly<Record<string, JsonValue>> | undefined

interface Situation {
  /** YAML of the upstream below `headers:`, indented by four. */
  readonly upstream?: string
  readonly path?: string
  readonly host?: string
  readonly peer?: string
}

/** The headers as YAML in flow style, or as lines that are indented by six. */
function admission(t: TestContext, headers: string, person: Person, situation: Situation = {}): Admission {
  const { upstream = '', path = '/', host = 'orders.example.com', peer = '192.0.2.7' } = situation
  const yaml = `version: 1
external_url: https://orders.example.com
trusted_proxies: [10.0.0.0/8]
provider:
  issuer: https://id.example.com
  client_id: orders
  client_secret: { env: CLIENT_SECRET }
upstreams:
  orders:
    url: http://127.0.0.1:3000
    headers: ${headers}
${upstream}
`
  const folder = folderWith(t, { 'gateway.yaml': yaml, 'token.txt': 'token-in-a-file\n' })
  const loaded = loadConfig(join(folder, 'gateway.yaml'), environment)
  assert.ok(loaded.ok, loaded.ok ? '' : `${formatDiagnostics(loaded.diagnostics)}\n${yaml}`)
  const { config } = loaded
  const silent = () => {}
  const admit = createAdmit(config, {
    routes: createRouteTable(config.upstreams),
    identify: (_cookie, upstream) => personWith(person, config).at(upstream),
    clock: systemClock,
    identities: trialIdentities(config),
    isStrict: false,
    log: { debug: silent, info: silent, warn: silent, error: silent, announce: silent },
  })
  const forwarded = { 'x-forwarded-for': '203.0.113.9', 'x-forwarded-proto': 'https', 'x-forwarded-host': host }
  const request = { method: 'GET', url: path, headers: { host, ...forwarded }, socket: { remoteAddress: peer } }
  const admitted = admit(requestFacts(request, new TrustedProxies(config.trustedProxies), ''))
  assert.ok(!(admitted instanceof Promise))
  return admitted
}

/** The header fields that the upstream receives from the gateway, by name. */
function sent(t: TestContext, headers: string, person: Person, situation?: Situation): Record<string, string> {
  const admitted = admission(t, headers, person, situation)
  assert.equal(admitted.kind, 'pass')
  return Object.fromEntries(headerPairs(admitted.kind === 'pass' ? admitted.identity : []))
}

const jane = { sub: 'jane' }
const openPaths = 'rules: [{ path: /open/*, access: public }, { path: /free/*, access: optional }]'

test('A constant reaches the upstream from the file, the environment and a secret file', (t) => {
  const headers =
    '{ X-Forwarded-Ssl: { value: "on" }, X-Site: { value: Zürich }, X-Token: { env: WIKI_TOKEN }, X-Other: { file: token.txt } }'

  assert.deepEqual(sent(t, headers, jane), {
    'X-Forwarded-Ssl': 'on',
    'X-Site': 'Zürich',
    'X-Token': 'wiki-token-4711',
    'X-Other': 'token-in-a-file',
  })
})

const facts = `
      X-Real-IP: { request: client_address }
      X-Forwarded-Scheme: { request: scheme }
      X-Forwarded-Server: { request: host }
      X-Forwarded-Port: { request: port }
      X-Forwarded-Prefix: { request: prefix }`

test('A fact about the request is that of the client before the trusted proxies', (t) => {
  const received = sent(t, facts, jane, { peer: '10.0.0.1', upstream: '    path: /wiki', path: '/wiki/a' })

  assert.deepEqual(received, {
    'X-Real-IP': '203.0.113.9',
    'X-Forwarded-Scheme': 'https',
    'X-Forwarded-Server': 'orders.example.com',
    'X-Forwarded-Port': '443',
    'X-Forwarded-Prefix': '/wiki',
  })
})

test('A client cannot forge a fact about the request', (t) => {
  const received = sent(t, facts, jane, { peer: '192.0.2.7', host: 'orders.example.com:8080' })

  assert.deepEqual(received, {
    'X-Real-IP': '192.0.2.7',
    'X-Forwarded-Scheme': 'http',
    'X-Forwarded-Server': 'orders.example.com:8080',
    'X-Forwarded-Port': '8080',
  })
})

test('Facts of two requests of one session do not mix', (t) => {
  for (const peer of ['192.0.2.1', '192.0.2.2'])
    assert.deepEqual(sent(t, '{ X-User: sub, X-Real-IP: { request: client_address } }', jane, { peer }), {
      'X-User': 'jane',
      'X-Real-IP': peer,
    })
})

for (const [what, person, path] of [
  ['a public path', jane, '/open/a'],
  ['an optional path without a session', undefined, '/free/a'],
] as const)
  test(`On ${what}, an upstream gets constants and facts, but nothing that says who sends the request`, (t) => {
    const headers =
      '{ X-User: sub, X-Site: { value: a }, X-Forwarded-Port: { request: port }, Authorization: { env: WIKI_TOKEN } }'

    const received = sent(t, headers, person, { upstream: `    ${openPaths}`, path })

    assert.deepEqual(received, { 'X-Site': 'a', 'X-Forwarded-Port': '80' })
  })

const person = {
  sub: 'jane',
  email: 'Jane.Doe@Corp.example',
  name: 'Zoë 李',
  padded: ' a=b ',
  groups: ['ops', 'staff', 'guests'],
  fields: { site: 'north', ids: [1, 2] },
}

for (const [what, header, expected] of [
  ['lower case', '{ claim: email, case: lower }', 'jane.doe@corp.example'],
  ['upper case', '{ claim: email, case: upper }', 'JANE.DOE@CORP.EXAMPLE'],
  ['the part before @', "{ claim: email, before: '@', case: lower }", 'jane.doe'],
  ['the part after @', "{ claim: email, after: '@' }", 'Corp.example'],
  ['the part between', "{ claim: email, after: '.', case: upper }", 'EXAMPLE'],
  ['a mapped list', "{ claim: groups, map: { ops: admin, '*': user } }", 'admin,user'],
  ['a mapped list without *', '{ claim: groups, map: { ops: admin } }', 'admin'],
  ['a mapped value', "{ claim: sub, map: { jane: Administrator, '*': user } }", 'Administrator'],
  ['a mapped value by *', "{ claim: sub, map: { joe: Administrator, '*': user } }", 'user'],
  ['a value that no entry of the map names', '{ claim: sub, map: { joe: Administrator } }', undefined],
  ['an absent claim with a map', "{ claim: roles, map: { '*': user } }", undefined],
  ['a name of Object.prototype in a map', '{ claim: sub, map: { constructor: x } }', undefined],
  ['the first claim with a value', '{ first_of: [nickname, preferred_username, email, sub] }', 'Jane.Doe@Corp.example'],
  ['none of several claims', '{ first_of: [nickname, preferred_username] }', undefined],
  ['a list as JSON', '{ claim: groups, json: true }', '["ops","staff","guests"]'],
  ['an object as JSON', '{ claim: fields, json: true }', '{"site":"north","ids":[1,2]}'],
  ['a text as JSON', '{ claim: sub, json: true }', '"jane"'],
  ['a mapped list as JSON', "{ claim: groups, json: true, map: { ops: admin, '*': user } }", '["admin","user"]'],
  ['JSON in percent encoding', '{ claim: sub, json: true, encode: percent }', '%22jane%22'],
  ['a template with changes', "{ template: 'u-{email}', before: '@', case: lower }", 'u-jane.doe'],
  ['base64url', '{ claim: name, encode: base64url }', Buffer.from('Zoë 李').toString('base64url')],
  [
    'base64url of a list',
    '{ claim: groups, encode: base64url }',
    ['ops', 'staff', 'guests'].map((group) => Buffer.from(group).toString('base64url')).join(),
  ],
  ['rfc2047', '{ claim: name, encode: rfc2047 }', `=?UTF-8?B?${Buffer.from('Zoë 李').toString('base64')}?=`],
  ['quoted_printable', '{ claim: name, encode: quoted_printable }', 'Zo=C3=AB =E6=9D=8E'],
  ['quoted_printable of white space and "="', '{ claim: padded, encode: quoted_printable }', '=20a=3Db=20'],
  ['rfc2047 of plain text', '{ claim: sub, encode: rfc2047 }', 'jane'],
  ['a list that is trimmed', '{ claim: groups, max_bytes: 10b, too_long: trim }', 'ops,staff'],
  ['a JSON list that is trimmed', '{ claim: groups, json: true, max_bytes: 15b, too_long: trim }', '["ops","staff"]'],
  ['a list of which nothing fits', '{ claim: groups, max_bytes: 2b, too_long: trim }', undefined],
  ['a text that cannot be trimmed', '{ claim: email, max_bytes: 4b, too_long: trim }', undefined],
  ['a value that is too long', '{ claim: groups, max_bytes: 10b }', undefined],
] as const)
  test(`The upstream receives ${what}: ${header}`, (t) => {
    assert.equal(sent(t, `\n      X-H: ${header}`, person)['X-H'], expected)
  })

for (const [what, header, claims] of [
  ['A value without the text of before', "{ claim: name, before: '@' }", { name: 'admin' }],
  ['A value without the text of after', "{ claim: name, after: '@' }", { name: 'corp.example' }],
  ['The Kelvin sign', '{ claim: name, case: lower }', { name: 'Mi\u212ae' }],
  ['A dotless i', '{ claim: name, case: upper }', { name: 'adm\u0131n' }],
  ['A map that would lose its capital letters', '{ claim: name, case: lower }', { name: { a: 'B' } }],
  ['White space before the separator', "{ claim: name, before: '@' }", { name: 'admin @x' }],
] as const)
  test(`${what} never makes two people look equal to the application`, (t) => {
    assert.deepEqual(sent(t, `\n      X-H: ${header}`, { sub: 'jane', ...claims }), {})
  })

test('The domain of an address is what follows its last @', (t) => {
  const email = '"jane@corp.example"@evil.example'

  assert.deepEqual(sent(t, "{ X-H: { claim: email, after: '@' } }", { sub: 'jane', email }), { 'X-H': 'evil.example' })
})

test('An encoded-word is at most 75 characters long, and no character is divided', (t) => {
  const name = '李'.repeat(40)

  const words = (sent(t, '{ X-H: { claim: name, encode: rfc2047 } }', { sub: 'jane', name })['X-H'] ?? '').split(' ')

  assert.ok(words.length > 1 && words.every((word) => word.length <= 75), words.join(' '))
  const decoded = words.map((word) => Buffer.from(word.slice(10, -2), 'base64').toString())
  assert.equal(decoded.join(''), name)
})

test('A request is refused when a value is too long and too_long is refuse', (t) => {
  const refused = admission(t, '{ X-H: { claim: groups, max_bytes: 4b, too_long: refuse } }', person)

  assert.equal(refused.kind, 'forbidden')
  assert.match(refused.kind === 'forbidden' ? refused.why : '', /X-H: longer than 4 bytes/)
  assert.deepEqual(sent(t, '{ X-H: { claim: absent, max_bytes: 4b, too_long: refuse } }', person), {})
})

const basic = '{ Authorization: { basic: { user: preferred_username, password: { env: WIKI_TOKEN } } } }'

test('An application with Basic authentication gets the name of the person and its own password', (t) => {
  const { Authorization = '' } = sent(t, basic, { sub: 'jane', preferred_username: 'zoë' })

  assert.equal(Authorization, `Basic ${Buffer.from('zoë:wiki-token-4711').toString('base64')}`)
})

for (const name of ['admin:x', 'admin\n', ' admin', ['admin'], 'ad\ud800min', '', null])
  test(`A user name that Basic credentials cannot carry is left out: ${JSON.stringify(name)}`, (t) => {
    assert.deepEqual(sent(t, basic, { sub: 'jane', preferred_username: name }), {})
  })

for (const bearer of ['access_token', 'id_token'])
  test(`The ${bearer} is a bearer token only for requests of a signed-in person`, (t) => {
    const headers = `{ Authorization: { bearer: ${bearer} } }`

    assert.deepEqual(sent(t, headers, jane), { Authorization: 'Bearer token' })
    assert.deepEqual(sent(t, headers, jane, { upstream: `    ${openPaths}`, path: '/open/a' }), {})
  })

test('A rule adds headers to those of the upstream, and replaces those with the same name', (t) => {
  const upstream = '    rules: [{ path: /admin/*, headers: { x-role: { value: admin }, X-Mail: email } }]'
  const headers = '{ X-User: sub, X-Role: { value: user } }'

  assert.deepEqual(sent(t, headers, person, { upstream, path: '/admin/a' }), {
    'X-User': 'jane',
    'x-role': 'admin',
    'X-Mail': person.email,
  })
  assert.deepEqual(sent(t, headers, person, { upstream, path: '/' }), { 'X-User': 'jane', 'X-Role': 'user' })
})

test('A client cannot send a header that only a rule sets, on any path', (t) => {
  const upstream = '    rules: [{ path: /admin/*, headers: { X-Role: { value: admin } } }]'
  const admitted = admission(t, '{}', person, { upstream, path: '/' })

  assert.ok(admitted.kind === 'pass' && reservedNames(admitted.upstream, []).has('x-role'))
})
