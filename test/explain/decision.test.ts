import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { readExplainCall } from '../../src/cli/explain.ts'
import { loadConfig } from '../../src/config/load.ts'
import { hashSecret } from '../../src/core/scrypt-hash.ts'
import { failingTests } from '../../src/explain/embedded-tests.ts'
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
      - path: /orders/office
        require: [{ networks: [10.0.0.0/8] }, { time: { from: 08:00, to: 18:00, zone: UTC } }]
    session_cookies: [JSESSIONID]
    logout: { paths: [/logout], call: { post: /session/end } }
  first:
    hosts: [orders.example.com]
    path: /orders/logout
    url: http://127.0.0.1:3001
    logout: { paths: [/orders/logout], pass_first: true }
  wiki:
    hosts: [orders.example.com]
    path: /wiki
    url: http://127.0.0.1:3002/app
    strip_path: true
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
  const { terminal, said } = recordingTerminal({ CLIENT_SECRET: 'correct horse battery', WIKI_PASSWORD: 'hunter2' })
  const exitCode = await call.carryOut(terminal)
  return { exitCode, ...said }
}

for (const [settings, ...patterns] of [
  [
    'page: /sign/in, fields: { user: "{username}", code: "{password}" }, password: { env: WIKI_PASSWORD }',
    /own sign-in when a response redirects to \/sign\/in, or has a form with user and code, the gateway signs the person in by itself: it sends the form to \/sign\/in, with the password of a technical account\n/,
  ],
  [
    'action: /token, json: { user: "{username}", code: "{password}" }, token: t, password: { claim: badge }',
    /when a response has the status 401, or is the first page of a session, .* it sends JSON to \/token, with the password in the claim badge\n/,
  ],
  [
    'page: /in, asks: { status: 403 }, fields: { user: "{username}", code: "{password}" }',
    /when a response redirects to \/in, or has a form with user and code, or matches asks, the gateway/,
  ],
  [
    'basic: true',
    /when a response asks for Basic, .* with the password that the person enters on a page of the gateway\n/,
  ],
] as const)
  test(`explain says when and how the gateway signs people in at an application: ${settings}`, async (t) => {
    const config = yaml.replace(
      'session_cookies: [JSESSIONID]',
      `session_cookies: [JSESSIONID]\n    application_sign_in: { ${settings} }`,
    )

    const { out } = await explained(t, ['--as', 'CLAIMS', '/orders'], jane, config)

    for (const pattern of patterns) assert.match(out, pattern)
    assert.doesNotMatch(out, /hunter2/)
    for (const path of ['/static/x', '/logout'])
      assert.doesNotMatch((await explained(t, ['--as', 'CLAIMS', path], jane, config)).out, /own sign-in/)
  })

