import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { check, type CheckFormat } from '../../src/cli/check.ts'
import { withColors } from '../../src/cli/paint.ts'
import { formatDiagnostics } from '../../src/cli/show-diagnostics.ts'
import type { Diagnostic } from '../../src/config/document/diagnostics.ts'
import { loadConfig } from '../../src/config/load.ts'
import { environment, secretTexts } from '../config/environment.ts'
import { folderWith, recordingTerminal } from '../support/command-line.ts'
import { root } from '../support/command.ts'

const settings = `version: 1
external_url: https://orders.example.com
provider:
  issuer: https://id.example.com
  client_id: orders
  client_secret: { env: CLIENT_SECRET }
  claims: { fields: https://id.example.com/claims/fields }
upstreams:
  orders:
    url: http://127.0.0.1:3000
    headers:
      X-Remote-User: sub
      X-Name: name
      X-Groups: { claim: fields.groups, join: "," }
      X-Room: { claim: fields.room, required: false }
    rules:
      - { path: /static/*, access: public }
      - { path: /api/*, unauthenticated: 401 }
      - { path: /admin/*, require: { claim: fields.groups, any_of: [admins] } }
`

const env = { CLIENT_SECRET: 'correct horse battery' }

async function checkedFile(t: TestContext, yaml: string, format?: CheckFormat) {
  const file = join(folderWith(t, { 'gateway.yaml': yaml }), 'gateway.yaml')
  const { terminal, said } = recordingTerminal(env)
  const exitCode = await check({ ...terminal, file }, format)
  return { exitCode, file, ...said }
}

function checked(t: TestContext, tests: readonly string[], format?: CheckFormat) {
  return checkedFile(t, `${settings}    tests:\n${tests.map((line) => `      - ${line}\n`).join('')}`, format)
}

test('check prints how many tests of the file pass', async (t) => {
  const { exitCode, out } = await checked(t, [
    '{ get: /static/logo.png, expect: pass, headers: { X-Remote-User: null } }',
    '{ get: /orders, expect: sign_in }',
    '{ get: /api/orders, expect: unauthorized }',
    '{ as: { sub: u1, fields: { groups: [staff] } }, get: /admin/, expect: forbidden }',
    '{ as: { sub: u1, fields: { groups: [staff, admins] } }, get: /admin/, expect: pass, headers: { X-Remote-User: u1, X-Groups: "staff,admins", X-Room: null } }',
  ])

  assert.equal(exitCode, 0)
  assert.match(out, /its 5 tests pass/)
})

test('A header value beyond ASCII is compared as text, not as bytes', async (t) => {
  const latin1 = settings.replace('    rules:', '      X-City: { claim: city, encode: latin1 }\n    rules:')
  const { exitCode, err } = await checkedFile(
    t,
    `${latin1}    tests:
      - { as: { name: José 世界, city: Zürich }, get: /, expect: pass, headers: { X-Name: José 世界, X-City: Zürich } }
`,
  )

  assert.equal(exitCode, 0, err)
})

test('check prints what to register at the provider', async (t) => {
  const { out } = await checked(t, ['{ get: /, expect: sign_in }'])

  for (const name of ['callback', 'signed-out', 'backchannel-logout'])
    assert.ok(out.includes(`https://orders.example.com/.gatehouse/${name}`), name)
})

test('check says that another proxy must not pass on the secrets of service accounts', async (t) => {
  const asked = settings
    .replace('provider:', 'trusted_proxies: [10.1.2.3]\nprovider:')
    .replace('url: http://127.0.0.1:3000', 'forward_auth: true')
  const accounts = join(import.meta.dirname, '../config/cases/secrets/accounts')
  const withSecrets = `${asked}      - { path: /x, service_accounts: true }\n    service_accounts: { file: "${accounts}" }\n`

  assert.match(
    (await checkedFile(t, withSecrets)).out,
    /Let that proxy remove Authorization from the requests of orders/,
  )
  assert.doesNotMatch((await checkedFile(t, asked)).out, /Authorization/)
})

