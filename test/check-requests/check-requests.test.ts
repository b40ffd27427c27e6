import assert from 'node:assert/strict'
import { after, test, type TestContext } from 'node:test'
import { startWorld } from '../support/world.ts'
import { type AskedWorld, type Fields, startAskedWorld } from './asking.ts'

/** For tests that change nothing in it, because a world takes longer to start than such a test. */
const shared = await startAskedWorld({ after } as unknown as TestContext)

function reasonsIn({ replicas }: AskedWorld): unknown[] {
  return (replicas[0]?.log ?? [])
    .filter(({ message }) => message === 'request.refused')
    .map(({ fields }) => fields['reason'])
}

function removedBy(headers: Readonly<Record<string, unknown>>): string[] {
  return String(headers['x-envoy-auth-headers-to-remove']).split(', ')
}

test('The response for a signed-in person has the headers of the upstream, and names the fields to remove', async (t) => {
  const world = await startAskedWorld(t)
  const cookie = await world.signIn('jane')

  const { status, headers, body } = await world.ask(world.described({ Cookie: `theme=dark; ${cookie}` }))

  assert.deepEqual([status, body], [200, ''])
  assert.equal(headers['x-remote-user'], 'jane')
  assert.match(String(headers['x-groups']), /\w/)
  // The session cookie of the gateway is not for the application.
  assert.equal(headers['cookie'], 'theme=dark')
  assert.equal(headers['x-nickname'], undefined)
  for (const name of ['x-nickname', 'x-gatehouse-identity', 'x-original-url', 'x-rewrite-url'])
    assert.ok(removedBy(headers).includes(name), name)
  assert.ok(!removedBy(headers).includes('x-remote-user'))
})

test('The response for a public path has no identity, and names each identity header to remove', async (t) => {
  const world = await startAskedWorld(t)
  const cookie = await world.signIn('jane')

  const { status, headers } = await world.ask(
    world.described({ 'X-Forwarded-Uri': '/wiki/public/logo.png', Cookie: cookie, 'X-Remote-User': 'forged' }),
  )

  assert.deepEqual([status, headers['x-remote-user'], headers['cookie']], [200, undefined, undefined])
  for (const name of ['x-remote-user', 'x-groups', 'cookie']) assert.ok(removedBy(headers).includes(name), name)
})

test('A page load without a session is redirected to the sign-in at external_url, and returns to the page', async (t) => {
  const world = await startAskedWorld(t)

  const { status, headers } = await world.ask(world.described())

  assert.equal(status, 303)
  // Traefik would complete a relative address with that of the gateway.
  assert.equal(headers.location, `${world.url}/.gatehouse/sign-in?return_to=%2Fwiki%2Fpage%3Fa%3D1`)
})

test('A script gets 401 with the address of the sign-in', async (t) => {
  const world = await startAskedWorld(t)

  const { status, headers, body } = await world.ask(world.described({ Accept: 'application/json' }))

  assert.deepEqual([status, headers['content-type']], [401, 'application/problem+json'])
  assert.match(body, /"sign_in":"\/.gatehouse\/sign-in"/)
})

test('A form without a session gets a page that says that its content was not kept', async (t) => {
  const world = await startAskedWorld(t)

  const { status, headers } = await world.ask(world.described({ 'X-Forwarded-Method': 'POST' }))

  assert.deepEqual([status, headers['content-type']], [401, 'text/html; charset=utf-8'])
})

test('A person without the required claim gets the page of the gateway, and the audit names the asking proxy', async (t) => {
  const world = await startAskedWorld(t)
  const cookie = await world.signIn('samir')

  const { status, headers } = await world.ask(
    world.described({ 'X-Forwarded-Uri': '/wiki/admin/users', Cookie: cookie }),
  )

  assert.deepEqual([status, headers['content-type']], [403, 'text/html; charset=utf-8'])
  const denied = world.replicas[0]?.log.find(({ message }) => message === 'access.denied')?.fields
  assert.equal(denied?.['asked_by'], '127.0.0.1')
  assert.equal(denied?.['path'], '/wiki/admin/users')
})

test('The method of the request decides, not that of the check request', async (t) => {
  const world = await startAskedWorld(t)
  const cookie = await world.signIn('samir')
  const write = { 'X-Forwarded-Uri': '/wiki/write/page', Cookie: cookie }

  assert.equal((await world.ask(world.described(write))).status, 200)
  assert.equal((await world.ask(world.described({ ...write, 'X-Forwarded-Method': 'POST' }))).status, 403)
})

