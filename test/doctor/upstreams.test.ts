import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { createServer as createSecureServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test, type TestContext } from 'node:test'
import { upstreamFindings } from '../../packages/doctor/upstreams.ts'
import { issueCertificates } from '../support/certificates.ts'
import { startDnsServer } from '../support/dns-server.ts'
import { freePort } from '../support/free-port.ts'
import { assertUseful, configOf, finding } from './support.ts'

/** An application that listens on this address, on a port that is its own. */
async function startApplication(t: TestContext, host: string, response: RequestListener): Promise<number> {
  const server = createServer(response)
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

async function listening(t: TestContext, server: Server): Promise<number> {
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => open.add(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of open) socket.destroy()
  })
  return (server.address() as AddressInfo).port
}

async function findingsAbout(t: TestContext, upstream: string, outside: readonly string[] = [], externalUrl?: string) {
  const config = configOf(t, { upstream, ...(externalUrl !== undefined && { externalUrl }) })
  const findings = await upstreamFindings(config.upstreams[0] ?? assert.fail(), [...outside])
  assertUseful(findings)
  return findings
}

test('An upstream on loopback is fine with any status below 500', async (t) => {
  let asked: string | undefined
  const port = await startApplication(t, '127.0.0.1', (req, res) => {
    asked ??= `${req.method} ${req.url} ${req.headers.host}`
    res.writeHead(403).end()
  })

  const findings = await findingsAbout(t, `url: http://127.0.0.1:${port}`, ['127.0.0.2'])

  assert.deepEqual(
    findings.map(({ id, level }) => `${id} ${level}`),
    ['upstream.reachable ok', 'upstream.around ok'],
  )
  assert.equal(asked, 'HEAD / orders.example.com')
})

test('An upstream that others reach without the gateway is a fault; for trial use it is a warning', async (t) => {
  const port = await startApplication(t, '0.0.0.0', (_req, res) => res.end())

  const upstream = `url: http://127.0.0.1:${port}`
  const staked = finding(await findingsAbout(t, upstream, ['127.0.0.2']), 'upstream.around')
  const trial = finding(await findingsAbout(t, upstream, ['127.0.0.2'], 'http://127.0.0.1:8080'), 'upstream.around')

  assert.equal(staked.level, 'fault')
  assert.equal(staked.what, `port ${port} accepts connections on 127.0.0.2, without the gateway`)
  assert.match(staked.why ?? '', /a firewall may protect the port: doctor cannot see that/)
  assert.equal(trial.level, 'warning')
})

test('An upstream at an external address of this machine is a fault', async (t) => {
  const port = await startApplication(t, '127.0.0.2', (_req, res) => res.end())

  const findings = await findingsAbout(t, `url: http://127.0.0.2:${port}`, ['127.0.0.2', '127.0.0.3'])

  const { level, what } = finding(findings, 'upstream.around')
  assert.equal(level, 'fault')
  assert.match(what, /accepts connections on 127\.0\.0\.2, without the gateway/)
})

test('For an upstream on another machine, doctor says how to check who reaches it', async (t) => {
  for (const [host, what] of [
    ['10.255.255.1', /doctor cannot see who else reaches it/],
    ['8.8.8.8', /has an address of the internet/],
  ] as const) {
    const { level, what: found, todo } = finding(await findingsAbout(t, `url: http://${host}:3000`), 'upstream.around')

    assert.equal(level, 'warning')
    assert.match(found, what)
    assert.match(todo ?? '', new RegExp(`curl http://${host}:3000/ fails`))
  }
})

test('An unreachable upstream is a fault, with advice', async (t) => {
  const { level, what, todo } = finding(
    await findingsAbout(t, `url: http://127.0.0.1:${await freePort()}`),
    'upstream.reachable',
  )

  assert.equal(level, 'fault')
  assert.match(what, /ECONNREFUSED/)
  assert.match(todo ?? '', /no program listens there/)
})

test('While another target responds, an unreachable target is no 502', async (t) => {
  const ports = [await freePort(), await startApplication(t, '127.0.0.1', (_req, res) => res.end())]

  const findings = await findingsAbout(t, `targets: [${ports.map((port) => `'http://127.0.0.1:${port}'`).join()}]`)

  const reached = findings.filter(({ id }) => id === 'upstream.reachable')
  assert.deepEqual(
    reached.map(({ level, why }) => [level, why]),
    [
      ['fault', 'only the other targets get requests; without one, 502'],
      ['ok', undefined],
    ],
  )
})

