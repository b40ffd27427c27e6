import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { readExplainCall } from '../../src/cli/explain.ts'
import { folderWith, recordingTerminal } from '../support/command-line.ts'

const yaml = `version: 1
external_url: https://orders.example.com
trusted_proxies: [10.0.0.0/8]
provider:
  issuer: https://id.example.com
  client_id: orders
  client_secret: { env: CLIENT_SECRET }
  claims: { fields: https://id.example.com/claims/fields }
upstreams:
  orders:
    hosts: [orders.example.com]
    url: http://127.0.0.1:3000
    headers:
      X-Remote-User: sub
      X-Note: { claim: note, max_bytes: 8b }
      X-Badge: { claim: badge, required: true }
    rules:
      - { path: /static/*, access: public }
      - { path: /free/*, access: optional }
      - path: /admin/*
        methods: [GET, POST]
        require:
          - { claim: fields.groups, any_of: [admins, editors] }
          - { claim: fields.groups, none_of: [suspended] }
      - { path: /api/*, unauthenticated: 401 }
    logout: { paths: [/logout] }
`

const jane = { sub: 'jane', badge: 'b1', note: 'far too long', fields: { groups: ['admins'] } }

async function explained(t: Parameters<typeof folderWith>[0], args: readonly string[], claims: unknown = jane) {
  const folder = folderWith(t, { 'gateway.yaml': yaml, 'claims.json': JSON.stringify(claims) })
  const call = readExplainCall([
    ...args.map((arg) => (arg === 'CLAIMS' ? join(folder, 'claims.json') : arg)),
    '--config',
    join(folder, 'gateway.yaml'),
  ])
  assert.ok('carryOut' in call, JSON.stringify(call))
  const { terminal, said } = recordingTerminal({ CLIENT_SECRET: 'correct horse battery' })
  const exitCode = await call.carryOut(terminal)
  return { exitCode, ...said }
}

for (const [what, args, ...told] of [
  [
    'a rule that is met, with its line',
    ['--as', 'CLAIMS', 'https://orders.example.com/admin/users'],
    /as jane/,
    /rule +upstreams\.orders\.rules\[2\], the first that matches: GET, POST \/admin\/\* asks for a sign-in, and fields\.groups has any of admins, editors, and fields\.groups has none of suspended\n +.*gateway\.yaml:20:9\n +- path: \/admin\/\*/,
    /claims +fields\.groups has any of admins, editors: met\n +claims +fields\.groups has none of suspended: met/,
    /\npassed on to the application\n +orders is asked for http:\/\/127\.0\.0\.1:3000\/admin\/users/,
    /not told\n +X-Note: longer than 8 bytes/,
  ],
  [
    'a method that no rule is about',
    ['--as', 'CLAIMS', 'DELETE', '/admin/users'],
    /rule +none matches: everybody has to be signed in/,
  ],
  [
    'a public path',
    ['/static/x'],
    /open to everybody, and nobody’s identity is passed on/,
    /session +not looked at/,
    /X-Remote-User: nobody’s identity/,
  ],
  ['an optional one', ['/free/x'], /session +used when there is one; there is none/, /passed on/],
  ['a page load of nobody', ['/orders'], /\n303 sent to the sign-in: \/\.gatehouse\/sign-in\?return_to=%2Forders\n/],
  [
    'a script of nobody',
    ['-H', 'Accept: application/json', '/orders'],
    /\n401 refused: nobody is signed in/,
    /no page load/,
  ],
  ['a WebSocket of nobody', ['-H', 'Upgrade: websocket', '/orders'], /\n401 refused/, /asks for another protocol/],
  [
    'a page of another site',
    ['--as', 'CLAIMS', '-H', 'Origin: https://evil.example', 'POST', '/orders'],
    /\n403 refused: made by a page of another site\n +because +a page of https:\/\/evil\.example makes it/,
    /name its origin in trusted_origins/,
  ],
  [
    'a page of this site',
    ['--as', 'CLAIMS', '-H', 'Sec-Fetch-Site: same-origin', 'POST', '/orders'],
    /cross-site +the page that asks is this site’s own/,
  ],
  [
    'another host',
    ['https://other.example.com/'],
    /upstream +none serves this host and path\n\n404 refused: no upstream/,
  ],
  [
    'a logout link',
    ['--as', 'CLAIMS', '/logout'],
    /rule +the application’s own logout link.*\n\n303 sent to the gateway’s sign-out: \/\.gatehouse\/sign-out\n/,
  ],
  ['the gateway’s own URL', ['/.Gatehouse/sign-in'], /\nanswered by the gateway itself\n/],
  [
    'a path that could be read in two ways',
    ['/free;x/a'],
    /could also be read as \/free\/a\n/,
    /400 refused\n +because +request target refused: it can be read in two ways/,
  ],
  ['a path that is refused', ['/a/%2e%2e%2fb'], /^GET orders\.example\.com\/a\/%2e%2e%2fb, as nobody\n\n400 refused\n/],
  ['a method that is not passed on', ['TRACE', '/'], /501 refused/],
  [
    'a trusted proxy',
    [
      '--peer',
      '10.1.2.3',
      '-H',
      'X-Forwarded-Host: orders.example.com',
      '-H',
      'X-Forwarded-For: 192.0.2.9',
      '-H',
      'X-Forwarded-Proto: https',
      'http://internal:8080/static/x',
    ],
    /request .*from 192\.0\.2\.9, by https/,
    /host +orders\.example\.com/,
    /X-Forwarded-For: 192\.0\.2\.9, 10\.1\.2\.3/,
  ],
  [
    'somebody who is no trusted proxy',
    ['--peer', '192.0.2.1', '-H', 'X-Forwarded-Host: orders.example.com', 'http://internal:8080/static/x'],
    /host +internal\n/,
    /404/,
  ],
] as readonly (readonly [string, readonly string[], ...RegExp[]])[])
  test(`it is explained: ${what}`, async (t) => {
    const { exitCode, out, err } = await explained(t, args)

    assert.equal(exitCode, 0, err)
    for (const pattern of told) assert.match(out, pattern)
  })