for (const [what, args, ...patterns] of [
  [
    'a rule whose requirements are met, with its line',
    ['--as', 'CLAIMS', 'https://orders.example.com/admin/users'],
    /as jane/,
    /rule +upstreams\.orders\.rules\[2\], the first match: GET, POST \/admin\/\* requires a sign-in, and fields\.groups has any of admins, editors, and fields\.groups has none of suspended\n +.*gateway\.yaml:20:9\n +- path: \/admin\/\*/,
    /claims +fields\.groups has any of admins, editors: met\n +claims +fields\.groups has none of suspended: met/,
    /\nforwarded to the upstream\n +to orders: http:\/\/127\.0\.0\.1:3000\/admin\/users/,
    /identity headers that are not sent\n +X-Note: longer than 8 bytes/,
  ],
  [
    'a method that no rule matches',
    ['--as', 'CLAIMS', 'DELETE', '/admin/users'],
    /rule +no rule matches: a sign-in is required/,
  ],
  [
    'a public path',
    ['/static/x'],
    /is public, and no identity is forwarded/,
    /session +not read/,
    /X-Remote-User: this rule forwards no identity/,
  ],
  ['an optional session', ['/free/x'], /session +used when present; absent/, /GET \/closed\/a|http:\/\/127.0.0.1:3000/],
  [
    'a page load of nobody',
    ['/orders'],
    /\n303 redirected to the sign-in: \/\.gatehouse\/sign-in\?return_to=%2Forders\n/,
  ],
  [
    'a script of nobody',
    ['-H', 'Accept: application/json', '/orders'],
    /\n401 refused: nobody is signed in\n[^]*\n +sign-in +\/\.gatehouse\/sign-in\n/,
    /not a page load/,
  ],
  [
    'a WebSocket without a session',
    ['-H', 'Upgrade: websocket', '/orders'],
    /\n401 refused/,
    /an upgrade to another protocol/,
  ],
  ['a WebSocket to an endpoint of the gateway', ['-H', 'Upgrade: websocket', '/.gatehouse/session'], /\n404 refused/],
  [
    'a WebSocket with content',
    ['-H', 'Upgrade: websocket', '-H', 'Content-Length: 5', '/static/x'],
    /\n400 refused\n +because +a request with Upgrade must not have content/,
  ],
  [
    'an offer of h2c, which is handled like any other request',
    ['-H', 'Upgrade: h2c', '/logout'],
    /not a page load/,
    /\n303 signed out by the gateway/,
  ],
  [
    'a logout link that the application sees first',
    ['--as', 'CLAIMS', '/orders/logout'],
    /\n303 signed out by the gateway: \/\.gatehouse\/sign-out\n +note +the upstream receives the request first \(pass_first\)/,
  ],
  [
    'the path at an upstream with a path of its own',
    ['--as', 'CLAIMS', '/wiki/start?a=b'],
    /\n +path +\/wiki\/start\n/,
    /\n +to wiki: http:\/\/127\.0\.0\.1:3002\/app\/start\?a=b/,
  ],
  [
    'a method that Node.js does not support',
    ['FOO', '/static/x'],
    /^FOO .*\n\n400 refused\n +because +Node\.js does not support the method FOO/,
  ],
  ['an unsupported expectation', ['-H', 'Expect: tea', '/static/x'], /\n417 refused/],
  [
    'a page of another site',
    ['--as', 'CLAIMS', '-H', 'Origin: https://evil.example', 'POST', '/orders'],
    /\n403 refused: sent by a page of another site\n +because +a page of https:\/\/evil\.example made the request/,
    /add its origin to trusted_origins/,
  ],
  [
    'a page of this site',
    ['--as', 'CLAIMS', '-H', 'Sec-Fetch-Site: same-origin', 'POST', '/orders'],
    /cross-site +the requesting page is of this site/,
  ],
  [
    'another host',
    ['https://other.example.com/'],
    /upstream +no upstream serves this host and path\n\n404 refused: no upstream/,
  ],
  [
    'a logout link',
    ['--as', 'CLAIMS', '/logout'],
    /rule +the application’s own logout link.*\n +logout call +afterwards the gateway sends POST \/session\/end to the application.*\n\n303 signed out by the gateway: \/\.gatehouse\/sign-out\n/,
  ],
  [
    'a requirement on the network, from it',
    ['--as', 'CLAIMS', '--peer', '10.0.0.7', '--at', '2026-01-05T09:30:00Z', '/orders/office'],
    /require +the client is in 10\.0\.0\.0\/8: met\n +require +the time is within 08:00 to 18:00 \(UTC\): .*/,
  ],
  [
    'a requirement on the network, from elsewhere',
    ['--as', 'CLAIMS', '--peer', '203.0.113.7', '/orders/office'],
    /\n403 refused: forbidden\n +because +the client is not in 10\.0\.0\.0\/8\n/,
  ],
  [
    'a requirement on the time',
    ['--as', 'CLAIMS', '--peer', '10.0.0.7', '--at', '2026-01-05T18:00:00Z', '/orders/office'],
    /\n403 refused: forbidden\n +because +the time is not within 08:00 to 18:00 \(UTC\)\n/,
  ],
  [
    'a page load in a frame',
    ['-H', 'Sec-Fetch-Mode: navigate', '-H', 'Sec-Fetch-Dest: iframe', '/orders'],
    /request +a page load in a frame: .*\n[^]*\n401 refused: nobody is signed in\n/,
  ],
  [
    'a logout link that a script requests',
    ['--as', 'CLAIMS', '-H', 'Sec-Fetch-Mode: cors', 'DELETE', '/logout'],
    /\nsigned out by the gateway\n +note +the gateway handles it as POST \/\.gatehouse\/sign-out/,
  ],
  ['an endpoint of the gateway', ['/.gatehouse/sign-in?x'], /\nserved by the gateway itself\n/],
  [
    'a script at an endpoint of the gateway that serves page loads only',
    ['-H', 'Accept: application/json', '/.gatehouse/sign-in'],
    /\n401 refused\n +because .*, and this one serves page loads only\n +code +ERR_UNAUTHENTICATED\n/,
  ],
  [
    'a prefetch of the sign-in at a host that is not external_url',
    ['-H', 'Sec-Purpose: prefetch', 'https://other.example.com/.gatehouse/sign-in'],
    /\n401 refused\n +because .*, and this one serves page loads only\n +code +ERR_UNAUTHENTICATED\n/,
  ],
  [
    'an unknown URL below the reserved prefix',
    ['/.gatehouse/nope'],
    /\n404 refused\n +because +URLs below \/\.gatehouse\/ belong to the gateway itself, and this is not one of its endpoints\n +code +ERR_NO_ROUTE\n/,
  ],
  ['an endpoint of the gateway in another spelling', ['/.Gatehouse/sign-in'], /\n404 refused\n/, /ERR_NO_ROUTE/],
  [
    'an endpoint of the gateway with another method',
    ['DELETE', '/.gatehouse/sign-out'],
    /\n405 refused\n +because .* allows GET, POST only\n +code +ERR_METHOD_NOT_ALLOWED/,
  ],
  [
    'a form without a session',
    ['POST', '/orders'],
    /\n401 .*\n[^]*note +if a page of this site sends the form, .* the gateway keeps the content and redirects to the sign-in .*\n/,
  ],
  [
    'a path that could be read in two ways',
    ['/free;x/a'],
    /could also be read as \/free\/a\n/,
    /400 refused\n +because +the request target is rejected: it can be read in two ways/,
  ],
  ['a path that is refused', ['/a/%2e%2e%2fb'], /^GET orders\.example\.com\/a\/%2e%2e%2fb, as nobody\n\n400 refused\n/],
  ['a method that is not forwarded', ['TRACE', '/'], /501 refused/],
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
    /request .*from 192\.0\.2\.9, over https/,
    /host +orders\.example\.com/,
    /X-Forwarded-For: 192\.0\.2\.9, 10\.1\.2\.3/,
  ],
  [
    'a client that is not a trusted proxy',
    ['--peer', '192.0.2.1', '-H', 'X-Forwarded-Host: orders.example.com', 'http://internal:8080/static/x'],
    /host +internal\n/,
    /404/,
  ],
] as readonly (readonly [string, readonly string[], ...RegExp[]])[])
  test(`explain shows ${what}`, async (t) => {
    const { exitCode, out, err } = await explained(t, args)

    assert.equal(exitCode, 0, err)
    for (const pattern of patterns) assert.match(out, pattern)
  })