for (const status of [501, 405])
  test(`An upstream that responds to HEAD with ${status} is checked with GET`, async (t) => {
    const asked: unknown[] = []
    const port = await startApplication(t, '127.0.0.1', (req, res) => {
      // Doctor also reads the first page.
      if (req.headers.accept === undefined) asked.push(req.method)
      res.writeHead(req.method === 'GET' ? 200 : status).end()
    })

    const { level, what } = finding(await findingsAbout(t, `url: http://127.0.0.1:${port}`), 'upstream.reachable')

    assert.equal(level, 'ok')
    assert.match(what, /responds to GET \/ with 200/)
    assert.deepEqual(asked, ['HEAD', 'GET'])
  })

test('An upstream with a server error is a warning that names the host of the request', async (t) => {
  const port = await startApplication(t, '127.0.0.1', (_req, res) => void res.writeHead(502).end())

  const { level, todo } = finding(
    await findingsAbout(t, `url: http://127.0.0.1:${port}\n    host_header: upstream`),
    'upstream.reachable',
  )

  assert.equal(level, 'warning')
  assert.ok(todo?.includes(`127.0.0.1:${port}`), todo)
})

test('An untrusted authority and a server without TLS are told apart', async (t) => {
  const { ca, cert, key } = issueCertificates().server
  const server = createSecureServer({ cert: readFileSync(cert), key: readFileSync(key) }, (_req, res) => res.end())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  const plain = await startApplication(t, '127.0.0.1', (_req, res) => res.end())
  const reached = async (upstream: string) => finding(await findingsAbout(t, upstream), 'upstream.reachable')

  const trusted = await reached(`url: https://localhost:${port}\n    ca_file: ${ca}`)
  const unknown = await reached(`url: https://localhost:${port}`)
  const wrongName = await reached(`url: https://127.0.0.3:${port}\n    ca_file: ${ca}`)
  const noTls = await reached(`url: https://127.0.0.1:${plain}`)

  assert.equal(trusted.level, 'ok', trusted.what)
  assert.match(unknown.todo ?? '', /set its ca_file to the authority that signed its certificate/)
  assert.equal(wrongName.level, 'fault')
  assert.match(noTls.todo ?? '', /does not speak TLS, which https:\/\/ needs: .*or write http:\/\/ in the url/)
})

test('An application at another path is examined where it is', async (t) => {
  const requested: (string | undefined)[] = []
  const port = await startApplication(t, '127.0.0.1', (req, res) => {
    requested.push(`${req.method} ${req.url}`)
    res.end(`<a href="http://127.0.0.1:${port}/app/a">`)
  })

  const found = await findingsAbout(t, `url: http://127.0.0.1:${port}/app\n    path: /wiki\n    strip_path: true`)

  assert.deepEqual(requested.toSorted(), ['GET /app/', 'GET /app/', 'HEAD /app/'])
  assert.match(finding(found, 'upstream.reachable').what, /responds to HEAD \/app\/ with 200/)
  const { what, todo } = finding(found, 'upstream.addresses')
  assert.match(what, /once into \/app\/, not https:\/\/orders\.example\.com\/wiki$/)
  assert.match(todo ?? '', /^set the base URL of the application to https:\/\/orders\.example\.com\/wiki, /)
})

test('An application that writes its own address is told to use the public one', async (t) => {
  let page = ''
  const port = await startApplication(t, '127.0.0.1', (_req, res) => res.end(page))
  const own = `http://127.0.0.1:${port}`
  const find = async (settings = '') =>
    (await findingsAbout(t, `url: ${own}${settings}`)).find(({ id }) => id === 'upstream.addresses')

  assert.equal(await find(), undefined)
  page = `<a href="${own}/a"><img src="//127.0.0.1:${port}/b"><a href="${own}0/other">`.padEnd(600_000)
  const found = await find()

  assert.equal(found?.level, 'warning')
  assert.match(found.what, /its own address 2 times/)
  assert.match(found.todo ?? '', /base URL .* or set upstreams\.\w+\.rewrite_content/)
  assert.equal(await find('\n    rewrite_content: true'), undefined)
})