test('A check refreshes the session, and the identity is the new one', async (t) => {
  const world = await startAskedWorld(t)
  world.provider.bend('/oauth/token', (body) => (body['expires_in'] = 10))
  const cookie = await world.signIn('jane')
  const before = world.provider.hits('/oauth/token')
  world.moveClock(11_000)

  const responses = await Promise.all([1, 2, 3].map(() => world.ask(world.described({ Cookie: cookie }))))

  assert.deepEqual(
    responses.map(({ status, headers }) => [status, headers['x-remote-user']]),
    [1, 2, 3].map(() => [200, 'jane']),
  )
  assert.equal(world.provider.hits('/oauth/token') - before, 1)
})

test('A logout link is redirected to the sign-out', async (t) => {
  const world = await startAskedWorld(t)

  const { status, headers } = await world.ask(world.described({ 'X-Forwarded-Uri': '/wiki/logout' }))

  assert.deepEqual([status, headers.location], [303, `${world.url}/.gatehouse/sign-out`])
})

test('A session that has ended is refused at the next check', async (t) => {
  const world = await startAskedWorld(t)
  const cookie = await world.signIn('jane')
  assert.equal((await world.ask(world.described({ Cookie: cookie }))).status, 200)

  await world.provider.endSession(world.provider.sessions()[0]?.sid ?? '')
  const { status, headers } = await world.ask(world.described({ Cookie: cookie }))

  assert.equal(status, 303)
  assert.match(String(headers['set-cookie']), /gatehouse=;/)
})