for (const [what, args, ...patterns] of [
  [
    'a page',
    ['/orders'],
    /\n303 redirected to the sign-in/,
    /\n +note +the sign-in is refused with 421 ERR_WRONG_HOST\n/,
  ],
  ['the sign-in itself', ['/.gatehouse/sign-in'], /\n421 refused\n/],
] as readonly (readonly [string, readonly string[], ...RegExp[]])[])
  test(`explain shows that a sign-in at another host than external_url is refused: ${what}`, async (t) => {
    const anyHost = yaml.replace('    hosts: [orders.example.com]\n', '')
    const at = (host: string) => args.map((path) => `https://${host}${path}`)

    const { out } = await explained(t, at('www.example.com'), jane, anyHost)
    const right = await explained(t, at('orders.example.com'), jane, anyHost)

    for (const pattern of [
      ...patterns,
      /begin at www\.example\.com and end at orders\.example\.com/,
      /code +ERR_WRONG_HOST\n +to do +redirect that host/,
    ])
      assert.match(out, pattern)
    assert.doesNotMatch(right.out, /ERR_WRONG_HOST/)
  })

test('explain does not take a form for a redirect to the sign-in, also at another host than external_url', async (t) => {
  const anyHost = yaml.replace('    hosts: [orders.example.com]\n', '')
  const form = ['-H', 'Accept: text/html', 'POST', 'https://www.example.com/orders']

  const { out } = await explained(t, form, jane, anyHost)

  assert.match(out, /\n401 /)
  assert.match(out, /code +ERR_UNAUTHENTICATED/)
  assert.doesNotMatch(out, /ERR_WRONG_HOST/)
})