test('claims that do not meet a rule are not shown, only what is asked', async (t) => {
  const { out } = await explained(t, ['--as', 'CLAIMS', '/admin/'], { ...jane, fields: { groups: ['secret-project'] } })

  assert.match(out, /\n403 refused: forbidden\n +because +fields\.groups: holds none of admins, editors\n/)
  assert.doesNotMatch(out, /secret-project/)
})

test('a required header without a value is why', async (t) => {
  const { out } = await explained(t, ['--as', 'CLAIMS', '/orders'], { sub: 'jane' })

  assert.match(out, /403 refused: forbidden\n +because +the claim for the required header X-Badge is missing/)
})

test('JSON has the steps, the decision and the headers', async (t) => {
  const { out } = await explained(t, ['--as', 'CLAIMS', '--format', 'json', '/admin/'])

  const { version, as, decision, steps, upstream } = JSON.parse(out) as {
    version: number
    as: string
    decision: object
    steps: { name: string }[]
    upstream: { identity: unknown }
  }
  assert.deepEqual([version, as, decision], [1, 'jane', { outcome: 'pass' }])
  assert.deepEqual(
    steps.map(({ name }) => name),
    ['request', 'host', 'path', 'upstream', 'rule', 'session', 'cross-site', 'claims', 'claims'],
  )
  assert.deepEqual(upstream.identity, [
    ['X-Remote-User', 'jane'],
    ['X-Badge', 'b1'],
  ])
})

test('nothing of what was given reaches the terminal as a command to it', async (t) => {
  const claims = { ...jane, note: 'a\u001b[2J', sub: 'ja\u001b[31mne' }
  const { out: passed } = await explained(t, ['--as', 'CLAIMS', '-H', 'X-A: \u001b[2J', '/orders'], claims)
  const { out } = await explained(
    t,
    ['--as', 'CLAIMS', '-H', 'X-A: \u001b[2J', '-H', 'Host: \u001b', '/orders\u001b'],
    claims,
  )

  assert.doesNotMatch(passed + out, /\u001b/)
})

for (const [argv, fault] of [
  [[], /wants a method and a URL/],
  [['GET', '/a', 'b'], /"b" is too much/],
  [['GET', 'orders'], /"orders" is neither a URL nor a path/],
  [['G T', '/'], /is not a method/],
  [['--as', 'a.json', '--anonymous', '/'], /contradict/],
  [['-H', 'nonsense', '/'], /is not a header/],
  [['--format', 'yaml', '/'], /--format is one of/],
  [['--log', 'x.log'], /wants the id of a request/],
  [['--log', 'x.log', 'id', '--as', 'a.json'], /nothing but the id/],
] as [string[], RegExp][])
  test(`a wrong call is refused: explain ${argv.join(' ')}`, () => {
    const call = readExplainCall(argv)

    assert.match('fault' in call ? call.fault : '', fault)
  })

for (const [text, fault] of [
  ['[1]', /is not a map of claims/],
  ['{ "sub": hunter2 }', /is not JSON$/],
] as const)
  test(`claims that are none are refused without being shown: ${text}`, async (t) => {
    const folder = folderWith(t, { 'gateway.yaml': yaml, 'claims.json': text })
    const call = readExplainCall(['--config', join(folder, 'gateway.yaml'), '--as', join(folder, 'claims.json'), '/'])
    const { terminal } = recordingTerminal({ CLIENT_SECRET: 'correct horse battery' })

    await assert.rejects(async () => 'carryOut' in call && call.carryOut(terminal), { message: fault })
  })