for (const [line, message] of [
  ['{ get: /orders, expect: pass }', 'expected pass, but the outcome is sign_in'],
  [
    '{ as: { sub: u1 }, get: /admin/, expect: pass }',
    /expected pass, but the outcome is forbidden \(.*fields.groups.*\)/,
  ],
  [
    '{ as: { sub: u1 }, get: /orders, expect: pass, headers: { X-Remote-User: u2 } }',
    'expected the header X-Remote-User to be "u2", but it is "u1"',
  ],
  [
    '{ get: /static/..%2fadmin, expect: pass }',
    'the request target is rejected: the path contains an encoded or disguised dot segment',
  ],
] as const) {
  test(`A failing test is reported with its place and line: ${line}`, async (t) => {
    const { exitCode, err } = await checked(t, [line])

    assert.equal(exitCode, 1)
    assert.match(err, /gateway\.yaml:21:9 {2}error {2}upstreams\.orders\.tests\[0\]: GET /)
    assert.ok(err.includes(`    21 |       - ${line}\n       |         ^\n`), err)
    if (typeof message === 'string') assert.ok(err.includes(message), err)
    else assert.match(err, message)
  })
}

test('A failing test is reported with the steps of the decision', async (t) => {
  const { err } = await checked(t, ['{ as: { sub: u1 }, get: /admin/, expect: pass }'])

  const [, steps] = err.split('but the outcome is forbidden')
  assert.match(steps ?? '', /\n {4}rule: upstreams\.orders\.rules\[2\], the first match: \/admin\/\*/)
  assert.match(steps ?? '', /\n {4}session: required; present, of u1\n/)
})

test('check reports all errors at once, each with its line, a caret below the column, and a hint', async (t) => {
  const { exitCode, file, out, err } = await checkedFile(
    t,
    settings.replace('issuer: https:', 'issuer: http:').replace('headers:', 'headrs:'),
  )

  assert.equal(exitCode, 1)
  assert.equal(out, '')
  assert.equal(
    err,
    `${file}:4:11  error  provider.issuer: must be https; plain http is possible with a provider on this machine only (localhost, 127.0.0.1)
     4 |   issuer: http://id.example.com
       |           ^
${file}:11:5  error  upstreams.orders.headrs: unknown setting
    11 |     headrs:
       |     ^
    did you mean "headers"?

${file} is invalid: 2 errors
`,
  )
})

test('A long line is shortened, and the caret stays below the right column', async (t) => {
  const paths = Array.from({ length: 60 }, (_, n) => `{ path: /p${n} }`)
  const { err } = await checkedFile(
    t,
    `${settings.slice(0, settings.indexOf('    rules:'))}    rules: [${paths.join(', ')}, { pth: / }]\n`,
  )

  const [quoted = '', caret = ''] = err.split('\n').slice(1)
  assert.ok(quoted.length < 170, quoted)
  assert.match(quoted.slice(caret.indexOf('^')), /^pth: \/ \}\]/)
})

test('With --format json, check prints one document and nothing on standard error', async (t) => {
  const { exitCode, out, err, file } = await checked(t, ['{ get: /orders, expect: pass }'], 'json')

  assert.equal(exitCode, 1)
  assert.equal(err, '')
  const document = JSON.parse(out) as { diagnostics: Diagnostic[] }
  assert.deepEqual(document, {
    version: 1,
    file,
    good: false,
    tests: 1,
    diagnostics: [
      {
        severity: 'error',
        file,
        line: 21,
        column: 9,
        path: 'upstreams.orders.tests[0]',
        message: 'GET /orders: expected pass, but the outcome is sign_in',
        hint: 'upstream: orders: any host, any path\n    rule: no rule matches: a sign-in is required\n    session: required; absent',
      },
    ],
  })
})

test('The JSON document of a valid file says what to register at the provider', async (t) => {
  const { exitCode, out } = await checked(t, ['{ get: /orders, expect: sign_in }'], 'json')

  assert.equal(exitCode, 0)
  const { good, register } = JSON.parse(out) as { good: boolean; register: unknown }
  assert.equal(good, true)
  assert.deepEqual(register, {
    issuer: 'https://id.example.com',
    client_id: 'orders',
    redirect_uris: ['https://orders.example.com/.gatehouse/callback'],
    post_logout_redirect_uris: ['https://orders.example.com/.gatehouse/signed-out'],
    backchannel_logout_uri: 'https://orders.example.com/.gatehouse/backchannel-logout',
    initiate_login_uri: 'https://orders.example.com/.gatehouse/initiate-login',
  })
})