test('explain reports 431 for exactly the header size at which the gateway sends it', async (t) => {
  const world = await startWorld(t, {
    settings: 'limits: { header_size: 4kb }',
    upstreamSettings: 'rules: [{ path: /*, access: public }]',
  })
  const { url, file } = world.replicas[0] as Replica
  const { host, port } = new URL(url)
  const most = 4096 - 1 - `/echo${['Host', host, 'Accept', '*/*', 'Cookie'].join('')}`.length

  for (const [bytes, status, told] of [
    [most, '200', /forwarded to the upstream/],
    [
      most + 1,
      '431',
      /\n431 refused\n +because +the URL and the headers have 4096 bytes, but limits\.header_size is 4096\n +note +the usual cause is too many cookies/,
    ],
  ] as const) {
    const cookie = 'c'.repeat(bytes)
    const raw = `GET /echo HTTP/1.1\r\nHost: ${host}\r\nAccept: */*\r\nCookie: ${cookie}\r\n\r\n`
    const response = await new RawClient(t, Number(port)).send(raw).until(/\r\n\r\n/)
    const call = readExplainCall(['-c', file, '-H', 'Accept: */*', '-H', `Cookie: ${cookie}`, `${url}/echo`])
    const { terminal, said } = recordingTerminal(secrets)
    assert.ok('carryOut' in call)
    await call.carryOut(terminal)

    assert.equal(response.slice(9, 12), status)
    assert.match(said.out, told)
  }
})

test('With tracing, explain shows that the gateway writes traceparent itself', async (t) => {
  const lines = ['-H', 'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', '/static/x']
  const without = await explained(t, lines)
  const { out } = await explained(t, lines, jane, `${yaml}tracing: { otlp: 'http://127.0.0.1:4318' }\n`)

  assert.match(without.out, /traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n/)
  assert.match(out, /traceparent: \(generated, or continued from a trusted proxy\)\n/)
  assert.match(out, /traceparent: the gateway writes this field, from trusted sources only/)
  assert.doesNotMatch(out, /0af7651916cd43dd8448eb211c80319c/)
})

test('explain shows what a rule requires, and never the value of a claim', async (t) => {
  const { out } = await explained(t, ['--as', 'CLAIMS', '/admin/'], { ...jane, fields: { groups: ['secret-project'] } })

  assert.match(out, /\n403 refused: forbidden\n +because +fields\.groups: holds none of admins, editors\n/)
  assert.doesNotMatch(out, /secret-project/)
})

test('explain says where the sign-in from a frame opens', async (t) => {
  const frame = ['-H', 'Sec-Fetch-Mode: navigate', '-H', 'Sec-Fetch-Dest: iframe', '/orders']
  const embedded = `${yaml}\nsession: { embedded_in: ["https://portal.example.net"] }`

  assert.match((await explained(t, frame)).out, /opens the sign-in in the whole window/)
  assert.match((await explained(t, frame, jane, embedded)).out, /opens the sign-in in a window of its own/)
})

test('explain uses a placeholder for a missing sub, and says so', async (t) => {
  const without = await explained(t, ['--as', 'CLAIMS', '/orders'], { badge: 'b1' })
  const { err } = await explained(t, ['--as', 'CLAIMS', '/orders'])

  assert.match(without.out, /X-Remote-User: somebody\n/)
  assert.match(without.err, /the claims have no sub, which every sign-in has; using sub "somebody"/)
  assert.equal(err, '')
})

test('explain names the required header whose claim is missing', async (t) => {
  const { out } = await explained(t, ['--as', 'CLAIMS', '/orders'], { sub: 'jane' })

  assert.match(out, /403 refused: forbidden\n +because +the claim for the required header X-Badge is missing/)
})