test('An application that forbids the frames of the configuration is found', async (t) => {
  const port = await startApplication(t, '127.0.0.1', (_req, res) => {
    res.writeHead(200, { 'content-security-policy': "default-src 'self'; frame-ancestors 'none'" }).end()
  })
  const find = async (settings = '') =>
    (await findingsAbout(t, `url: http://127.0.0.1:${port}\n    ${settings}`)).find(
      ({ id }) => id === 'upstream.frames',
    )

  assert.equal(await find(), undefined)
  const found = await find('response_headers: { frame_ancestors: [https://portal.example.net] }')
  assert.equal(found?.level, 'warning')
  assert.match(found.what, /sends "frame-ancestors 'none'" itself, so "frame-ancestors https:\/\/portal\.example\.net"/)
  assert.equal(
    await find(
      'response_headers: { frame_ancestors: [https://portal.example.net], remove: [Content-Security-Policy] }',
    ),
    undefined,
  )
})

for (const [why, response, isLoop] of [
  ['to its own public address', () => ({ location: 'https://orders.example.com/' }), true],
  ['to its own path', () => ({ location: '/' }), true],
  ['to its page', () => ({ location: '/home' }), false],
  ['once, with a cookie', () => ({ location: '/', 'set-cookie': 'a=b' }), false],
  [
    'requests over http only',
    (proto: unknown) => ({ location: proto === 'https' ? '/home' : 'https://orders.example.com/' }),
    false,
  ],
] as const)
  test(`An application that redirects ${why} ${isLoop ? 'is' : 'is not'} found`, async (t) => {
    const port = await startApplication(t, '127.0.0.1', (req, res) => {
      res.writeHead(302, response(req.headers['x-forwarded-proto'])).end()
    })

    const found = (await findingsAbout(t, `url: http://127.0.0.1:${port}`)).find(({ id }) => id === 'upstream.loop')

    assert.equal(found?.level, isLoop ? 'warning' : undefined)
    if (isLoop) assert.match(found?.what ?? '', /redirects https:\/\/orders\.example\.com\/ to the same address/)
  })

for (const status of [400, 403, 404, 421, 503])
  test(`An application that refuses the public host with ${status} is not called fine: the advice names host_header`, async (t) => {
    const port = await startApplication(t, '127.0.0.1', (req, res) => {
      res.writeHead(req.headers.host === `127.0.0.1:${port}` ? 200 : status).end()
    })
    const upstream = `url: http://127.0.0.1:${port}`

    const refused = finding(await findingsAbout(t, upstream), 'upstream.reachable')
    const followed = finding(await findingsAbout(t, `${upstream}\n    host_header: upstream`), 'upstream.reachable')

    assert.equal(refused.level, 'warning')
    assert.match(refused.why ?? '', /refuses the host orders\.example\.com: for the host 127\.0\.0\.1:\d+, .* with 200/)
    assert.match(refused.todo ?? '', /set host_header: upstream and origin_header: upstream in upstreams\.orders$/)
    assert.equal(followed.level, 'ok')
  })

test('An application that knows only its public host is told apart from one that is down', async (t) => {
  const port = await startApplication(t, '127.0.0.1', (req, res) => {
    res.writeHead(req.headers.host === 'orders.example.com' ? 200 : 403).end()
  })

  const found = finding(
    await findingsAbout(t, `url: http://127.0.0.1:${port}\n    host_header: upstream`),
    'upstream.reachable',
  )

  assert.match(found.todo ?? '', /^remove host_header from upstreams\.orders/)
})

test('Each target is asked, and a finding names the one that does not respond', async (t) => {
  const [port, closed] = [await startApplication(t, '127.0.0.1', (_req, res) => res.end()), await freePort()]

  const findings = await findingsAbout(t, `targets: [http://127.0.0.1:${port}, http://127.0.0.1:${closed}]`)

  const reachable = findings.filter(({ id }) => id === 'upstream.reachable')
  assert.deepEqual(
    reachable.map(({ level }) => level),
    ['ok', 'fault'],
  )
  assert.ok(reachable[1]?.what.includes(`127.0.0.1:${closed}`))
})

test('A name that DNS does not know is a fault', async (t) => {
  const dns = await startDnsServer(t, {})
  const resolve = `{ a: app.internal, servers: ['${dns.address}'] }`

  const found = finding(await findingsAbout(t, `targets: { resolve: ${resolve} }`), 'upstream.resolved')

  assert.equal(found.level, 'fault')
  assert.match(found.what, /app\.internal has no address/)
})

test('A socket in the file system is asked too', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const server = createServer((_req, res) => res.end()).listen(join(folder, 'app.sock'))
  await once(server, 'listening')
  t.after(() => server.close())

  const findings = await findingsAbout(t, `url: unix:${join(folder, 'app.sock')}`)

  assert.deepEqual(
    findings.map(({ id, level }) => `${id} ${level}`),
    ['upstream.reachable ok'],
  )
})