test('With --format github, each diagnostic is one escaped workflow command on one line', async (t) => {
  const { exitCode, out, err, file } = await checkedFile(
    t,
    settings.replace('headers:', 'headrs:').replace('orders.example.com', 'orders.example.com/100%,a:b'),
    'github',
  )

  assert.equal(exitCode, 1)
  assert.equal(err, '')
  assert.equal(
    out,
    `::error file=${file},line=2,col=15,title=external_url::must end after the host and port, without the path "/100%25,a:b"
::error file=${file},line=11,col=5,title=upstreams.orders.headrs::unknown setting%0Adid you mean "headers"?
`,
  )
})

test('With --format github, a missing file is reported without a line', async () => {
  const { terminal, said } = recordingTerminal()

  assert.equal(await check({ ...terminal, file: 'a,b:c.yaml' }, 'github'), 1)

  assert.equal(
    said.out.split('%0A')[0],
    `::error file=a%2Cb%3Ac.yaml,title=gatehouse::does not exist: the full path is ${process.cwd()}/a,b:c.yaml`,
  )
})

test('check hides a secret in a line that it shows', async (t) => {
  for (const line of [
    'client_secret: hunter2hunter2',
    'client_secert: hunter2hunter2',
    'clientSecret: "hunter2hunter2"',
    'client_secret: { value: hunter2hunter2 }',
    'client_secret: [hunter2hunter2]',
    'ca_file: { password: hunter2hunter2 }',
    'issuer: https://admin:hunter2hunter2@id.example.com',
    'client_secret: "hunter2hunter2',
  ]) {
    const { exitCode, err } = await checkedFile(
      t,
      settings
        .replace('client_secret: { env: CLIENT_SECRET }', line)
        .replace(
          '\n  issuer: https://id.example.com',
          line.startsWith('issuer') ? '' : '\n  issuer: https://id.example.com',
        ),
    )
    assert.equal(exitCode, 1)
    assert.match(err, /\n +\d+ \| {3}\w+: /, `${line}: its line is shown`)
    assert.doesNotMatch(err, /hunter2/, line)
  }
  const keys = `${settings}session:\n  keys:\n    - hunter2hunter2\n  store: { redis: { url: "redis://:hunter2hunter2@redis", password: hunter2hunter2 } }\n`
  const { err } = await checkedFile(t, keys)
  assert.match(err, /session\.keys\[0\]/)
  assert.doesNotMatch(err, /hunter2/)
})

for (const tracing of [
  'tracing:\n  otlp: https://collector.example.com\n  headers:\n    X-Team: hunter2hunter2',
  'tracing:\n  otlp: https://collector.example.com\n  headers: { X-Team: hunter2hunter2, "X Y": { env: CLIENT_SECRET } }',
  'tracing: { otlp: collector:4318, headers: { X-Team: hunter2hunter2, client_secret: hunter2 } }',
  'tracing: { otlp: collector:4318, header: { X-Team: hunter2hunter2 } }',
  'admin: { listen: 99999, page: { token: hunter2hunter2 } }',
  'admin:\n  listen: 9090\n  page:\n    token: hunter2hunter2',
  'admin:\n  listen: 9090\n  page:\n    tokne: hunter2hunter2',
])
  test(`check hides a collector header or a token in a line that it shows: ${tracing.replaceAll('\n', ' ')}`, async (t) => {
    const { exitCode, err } = await checkedFile(t, `${settings}${tracing}\n`)

    assert.equal(exitCode, 1)
    assert.match(err, /\n +\d+ \| /)
    assert.doesNotMatch(err, /hunter2/)
  })

test('check shows a client_id, also at a place whose hint names client_secret', async (t) => {
  for (const line of ['client_id: orders', 'client-id: "orders"', 'oidc_client_idd: orders']) {
    const { err } = await checkedFile(t, `${line}\n${settings.replace('client_id: orders', 'client_idd: orders')}`)

    assert.ok(err.includes(` | ${line}\n`), err)
    assert.ok(err.includes(' |   client_idd: orders\n'), err)
  }
})