test('The JSON output has the steps, the decision and the headers', async (t) => {
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

for (const [reached, args, last] of [
  ['requirements that are not met, all of them', ['--as', 'CLAIMS', '/admin/'], ['claims', 'claims']],
  [
    'nothing after a page of another site',
    ['--as', 'CLAIMS', '-H', 'Origin: https://a.test', 'POST', '/admin/'],
    ['session', 'cross-site'],
  ],
  ['no session where anybody has access', ['--as', 'CLAIMS', '/static/a'], ['rule', 'session']],
  [
    'the session of a logout that the application gets first',
    ['--as', 'CLAIMS', '/orders/logout'],
    ['session', 'cross-site'],
  ],
  ['no session of another logout', ['--as', 'CLAIMS', '/logout'], ['rule', 'logout call']],
] as const)
  test(`The steps end where the decision ends: ${reached}`, async (t) => {
    const claims = { ...jane, fields: { groups: ['suspended'] } }
    const { out } = await explained(t, [...args.slice(0, -1), '--format', 'json', ...args.slice(-1)], claims)

    const { steps } = JSON.parse(out) as { readonly steps: readonly { readonly name: string }[] }
    assert.deepEqual(
      steps.slice(-2).map(({ name }) => name),
      last,
    )
  })

test('explain writes no control characters from its input to the terminal', async (t) => {
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
  [[], /needs a method and a URL/],
  [['GET', '/a', 'b'], /unexpected argument: "b"/],
  [['GET', 'orders'], /"orders" is neither a URL nor a path/],
  [['G T', '/'], /is not a method/],
  [['--as', 'a.json', '--anonymous', '/'], /contradict/],
  [['-H', 'nonsense', '/'], /is not a header/],
  [['--peer', '10.0.0.0/8', '/'], /"10\.0\.0\.0\/8" is not an IP address: write 10\.1\.2\.3/],
  [['--at', 'yesterday', '/'], /"yesterday" is not a time/],
  [['--format', 'yaml', '/'], /--format must be one of/],
  [['--log', 'x.log'], /needs a request id/],
  [['--log', 'x.log', 'id', '--as', 'a.json'], /takes a request id only/],
] as [string[], RegExp][])
  test(`Invalid arguments are an error: explain ${argv.join(' ')}`, () => {
    const call = readExplainCall(argv)

    assert.match('fault' in call ? call.fault : '', fault)
  })

for (const [text, fault] of [
  ['[1]', /must be a JSON object of claims/],
  ['{ "sub": hunter2 }', /is not JSON$/],
] as const)
  test(`Invalid claims are an error that does not quote them: ${text}`, async (t) => {
    const folder = folderWith(t, { 'gateway.yaml': yaml, 'claims.json': text })
    const call = readExplainCall(['--config', join(folder, 'gateway.yaml'), '--as', join(folder, 'claims.json'), '/'])
    const { terminal } = recordingTerminal({ CLIENT_SECRET: 'correct horse battery' })

    await assert.rejects(async () => 'carryOut' in call && call.carryOut(terminal), { message: fault })
  })

test('Constants and facts about the request are shown, secrets are not', async (t) => {
  const headers =
    'X-Site: { value: north }\n      X-Secret: { env: CLIENT_SECRET }\n      X-Real-IP: { request: client_address }\n'
  const config = yaml.replace('X-Remote-User: sub\n', `X-Remote-User: sub\n      ${headers}`)

  const { out, exitCode } = await explained(
    t,
    ['--as', 'CLAIMS', '--peer', '192.0.2.7', 'https://orders.example.com/'],
    jane,
    config,
  )

  assert.equal(exitCode, 0)
  assert.match(out, /X-Site: north\n +X-Secret: \(secret\)\n/)
  assert.match(out, /X-Real-IP: 192\.0\.2\.7\n/)
  assert.doesNotMatch(out, /correct horse/)
})

test('An access token is explained with the claims of --as, and not without them', async (t) => {
  const config = `version: 1
external_url: https://orders.example.com
provider: { issuer: https://id.example.com, client_id: orders, client_secret: { env: CLIENT_SECRET } }
upstreams:
  orders:
    url: http://127.0.0.1:3000
    headers: { X-Remote-User: sub }
    access_tokens: { audience: [api], scopes: [read] }
    rules: [{ path: /api/*, access_tokens: true }]
    tests:
      - { as: { sub: jane, scope: read }, bearer: true, get: /api/x, expect: pass, headers: { X-Remote-User: jane } }
      - { as: { sub: jane }, bearer: true, get: /api/x, expect: forbidden }
      - { as: { sub: jane, scope: read }, bearer: true, get: /, expect: sign_in }
      - { get: /api/x, expect: sign_in }
`
  const url = 'https://orders.example.com/api/x'
  const bearer = ['-H', 'Authorization: Bearer x', 'GET', url]
  const accepted = await explained(t, ['--as', 'CLAIMS', ...bearer], { sub: 'jane', scope: 'read' }, config)
  assert.match(accepted.out, /requires a sign-in or an access token/)
  assert.match(accepted.out, /access token +used instead of a session; of jane; it has no sid, so it does not end with/)
  const ending = await explained(t, ['--as', 'CLAIMS', ...bearer], { sub: 'jane', sid: 's-1', scope: 'read' }, config)
  assert.match(ending.out, /access token +used instead of a session; of jane\n/)
  assert.match(accepted.out, /Authorization.* these credentials are for the gateway/)
  const lacking = await explained(t, ['--as', 'CLAIMS', ...bearer], { sub: 'jane' }, config)
  assert.match(lacking.out, /scopes +the token lacks read/)
  assert.match(lacking.out, /403 .*\n[^]*ERR_TOKEN_SCOPE/)
  const unknown = await explained(t, bearer, {}, config)
  assert.match(unknown.out, /ERR_TOKEN_INVALID/)
})

test('A service account is explained with its claims of the configuration, without its secret', async (t) => {
  const folder = folderWith(t, { 'accounts.txt': `backup:${await hashSecret('a secret', { ln: 14, r: 8, p: 1 })}\n` })
  const config = `version: 1
external_url: https://orders.example.com
provider: { issuer: https://id.example.com, client_id: orders, client_secret: { env: CLIENT_SECRET } }
upstreams:
  orders:
    url: http://127.0.0.1:3000
    headers: { X-Remote-User: sub, Authorization: { bearer: access_token } }
    service_accounts: { file: "${join(folder, 'accounts.txt')}", claims: { backup: { groups: [ops] } } }
    rules: [{ path: /api/*, service_accounts: true, require: { claim: groups, any_of: [ops] } }]
    tests:
      - { service_account: backup, get: /api/x, expect: pass, headers: { X-Remote-User: service-account/backup } }
      - { service_account: restore, get: /api/x, expect: forbidden }
      - { service_account: backup, get: /, expect: sign_in }
`
  const basic = (name: string) => `Authorization: Basic ${Buffer.from(`${name}:x`).toString('base64')}`
  const of = (name: string) => explained(t, ['-H', basic(name), 'https://orders.example.com/api/x'], {}, config)

  const known = await of('backup')
  assert.match(known.out, /requires a sign-in or a service account/)
  assert.match(known.out, /service account +backup, used instead of a session; explain does not verify its secret/)
  assert.match(known.out, /groups.*: met/)
  assert.match(known.out, /X-Remote-User: service-account\/backup/)
  assert.match(known.out, /Authorization: a service account has no token/)
  assert.match((await of('nobody')).out, /ERR_ACCOUNT_INVALID/)
  const read = loadConfig(join(folderWith(t, { 'gateway.yaml': config }), 'gateway.yaml'), {
    CLIENT_SECRET: 'correct horse battery',
  })
  assert.ok(read.ok)
  assert.deepEqual(failingTests(read.config), [])
})

test('explain shows redirects, fixed content, and whom maintenance lets through', async (t) => {
  const config = yaml.replace(
    '      - { path: /static/*, access: public }',
    `      - { path: /old/*, access: public, respond: { to: /new/*, status: 308 } }
      - { path: /gone, access: public, respond: { status: 410 } }
      - { path: /closed/*, respond: { maintenance: { unless: { claim: fields.groups, any_of: [admins] } } } }`,
  )
  const of = (path: string, claims: unknown) =>
    explained(t, ['--as', 'CLAIMS', `https://orders.example.com${path}`], claims, config)

  const moved = await of('/old/a', jane)
  assert.match(moved.out, /308/)
  assert.match(moved.out, /\/new\/\*/)
  assert.match((await of('/gone', jane)).out, /410/)
  const closed = await of('/closed/a', { sub: 'samir' })
  assert.match(closed.out, /503 refused: maintenance/)
  assert.match(closed.out, /is under maintenance, unless fields\.groups/)
  const passed = await of('/closed/a', jane)
  assert.match(passed.out, /is under maintenance[^]*no rule matches: a sign-in is required/)
  assert.match(passed.out, /GET \/closed\/a|http:\/\/127.0.0.1:3000/)
})