for (const [what, start, level, says] of [
  [
    'HTTP/1.1 only',
    () => createServer((_req, res) => res.end()),
    'fault',
    /does not speak HTTP\/2, but .*protocol is h2c/,
  ],
  ['HTTP/2', () => createHttp2Server((_req, res) => res.end()), 'ok', /speaks HTTP\/2: it responds to GET \//],
  ['HTTP/2 and refuses', () => createHttp2Server((_req, res) => res.writeHead(415).end()), 'ok', /with status 415/],
  [
    'another protocol',
    () => createTcpServer((socket) => socket.end('-ERR\r\n')),
    'fault',
    /a request over HTTP\/2 to .* fails/,
  ],
] as const)
  test(`The finding about protocol: h2c before an application that speaks ${what}`, async (t) => {
    const port = await listening(t, start())

    const found = finding(
      await findingsAbout(t, `url: http://127.0.0.1:${port}\n    protocol: h2c`),
      'upstream.reachable',
    )

    assert.equal(found.level, level)
    assert.match(found.what, says)
  })

test('A port where nothing listens is a fault also with protocol: h2c', async (t) => {
  const upstream = `url: http://127.0.0.1:${await freePort()}\n    protocol: h2c`

  const found = finding(await findingsAbout(t, upstream), 'upstream.reachable')

  assert.equal(found.level, 'fault')
  assert.match(found.todo ?? '', /no program listens there/)
})

test('A health check that no target passes is a fault of the check', async (t) => {
  const port = await startApplication(t, '127.0.0.1', (req, res) =>
    res.writeHead(req.url === '/health' ? 404 : 200).end(),
  )
  const upstream = (path: string) => `targets: [http://127.0.0.1:${port}]\n    health_check: { path: ${path} }`

  const wrong = finding(await findingsAbout(t, upstream('/health')), 'upstream.health_check')
  const right = finding(await findingsAbout(t, upstream('/up')), 'upstream.health_check')

  assert.deepEqual([wrong.level, right.level], ['fault', 'ok'])
  assert.match(wrong.what, /GET \/health of .* fails: status 404/)
  assert.match(wrong.why ?? '', /all targets are unhealthy/)
})

test('A server that does not speak HTTP is described without the words of a parser', async (t) => {
  const port = await listening(
    t,
    createTcpServer((socket) => socket.on('data', () => socket.end('-ERR unknown command\r\n'))),
  )

  const found = finding(await findingsAbout(t, `url: http://127.0.0.1:${port}`), 'upstream.reachable')

  assert.match(found.what, /what it sends is not HTTP/)
  assert.doesNotMatch(found.what, /RTSP|ICE/)
  assert.match(found.todo ?? '', /another program listens there/)
})

/** The finding about an MCP server that responds to the request of doctor, and that request. */
async function mcpFindingOf(t: TestContext, status: number, content: string, rules: string, settings = '') {
  const sent: Record<string, unknown>[] = []
  const port = await startApplication(t, '127.0.0.1', (req, res) => {
    if (req.method !== 'POST') return void res.end()
    void text(req).then((received) => {
      const { params } = JSON.parse(received) as { params: { name: string } }
      sent.push({ path: req.url, name: req.headers['mcp-name'], called: params.name })
      res.writeHead(status, { 'content-type': 'application/json' }).end(content)
    })
  })
  const findings = await findingsAbout(t, `url: http://127.0.0.1:${port}\n    ${settings}\n    rules: ${rules}`)
  return { found: findings.find(({ id }) => id === 'upstream.mcp'), sent }
}

const byTool = "[{ path: /mcp, mcp: { call: ['delete_*'] } }]"

test('An MCP server that calls another tool than the fields say is a warning', async (t) => {
  const unknown = '{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool"}}'

  const { found, sent } = await mcpFindingOf(t, 200, unknown, byTool)

  assert.equal(found?.level, 'warning')
  assert.match(found.what, /at \/mcp does not reject a call of another tool than Mcp-Name says: it responds with 200$/)
  assert.match(found.todo ?? '', /remove mcp from the rules of upstreams\.orders/)
  assert.deepEqual(sent, [{ path: '/mcp', name: 'gatehouse-doctor-field', called: 'gatehouse-doctor-content' }])
})

test('An MCP server that rejects such a call is fine', async (t) => {
  const mismatch = '{"jsonrpc":"2.0","id":1,"error":{"code": -32020,"message":"Header mismatch"}}'

  assert.equal((await mcpFindingOf(t, 400, mismatch, byTool)).found?.level, 'ok')
})

test('Nothing is said about an MCP server that refuses the request for another reason, or without rules about tools', async (t) => {
  const older = '{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"Unsupported protocol version"}}'

  assert.equal((await mcpFindingOf(t, 400, older, byTool)).found, undefined)
  assert.equal((await mcpFindingOf(t, 401, '', byTool)).found, undefined)
  assert.deepEqual(await mcpFindingOf(t, 200, '{}', '[{ path: /mcp }]'), { found: undefined, sent: [] })
})

test('The request about an MCP server goes to the path where the gateway sends requests', async (t) => {
  const below = "[{ path: /tools/*, mcp: { call: ['delete_*'] } }]"
  const pathOf = async (rules: string, settings: string) =>
    (await mcpFindingOf(t, 200, '{}', rules, settings)).sent.map(({ path }) => path)

  assert.deepEqual(await pathOf(below, 'path: /tools'), ['/tools'])
  assert.deepEqual(await pathOf(below, 'path: /tools\n    strip_path: true'), ['/'])
  assert.deepEqual(await pathOf(byTool.replace('/mcp', '/tools/mcp'), 'path: /tools\n    strip_path: true'), ['/mcp'])
})

/**
 * The finding about an application with this page at `/wiki/login`, below the path of the upstream.
 */
async function signInFindingOf(t: TestContext, settings: string, respond: RequestListener, place = '/login') {
  const asked: (string | undefined)[] = []
  const port = await startApplication(t, '127.0.0.1', (req, res) => {
    if (req.url !== place) return void res.end()
    asked.push(`${req.method} ${req.headers.host} ${req.headers['x-forwarded-proto']}`)
    respond(req, res)
  })
  const findings = await findingsAbout(
    t,
    `url: http://127.0.0.1:${port}\n    path: /wiki/\n    strip_path: true\n    session_cookies: [SID]\n    application_sign_in: { ${settings} }`,
  )
  return { found: findings.find(({ id }) => id === 'upstream.application_sign_in'), asked }
}

const signInFields = 'page: /wiki/login, fields: { user: "{username}", pass: "{password}" }'
const page = (content: string, status = 200): RequestListener => {
  return (_req, res) => void res.writeHead(status, { 'content-type': 'text/html' }).end(content)
}
const inputs = '<input name=user><input name=pass>'

for (const [what, respond, level, text] of [
  ['has the form', page(`<form method=post>${inputs}</form>`), 'ok', /\/wiki\/login has the form with user and pass/],
  ['has it elsewhere', page(`<form method=post action=/a>${inputs}</form>`), 'warning', /not sent to \/wiki\/login/],
  [
    'sends it to another origin',
    page(`<form method=post action=https://id.example.com/wiki/login>${inputs}</form>`),
    'warning',
    /sent to another origin/,
  ],
  [
    'sends it to the public address',
    page(`<form method=post action=http://orders.example.com/wiki/login>${inputs}</form>`),
    'ok',
    /has the form/,
  ],
  [
    'has another form',
    page('<form method=post><input name=user></form>'),
    'warning',
    /no form with user and pass: .* 200/,
  ],
  ['is not there', page('', 404), 'warning', /no form with user and pass: it responds with 404 to GET \/wiki\/login/],
  [
    'has a form that is not understood',
    page(`<form method=post>${inputs}<input type=file name=x></form>`),
    'warning',
    /not understood, because the form has a file/,
  ],
] as const)
  test(`The page with the form of an application ${what}`, async (t) => {
    const { found, asked } = await signInFindingOf(t, signInFields, respond)

    assert.equal(found?.level, level)
    assert.match(found.what, text)
    assert.deepEqual(asked, ['GET orders.example.com https'])
  })

test('An application that is to ask for Basic is tried too, and nothing is said about one that gets JSON', async (t) => {
  const asks: RequestListener = (_req, res) => void res.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end()

  assert.equal((await signInFindingOf(t, 'basic: true', asks, '/')).found?.level, 'ok')
  assert.equal((await signInFindingOf(t, 'basic: true', page('hello'), '/')).found?.level, 'warning')
  const json = 'action: /wiki/login, json: { user: "{username}", pass: "{password}" }, token: t'
  assert.deepEqual(await signInFindingOf(t, json, page('')), { found: undefined, asked: [] })
})
