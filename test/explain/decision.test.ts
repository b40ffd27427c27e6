import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { readExplainCall } from '../../src/cli/explain.ts'
import { RawClient } from '../proxy/support.ts'
import { folderWith, recordingTerminal } from '../support/command-line.ts'
import { type Replica, secrets, startWorld } from '../support/world.ts'

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

async function explained(
  t: Parameters<typeof folderWith>[0],
  args: readonly string[],
  claims: unknown = jane,
  config = yaml,
) {
  const folder = folderWith(t, { 'gateway.yaml': config, 'claims.json': JSON.stringify(claims) })
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
    /\n401 refused: nobody is signed in\n[^]*\n +sign-in +\/\.gatehouse\/sign-in\n/,
    /no page load/,
  ],
  ['a WebSocket of nobody', ['-H', 'Upgrade: websocket', '/orders'], /\n401 refused/, /asks for another protocol/],
  ['a WebSocket to the gateway’s own URL', ['-H', 'Upgrade: websocket', '/.gatehouse/session'], /\n404 refused/],
  [
    'a WebSocket with content',
    ['-H', 'Upgrade: websocket', '-H', 'Content-Length: 5', '/static/x'],
    /\n400 refused\n +because +a request to switch to another protocol has no content/,
  ],
  [
    'an offer of h2c, which is answered like any other request',
    ['-H', 'Upgrade: h2c', '/logout'],
    /no page load/,
    /\n303 signed out by the gateway/,
  ],
  ['a method that Node does not know', ['FOO', '/static/x'], /^FOO .*\n\n400 refused\n +because +no HTTP server/],
  ['an expectation that nobody meets', ['-H', 'Expect: tea', '/static/x'], /\n417 refused/],
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
    /rule +the application’s own logout link.*\n\n303 signed out by the gateway: \/\.gatehouse\/sign-out\n/,
  ],
  [
    'a page load in a frame',
    ['-H', 'Sec-Fetch-Mode: navigate', '-H', 'Sec-Fetch-Dest: iframe', '/orders'],
    /request +a page load in a frame: .*\n[^]*\n401 refused: nobody is signed in\n/,
  ],
  [
    'a logout link that a script asks for',
    ['--as', 'CLAIMS', '-H', 'Sec-Fetch-Mode: cors', 'DELETE', '/logout'],
    /\nsigned out by the gateway\n +note +it is carried out as POST \/\.gatehouse\/sign-out/,
  ],
  ['the gateway’s own URL', ['/.gatehouse/sign-in?x'], /\nanswered by the gateway itself\n/],
  [
    'a URL below the gateway’s prefix that there is not',
    ['/.gatehouse/nope'],
    /\n404 refused\n +because +what lies below \/\.gatehouse\/ belongs to the gateway itself, and it has no such URL\n +code +ERR_NO_ROUTE\n/,
  ],
  ['the gateway’s own URL in another spelling', ['/.Gatehouse/sign-in'], /\n404 refused\n/, /ERR_NO_ROUTE/],
  [
    'the gateway’s own URL, with a method that it does not take',
    ['DELETE', '/.gatehouse/sign-out'],
    /\n405 refused\n +because .* takes GET, POST only\n +code +ERR_METHOD_NOT_ALLOWED/,
  ],
  [
    'a form of nobody, which does not come back',
    ['POST', '/orders'],
    /\n303 sent to the sign-in: .*\n +note +the content of the POST is lost: the browser comes back with GET\n/,
  ],
  [
    'a path that could be read in two ways',
    ['/free;x/a'],
    /could also be read as \/free\/a\n/,
    /400 refused\n +because +the request target: it can be read in two ways/,
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

for (const [what, args, ...told] of [
  ['a page', ['/orders'], /\n303 sent to the sign-in/, /\n +note +the sign-in is refused with 421 ERR_WRONG_HOST\n/],
  ['the sign-in itself', ['/.gatehouse/sign-in'], /\n421 refused\n/],
] as readonly (readonly [string, readonly string[], ...RegExp[]])[])
  test(`a sign-in at another host than external_url is told: ${what}`, async (t) => {
    const anyHost = yaml.replace('    hosts: [orders.example.com]\n', '')
    const at = (host: string) => args.map((path) => `https://${host}${path}`)

    const { out } = await explained(t, at('www.example.com'), jane, anyHost)
    const right = await explained(t, at('orders.example.com'), jane, anyHost)

    for (const pattern of [
      ...told,
      /begin at www\.example\.com and end at orders\.example\.com/,
      /code +ERR_WRONG_HOST\n +to do +redirect that host/,
    ])
      assert.match(out, pattern)
    assert.doesNotMatch(right.out, /ERR_WRONG_HOST/)
  })

test('headers that are too large are answered with 431, of as many bytes as explain says it of', async (t) => {
  const world = await startWorld(t, {
    settings: 'limits: { header_size: 4kb }',
    upstreamSettings: 'rules: [{ path: /*, access: public }]',
  })
  const { url, file } = world.replicas[0] as Replica
  const { host, port } = new URL(url)
  const most = 4096 - 1 - `/echo${['Host', host, 'Accept', '*/*', 'Cookie'].join('')}`.length

  for (const [bytes, status, told] of [
    [most, '200', /passed on to the application/],
    [
      most + 1,
      '431',
      /\n431 refused\n +because +its URL and headers have 4096 bytes, and limits\.header_size is 4096\n +note +mostly too many cookies/,
    ],
  ] as const) {
    const cookie = 'c'.repeat(bytes)
    const raw = `GET /echo HTTP/1.1\r\nHost: ${host}\r\nAccept: */*\r\nCookie: ${cookie}\r\n\r\n`
    const answer = await new RawClient(t, Number(port)).send(raw).until(/\r\n\r\n/)
    const call = readExplainCall(['-c', file, '-H', 'Accept: */*', '-H', `Cookie: ${cookie}`, `${url}/echo`])
    const { terminal, said } = recordingTerminal(secrets)
    assert.ok('carryOut' in call)
    await call.carryOut(terminal)

    assert.equal(answer.slice(9, 12), status)
    assert.match(said.out, told)
  }
})

test('a gateway that takes part in traces says itself which', async (t) => {
  const lines = ['-H', 'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', '/static/x']
  const without = await explained(t, lines)
  const { out } = await explained(t, lines, jane, `${yaml}tracing: { otlp: 'http://127.0.0.1:4318' }\n`)

  assert.match(without.out, /traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n/)
  assert.match(out, /traceparent: \(a new one, or that of a trusted caller gone on with\)\n/)
  assert.match(out, /traceparent: is written by the gateway, from what it believes/)
  assert.doesNotMatch(out, /0af7651916cd43dd8448eb211c80319c/)
})

test('claims that do not meet a rule are not shown, only what is asked', async (t) => {
  const { out } = await explained(t, ['--as', 'CLAIMS', '/admin/'], { ...jane, fields: { groups: ['secret-project'] } })

  assert.match(out, /\n403 refused: forbidden\n +because +fields\.groups: holds none of admins, editors\n/)
  assert.doesNotMatch(out, /secret-project/)
})

test('claims without sub are explained with one that is made up, which is said', async (t) => {
  const without = await explained(t, ['--as', 'CLAIMS', '/orders'], { badge: 'b1' })
  const { err } = await explained(t, ['--as', 'CLAIMS', '/orders'])

  assert.match(without.out, /X-Remote-User: somebody\n/)
  assert.match(
    without.err,
    /the claims have no sub, which everybody has who signs in; a made-up one stands in: somebody/,
  )
  assert.equal(err, '')
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