test('An ended session whose page is still open gets no success with the page that clears it', async (t) => {
  const world = await startAskedWorld(t)
  const cookie = await world.signIn('jane')
  await world.provider.endSession(world.provider.sessions()[0]?.sid ?? '')

  const { status, headers } = await world.ask(
    world.described({ Cookie: cookie, 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Site': 'same-origin' }),
  )

  assert.equal(status, 401)
  assert.match(String(headers['refresh']), /sign-in/)
})

test('With a strict cookie, a link on another site gets no success with the page that loads it again', async (t) => {
  const world = await startAskedWorld(t, { session: 'cookie: { same_site: strict }' })

  const { status, headers } = await world.ask(
    world.described({ 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Site': 'cross-site' }),
  )

  assert.equal(status, 401)
  assert.match(String(headers['refresh']), /\/wiki\/page\?a=1/)
})

for (const signs of [
  { 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==' },
  { 'X-Forwarded-Proto': 'ws' },
  { 'Sec-Fetch-Mode': 'websocket' },
  { Connection: 'Upgrade', Upgrade: 'websocket' },
])
  test(`A WebSocket of another site is refused, also without Upgrade in the check request: ${JSON.stringify(signs)}`, async () => {
    const world = shared
    const cookie = await world.signIn('jane')
    const fields = { ...signs, Cookie: cookie, Accept: '*/*' }

    const own = await world.ask(world.described({ ...fields, Origin: world.url }))
    const foreign = await world.ask(world.described({ ...fields, Origin: 'https://evil.example' }))

    assert.deepEqual([own.status, foreign.status], [200, 403])
    assert.equal(own.headers['x-remote-user'], 'jane')
  })

test('The access log names the request that was asked about, its client, and the asking proxy', async (t) => {
  const world = await startAskedWorld(t)

  await world.ask(world.described({ 'X-Forwarded-Method': 'DELETE' }))

  const line = world.replicas[0]?.access.find(({ asked_by }) => asked_by !== undefined)
  assert.deepEqual(
    [line?.['method'], line?.['path'], line?.['client'], line?.['asked_by'], line?.['status']],
    ['DELETE', '/wiki/page', '192.0.2.7', '127.0.0.1', 401],
  )
})

const invalid: readonly (readonly [what: string, field: RegExp, changes: Record<string, string | undefined>])[] = [
  ...['Method', 'Proto', 'Host', 'Uri', 'For'].map(
    (part) =>
      [
        `without X-Forwarded-${part}`,
        new RegExp(`^X-Forwarded-${part} is missing`),
        { [`X-Forwarded-${part}`]: undefined },
      ] as const,
  ),
  ['with another method in the other form', /X-Forwarded-Method/, { 'X-Original-Method': 'POST' }],
  ['with another path in the other form', /X-Forwarded-Uri/, { 'X-Original-URL': 'http://127.0.0.1/wiki/public/x' }],
  ['with another URI in the third form', /X-Original-URI/, { 'X-Original-URI': '/wiki/public/x' }],
  [
    'with an URI and no method',
    /^X-Original-URI names no method and no host: let nginx send X-Original-URL and X-Original-Method too/,
    { 'X-Forwarded-Method': undefined, 'X-Original-URI': '/wiki/page?a=1' },
  ],
  ['with an URL that is only a path', /X-Original-URL/, { 'X-Original-URL': '/wiki/page?a=1' }],
  ['with an unknown method', /X-Forwarded-Method/, { 'X-Forwarded-Method': 'get' }],
  ['with two methods', /X-Forwarded-Method/, { 'X-Forwarded-Method': 'GET, POST' }],
  ['with CONNECT', /CONNECT/, { 'X-Forwarded-Method': 'CONNECT' }],
  ['with two hosts', /X-Forwarded-Host/, { 'X-Forwarded-Host': 'a.example, b.example' }],
  ['with a host that has a path', /X-Forwarded-Host/, { 'X-Forwarded-Host': 'a.example/wiki' }],
  ['with a port beyond 65535', /X-Forwarded-Host/, { 'X-Forwarded-Host': 'a.example:99999' }],
  ['with a host of colons', /X-Forwarded-Host/, { 'X-Forwarded-Host': '[::::]' }],
  ['with a client whose port is no number', /X-Forwarded-For/, { 'X-Forwarded-For': '192.0.2.1:80x' }],
  ['with a client whose port is too large', /X-Forwarded-For/, { 'X-Forwarded-For': '[2001:db8::1]:99999' }],
  ['with another scheme', /X-Forwarded-Proto/, { 'X-Forwarded-Proto': 'gopher' }],
  ['with two schemes', /X-Forwarded-Proto/, { 'X-Forwarded-Proto': 'https, http' }],
  ['with a URL in place of a path', /X-Forwarded-Uri/, { 'X-Forwarded-Uri': 'http://127.0.0.1/wiki/public/x' }],
  ['with an empty path', /X-Forwarded-Uri/, { 'X-Forwarded-Uri': '' }],
  ['with an asterisk', /X-Forwarded-Uri/, { 'X-Forwarded-Method': 'OPTIONS', 'X-Forwarded-Uri': '*' }],
  ['with an unknown client', /X-Forwarded-For/, { 'X-Forwarded-For': 'unknown' }],
  ['with a forged client alone', /X-Forwarded-For/, { 'X-Forwarded-For': '192.0.2.1, ' }],
]

for (const [what, field, changes] of invalid)
  test(`A check request ${what} is refused, and the log names the field`, async () => {
    const world = shared
    const cookie = await world.signIn('jane')

    const { status } = await world.ask(world.described({ Cookie: cookie, ...changes }))

    assert.ok(status === 400 || status === 501, String(status))
    assert.match(String(reasonsIn(world).at(-1)), field)
  })

for (const name of [
  'X-Forwarded-Uri',
  'x-forwarded-method',
  'X-Forwarded-Host',
  'X-Forwarded-For',
  'X-Forwarded-Proto',
])
  test(`A check request that repeats ${name} is refused`, async () => {
    const world = shared
    const described = world.described()
    const [, value = ''] = described.find(([each]) => each.toLowerCase() === name.toLowerCase()) ?? []

    const { status } = await world.ask([[name, value], ...described])

    assert.equal(status, 400)
    assert.match(String(reasonsIn(world).at(-1)), new RegExp(`${name} occurs more than once`, 'i'))
  })

test('A check request of a client that is no trusted proxy is refused', async (t) => {
  const world = await startAskedWorld(t, { settings: 'trusted_proxies: [10.0.0.1]' })
  const cookie = await world.signIn('jane')

  const { status, headers } = await world.ask(world.described({ Cookie: cookie }))

  assert.deepEqual([status, headers['x-remote-user']], [400, undefined])
  assert.match(String(reasonsIn(world).at(-1)), /trusted_proxies/)
})

for (const [what, uri] of [
  ['leads from a public path to a protected one', '/wiki/public/../admin/users'],
  ['has an encoded slash between two rules', '/wiki/public%2f..%2fadmin/users'],
  ['has an encoded dot segment', '/wiki/public/%2e%2e/admin/users'],
  ['has a disguised dot segment', '/wiki/public/..;/admin/users'],
  ['has an empty segment before a public path', '//wiki/public/x'],
  ['has an empty segment before a dot segment', '/wiki/admin//../public/x'],
  ['has a dot segment after a name that may become empty', '/wiki/public/%2520/../x'],
  ['has a backslash', '/wiki/public/..\\admin'],
  ['leads to an upstream that the gateway carries', '/wiki/../echo'],
] as const)
  test(`A request that the application could read in another way is not allowed: it ${what}`, async () => {
    const world = shared

    const { status } = await world.ask(world.described({ 'X-Forwarded-Uri': uri }))

    assert.ok(status === 400 || status === 404, String(status))
  })

for (const [name, uri = '/wiki/page'] of [
  ['X_Remote_User'],
  ['x.remote.user'],
  ['X-Remote--User'],
  ['X_Groups', '/wiki/public/logo.png'],
  ['X-HTTP-Method-Override'],
  ['OIDC-CLAIM-email', '/wiki/public/logo.png'],
  ['OIDC_access_token'],
  // CGI, WSGI and PHP read them as X-Rewrite-URL, X-Original-URL, Client-Cert and Proxy.
  ['X_Rewrite_URL'],
  ['X_Original-URL', '/wiki/public/logo.png'],
  ['Client_Cert'],
  ['client.cert.chain'],
  ['Proxy_'],
] as const)
  test(`A check request with ${name}, which the proxy would pass on, is refused`, async () => {
    const world = shared
    const cookie = await world.signIn('jane')

    const { status } = await world.ask(world.described({ 'X-Forwarded-Uri': uri, Cookie: cookie, [name]: 'forged' }))

    assert.equal(status, 400)
  })

for (const [name, value] of [
  ['Proxy', 'http://evil.example'],
  ['X-Original-Host', 'evil.example'],
] as const)
  test(`The fields to remove include ${name} of a client`, async () => {
    const world = shared
    const cookie = await world.signIn('jane')

    const { status, headers } = await world.ask(world.described({ Cookie: cookie, [name]: value }))

    assert.equal(status, 200)
    assert.ok(removedBy(headers).includes(name.toLowerCase()), String(removedBy(headers)))
  })

test('A path in an unusual spelling that has one meaning is allowed', async () => {
  const world = shared
  const cookie = await world.signIn('jane')

  for (const uri of ['/wiki/%70age', '/wiki/caf%c3%a9', '/wiki/page%7e/'])
    assert.equal((await world.ask(world.described({ 'X-Forwarded-Uri': uri, Cookie: cookie }))).status, 200, uri)
})

for (const uri of ['/.gatehouse/sign-in', '/.gatehouse/jwks.json', '/.GATEHOUSE/x', '/wiki/..//.gatehouse/x'])
  test(`A check request about an endpoint of the gateway is refused: ${uri}`, async () => {
    const world = shared

    const { status } = await world.ask(world.described({ 'X-Forwarded-Uri': uri }))

    assert.ok(status === 404 || status === 400, String(status))
  })

test('A check request about an upstream whose requests the gateway carries is refused', async (t) => {
  const world = await startAskedWorld(t)
  const cookie = await world.signIn('jane')

  const { status, headers } = await world.ask(world.described({ 'X-Forwarded-Uri': '/echo', Cookie: cookie }))

  assert.deepEqual([status, headers['x-remote-user']], [404, undefined])
  assert.match(String(reasonsIn(world)), /forward_auth/)
})

test('A request for the wiki that reaches the gateway directly is refused, and the log says where it belongs', async (t) => {
  const world = await startAskedWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/.gatehouse/sign-in?return_to=%2Fecho`)

  const { status } = await jane.send(`${world.url}/wiki/page`)

  assert.equal(status, 404)
  assert.match(String(reasonsIn(world).at(-1)), /another proxy carries the requests of upstreams.wiki/)
})

test('nginx gets 401 with the redirect, 403, or 200, and fetches the response to a refused request', async (t) => {
  const world = await startAskedWorld(t)
  const cookie = await world.signIn('samir')
  const { host } = new URL(world.url)
  const of = (path: string, more: Fields = []): Fields => [
    ['X-Original-URL', `http://${host}${path}`],
    ['X-Original-Method', 'GET'],
    ['X-Forwarded-For', '192.0.2.7'],
    ['Accept', 'text/html'],
    ...more,
  ]
  const asks = async (endpoint: string, fields: Fields) => {
    const { status, headers } = await world.ask(fields, { endpoint: `forward-auth/${endpoint}` })
    return [status, headers.location, headers['x-remote-user']]
  }
  const signIn = `${world.url}/.gatehouse/sign-in?return_to=%2Fwiki%2Fpage`

  assert.deepEqual(await asks('auth-request', of('/wiki/page')), [401, signIn, undefined])
  assert.deepEqual(await asks('response', of('/wiki/page')), [303, signIn, undefined])
  assert.deepEqual(await asks('auth-request', of('/wiki/page', [['Cookie', cookie]])), [200, undefined, 'samir'])
  // The identity must not reach the client.
  const again = await asks('response', of('/wiki/page', [['Cookie', cookie]]))
  assert.deepEqual(again, [303, `${world.url}/wiki/page`, undefined])
  assert.deepEqual(await asks('auth-request', of('/wiki/admin/x', [['Cookie', cookie]])), [403, undefined, undefined])
  assert.deepEqual(await asks('auth-request', of('/echo', [['Cookie', cookie]])), [403, undefined, undefined])
  assert.deepEqual(await asks('auth-request', [['X-Original-Method', 'GET']]), [403, undefined, undefined])
  assert.match(String(reasonsIn(world).at(-1)), /^X-Original-URL is missing/)
})

test('Envoy asks with the method, the host and the path of the request', async (t) => {
  const world = await startAskedWorld(t)
  const cookie = await world.signIn('samir')
  const fields = (more: Fields = []): Fields => [
    ['X-Forwarded-Proto', 'http'],
    ['X-Forwarded-For', '192.0.2.7'],
    ['Cookie', cookie],
    ...more,
  ]
  const at = async (path: string, method = 'GET', more: Fields = []) => {
    const { status, headers } = await world.ask(fields(more), { endpoint: `forward-auth/ext-authz${path}`, method })
    return [status, headers['x-remote-user']]
  }

  assert.deepEqual(await at('/wiki/page?a=1'), [200, 'samir'])
  assert.deepEqual(await at('/wiki/write/x', 'POST'), [403, undefined])
  assert.deepEqual(await at('/wiki/write/x', 'PUT'), [200, 'samir'])
  assert.deepEqual(await at('/wiki/page', 'GET', [['X-Forwarded-Uri', '/wiki/public/x']]), [400, undefined])
  // Envoy names the fields that it removes one by one, so a disguised field harms nobody.
  for (const name of ['X_Remote_User', 'Client_Cert', 'X_Rewrite_URL']) {
    const { headers } = await world.ask(fields([[name, 'forged']]), { endpoint: 'forward-auth/ext-authz/wiki/page' })
    assert.ok(removedBy(headers).includes(name.toLowerCase()), name)
  }
  const removed = await world.ask(fields([['OIDC-CLAIM-email', 'forged']]), {
    endpoint: 'forward-auth/ext-authz/wiki/page',
  })
  assert.equal(removed.status, 200)
  assert.ok(removedBy(removed.headers).includes('oidc-claim-email'))
})

for (const path of ['/../../static', '/../jwks.json', '/../../../echo', '/%2e%2e/%2e%2e/open/x', '/..%2f..%2fopen/x'])
  test(`The path of a client does not lead out of the endpoint that Envoy asks: ${path}`, async () => {
    const world = shared
    const fields: Fields = [
      ['X-Forwarded-Proto', 'http'],
      ['X-Forwarded-For', '192.0.2.7'],
    ]

    const { status } = await world.ask(fields, { endpoint: `forward-auth/ext-authz${path}` })

    assert.ok(status === 400 || status === 404, String(status))
  })

for (const endpoint of ['x/../forward-auth', '%66orward-auth', 'forward-auth/', 'Forward-Auth', '/forward-auth'])
  test(`A check request with another spelling of the endpoint is refused: ${endpoint}`, async () => {
    const world = shared
    const cookie = await world.signIn('jane')

    const { status, headers } = await world.ask(world.described({ Cookie: cookie }), { endpoint })

    assert.deepEqual([status, headers['x-remote-user']], [404, undefined])
  })

test('Caddy gets an empty field in place of each absent one', async (t) => {
  const world = await startAskedWorld(t)
  const cookie = await world.signIn('noa')

  const { headers } = await world.ask(world.described({ Cookie: cookie }), { endpoint: 'forward-auth?absent=empty' })

  assert.deepEqual([headers['x-remote-user'], headers['x-nickname'], headers['cookie']], ['noa', '', ''])
})

test('Without an upstream with forward_auth, the endpoint does not exist', async (t) => {
  const { url } = await startWorld(t, { settings: 'trusted_proxies: [127.0.0.1]' })

  assert.equal((await fetch(`${url}/.gatehouse/forward-auth`)).status, 404)
})