for (const line of [
  '{ client_idd: orders, key: hunter2 }',
  'client_id_secret: hunter2',
  'client_id: [hunter2]',
  'client_key: hunter2',
])
  test(`check hides what may be a secret beside a client_id: ${line}`, async (t) => {
    const { err } = await checkedFile(t, `${settings}client_secret: ${line.startsWith('{') ? line : `{ ${line} }`}\n`)
    const own = await checkedFile(t, `${settings}${line.startsWith('{') ? `oidc: ${line}` : line}\n`)

    assert.doesNotMatch(err, /hunter2/)
    if (!line.startsWith('client_key')) assert.doesNotMatch(own.err, /hunter2/)
  })

test('check hides a client_id below a setting of a secret', async (t) => {
  const text = settings.replace('{ env: CLIENT_SECRET }', '\n    client_id: hunter2')

  const { err } = await checkedFile(t, text)

  assert.match(err, / \| {5}client_id: …/)
  assert.doesNotMatch(err, /hunter2/)
})

test('check shows the name of the environment variable of a secret', async (t) => {
  const { err } = await checkedFile(t, settings.replace('env: CLIENT_SECRET', 'env: NOT_SET'))

  assert.match(err, / \| {3}client_secret: \{ env: NOT_SET \}/)
})

test('Diagnostics of the golden cases show no secret and no control characters', () => {
  const cases = new URL('../config/cases/', import.meta.url).pathname
  const before = process.cwd()
  process.chdir(cases)
  try {
    for (const file of readdirSync('.').filter((name) => name.endsWith('.yaml'))) {
      const loaded = loadConfig(file, environment)
      const text = formatDiagnostics(loaded.ok ? loaded.warnings : loaded.diagnostics, loaded.sources)
      for (const secret of secretTexts) assert.ok(!text.includes(secret), `${file} shows a secret`)
      assert.doesNotMatch(text, /[\0-\x09\x0b-\x1f\x7f\u202e]/, `${file} shows a control character`)
    }
  } finally {
    process.chdir(before)
  }
})

test('check warns about credentials of a service that does not run, and a start needs them', async (t) => {
  const packaged = readFileSync(join(root, 'examples/systemd/gateway.yaml'), 'utf8')
  const { exitCode, file, err } = await checkedFile(t, packaged)

  assert.equal(exitCode, 0)
  assert.match(err, /client_secret exists only while gatehouse\.service runs, so its content is not checked/)
  assert.match(err, /systemctl start gatehouse\.service; journalctl --unit gatehouse\.service/)
  assert.match(err, /session_key exists only while/)
  const atStart = loadConfig(file, env)
  assert.deepEqual(atStart.ok ? [] : atStart.diagnostics.map(({ message }) => /does not exist$/.test(message)), [
    true,
    true,
  ])
})

test('A terminal gets colors', async (t) => {
  const file = join(folderWith(t, { 'gateway.yaml': settings.replace('headers:', 'headrs:') }), 'gateway.yaml')
  const { terminal, said } = recordingTerminal(env)

  await check({ ...terminal, file, paintErr: withColors })

  assert.match(said.err, /\u001b\[31merror\u001b\[0m/)
})

test('The printed version is the version of the package', () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }

  assert.ok(
    readFileSync(new URL('../../src/core/version.ts', import.meta.url), 'utf8').includes(
      `export const version = '${version}'`,
    ),
  )
})

for (const [written, isExplained] of [
  ['scopes: [openid, offline_access]', true],
  ['scopes: [openid, offline_access]\n  authorization_params: { prompt: login consent }', false],
  ['scopes: [openid]', false],
  ['response_mode: query', false],
] as const)
  test(`check ${isExplained ? 'explains' : 'does not explain'} what to do without a refresh token: ${JSON.stringify(written)}`, async (t) => {
    const { out } = await checkedFile(t, settings.replace('  client_id:', `  ${written}\n  client_id:`))

    assert.equal(out.includes('{ prompt: consent }'), isExplained)
  })

for (const [what, issuer, scopes, expected, exitCode] of [
  [
    'a Keycloak',
    'https://id.example.com/realms/one',
    '',
    /Without provider\.scopes, the gateway requests the scopes openid profile email\.\n/,
    0,
  ],
  [
    'Google',
    'https://accounts.google.com',
    '',
    /requests the scopes openid profile email, with access_type=offline/,
    0,
  ],
  ['another provider', 'https://id.example.com', '', /and offline_access unless the provider lists its scopes/, 0],
  [
    'offline_access at another provider',
    'https://id.example.com',
    'openid, offline_access',
    /provider\.no_refresh_token/,
    0,
  ],
  [
    'offline_access at a Keycloak',
    'https://id.example.com/realms/one',
    'openid, offline_access',
    /initiate-login\n$/,
    0,
  ],
  ['offline_access at Google', 'https://accounts.google.com', 'openid, offline_access', /^$/, 1],
] as const)
  test(`check prints which scopes a sign-in requests: ${what}`, async (t) => {
    const line = scopes === '' ? '' : `\n  scopes: [${scopes}]`
    const yaml = settings
      .replace('https://id.example.com', issuer)
      .replace('  client_id: orders', `  client_id: orders${line}`)

    const { exitCode: ended, out, err } = await checkedFile(t, yaml)

    assert.match(out, expected)
    assert.equal(ended, exitCode)
    if (exitCode === 1) assert.match(err, /error.* provider\.scopes\[1\]: .*every sign-in fails/)
  })

for (const [written, isNoted] of [
  ['response_mode: query', true],
  ['scopes: [openid, email]', true],
  ['scopes: [openid, groups]', false],
  ['id_token_claims: [groups]', false],
  ['issuer: https://accounts.google.com', false],
] as const)
  test(`check ${isNoted ? 'says' : 'does not say'} that groups may need a scope: ${written}`, async (t) => {
    const yaml = settings.replace('X-Name: name', 'X-Teams: groups')

    const issuer = written.startsWith('issuer') ? '  issuer: https://id.example.com\n' : ''
    const { out } = await checkedFile(t, yaml.replace(`${issuer}  client_id:`, `  ${written}\n  client_id:`))

    assert.equal(out.includes('many providers send only with a scope of that name'), isNoted)
  })

test('check prints what a provider without ID Tokens lacks, and no address that it does not use', async (t) => {
  const endpoints = ['authorization', 'token', 'userinfo'].map(
    (name) => `${name}_endpoint: https://id.example.com/${name}`,
  )
  const yaml = settings.replace(
    '  client_id: orders',
    `  client_id: orders\n  kind: oauth2\n  subject: id\n  metadata: { ${endpoints.join(', ')} }`,
  )

  const [text, json] = [await checkedFile(t, yaml), await checkedFile(t, yaml, 'json')]

  assert.match(text.out, /for the client orders:\n {2}redirect URI +\S+\/callback\n\n/)
  assert.match(text.out, /it has no nonce, no sid, no Logout Tokens, no sign-out and no step-up\.\n$/)
  assert.equal(text.out.match(/Logout Tokens/g)?.length, 1)
  assert.doesNotMatch(text.out, /scopes/)
  assert.deepEqual((JSON.parse(json.out) as { register: unknown }).register, {
    ...{ issuer: 'https://id.example.com', client_id: 'orders' },
    redirect_uris: ['https://orders.example.com/.gatehouse/callback'],
  })
})

test('check says how long a key lasts where the provider issues no refresh token', async (t) => {
  const yaml = `${settings.replace('upstreams:', 'session: { page: true, absolute_timeout: 8h }\nupstreams:')}      - { path: /dav/*, keys: true }\n    keys: {}\n`

  const tests = [
    '{ as: { sub: u1 }, key: true, get: /dav/x, expect: pass, headers: { X-Remote-User: u1 } }',
    '{ as: { sub: u1 }, key: true, get: /orders, expect: unauthorized }',
  ]
  const { exitCode, out } = await checkedFile(t, `${yaml}    tests: [${tests.join(', ')}]\n`)

  assert.equal(exitCode, 0, out)
  assert.match(out, /its 2 tests pass/)
  assert.match(out, /People make keys for orders\..* a key lasts for 8h at most \(session\.absolute_timeout\)/)
  assert.doesNotMatch((await checkedFile(t, settings)).out, /People make keys/)
})
