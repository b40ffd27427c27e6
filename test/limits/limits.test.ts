import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request as send, type IncomingMessage } from 'node:http'
import { connect as connectTcp, type AddressInfo, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { RawClient } from '../proxy/support.ts'
import { issueCertificates } from '../support/certificates.ts'
import { until } from '../support/until.ts'
import { startWorld, type World } from '../support/world.ts'

interface ReceivedResponse {
  readonly status: number
  readonly retryAfter: string | undefined
  readonly body: string
}

interface RequestOptions {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Any address of 127.0.0.0/8. */
  readonly from?: string
}

/** Sends one request on a new connection. */
async function request(url: string, { method = 'GET', headers = {}, body, from = '127.0.0.1' }: RequestOptions = {}) {
  const sent = send(url, { method, headers, agent: false, localAddress: from })
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of response) text += String(chunk)
  return {
    status: response.statusCode ?? 0,
    retryAfter: response.headers['retry-after'],
    body: text,
  } satisfies ReceivedResponse
}

const page = { accept: 'text/html' }
const form = { 'content-type': 'application/x-www-form-urlencoded' }

function rejectedClients(world: World) {
  const lines = world.replicas.flatMap(({ log }) => log)
  return lines.filter(({ message }) => message === 'limit.reached').map(({ fields }) => fields)
}

function logoutToken(logout_token: string, question: RequestOptions = {}): RequestOptions {
  return {
    method: 'POST',
    headers: { ...form, ...question.headers },
    body: `logout_token=${logout_token}`,
    ...question,
  }
}

test('A client that begins too many sign-ins gets 429, other clients do not', async (t) => {
  const world = await startWorld(t, { settings: 'limits: { per_client: { sign_ins: 3/m } }' })
  const signIn = (from?: string) =>
    request(`${world.url}/.gatehouse/sign-in`, { headers: page, ...(from === undefined ? {} : { from }) })

  for (let times = 0; times < 3; times += 1) assert.equal((await signIn()).status, 303)
  const rejected = await signIn()

  assert.deepEqual([rejected.status, rejected.retryAfter], [429, '20'])
  assert.match(rejected.body, /Too many requests came from your network/)
  assert.equal((await signIn('127.0.0.2')).status, 303)
  world.moveClock(20_000)
  assert.equal((await signIn()).status, 303)
  const [line] = rejectedClients(world)
  assert.deepEqual(
    [line?.['limit'], line?.['client'], line?.['turned_away']],
    ['limits.per_client.sign_ins', '127.0.0.1', 1],
  )
})

test('A flood of rejected requests does not flood the log', async (t) => {
  const world = await startWorld(t, { settings: 'limits: { per_client: { sign_ins: 1/h } }' })

  for (let times = 0; times < 50; times += 1) await request(`${world.url}/.gatehouse/sign-in`)
  assert.equal(rejectedClients(world).length, 1)
  world.moveClock(10_000)
  await request(`${world.url}/.gatehouse/sign-in`)

  assert.deepEqual(
    rejectedClients(world).map(({ turned_away }) => turned_away),
    [1, 49],
  )
  assert.ok(world.replicas[0]?.log.every(({ message }) => message !== 'request.refused'))
})

test('Clients behind a trusted proxy are counted separately, an IPv6 network as one; X-Forwarded-For of other peers is ignored', async (t) => {
  const settings = 'trusted_proxies: [127.0.0.1]\nlimits: { per_client: { sign_ins: 1/h } }'
  const world = await startWorld(t, { settings })
  const signIn = async (forwardedFor: string, from = '127.0.0.1') =>
    (await request(`${world.url}/.gatehouse/sign-in`, { headers: { 'x-forwarded-for': forwardedFor }, from })).status

  assert.deepEqual([await signIn('192.0.2.1'), await signIn('192.0.2.2'), await signIn('192.0.2.1')], [303, 303, 429])
  assert.deepEqual([await signIn('2001:db8::1'), await signIn('2001:db8::ffff:2')], [303, 429])
  assert.equal(await signIn('2001:db8:0:1::1'), 303)
  assert.deepEqual([await signIn('192.0.2.7', '127.0.0.9'), await signIn('192.0.2.8', '127.0.0.9')], [303, 429])
})

test('Callbacks are counted before the gateway sends a token request', async (t) => {
  const world = await startWorld(t, { settings: 'limits: { per_client: { callbacks: 2/m } }' })
  const jane = world.browser()
  const callback = await jane.until(`${world.url}/echo`, '/.gatehouse/callback')
  for (let times = 0; times < 2; times += 1) await request(`${world.url}/.gatehouse/callback?state=made-up`)

  const rejected = await jane.send(callback)

  assert.equal(rejected.status, 429)
  assert.equal(rejected.headers['retry-after'], '30')
  assert.equal(world.provider.hits('/oauth/token'), 0)
  world.moveClock(30_000)
  assert.equal((await jane.get(callback)).status, 200, 'the attempt was not used up')
})

test('While the provider is slow, the number of waiting callbacks of a client is limited', async (t) => {
  const world = await startWorld(t, { settings: 'limits: { per_client: { callbacks_at_once: 2 } }' })
  const callbacks: string[] = []
  const tabs = [world.browser(), world.browser('samir'), world.browser('zoe')]
  for (const tab of tabs) callbacks.push(await tab.until(`${world.url}/echo`, '/.gatehouse/callback'))
  const held: (() => void)[] = []
  world.provider.fault('/oauth/token', (_req, _res, pass) => void held.push(pass))

  const waiting = tabs.slice(0, 2).map((tab, at) => tab.send(callbacks[at] ?? ''))
  await until('both wait', () => held.length === 2)
  const rejected = await tabs[2]?.send(callbacks[2] ?? '')
  for (const pass of held) pass()

  assert.equal(rejected?.status, 429)
  assert.deepEqual(
    (await Promise.all(waiting)).map(({ status }) => status),
    [303, 303],
  )
  const third = tabs[2]?.send(callbacks[2] ?? '')
  await until('the third waits', () => held.length === 3)
  held[2]?.()
  assert.equal((await third)?.status, 303)
})

test('Clients that send invalid Logout Tokens get 429, the provider never does', async (t) => {
  const world = await startWorld(t, { settings: 'limits: { per_client: { refused_logout_tokens: 5/m } }' })
  const receiver = `${world.url}/.gatehouse/backchannel-logout`
  const [jane, zoe, samir] = [world.browser(), world.browser('zoe'), world.browser('samir')]
  for (const person of [jane, zoe, samir]) await person.get(`${world.url}/echo`)
  const [sidOfJane, sidOfZoe, sidOfSamir] = world.provider.sessions().map(({ sid }) => sid ?? '')
  const otherClient = '127.0.0.66'

  for (let times = 0; times < 5; times += 1)
    assert.equal((await request(receiver, logoutToken('garbage', { from: otherClient }))).status, 400)
  const rejected = await request(receiver, logoutToken('garbage', { from: otherClient }))
  assert.deepEqual([rejected.status, rejected.retryAfter], [429, '12'])

  // The provider shares the address of the other client and has not sent a valid token yet.
  const ofSamir = await world.provider.logoutToken({ sid: sidOfSamir ?? '', sub: 'samir' })
  assert.equal((await request(receiver, logoutToken(ofSamir, { from: otherClient }))).status, 200)
  assert.equal((await samir.fetch(`${world.url}/echo`)).status, 401)

  const ofJane = await world.provider.logoutToken({ sid: sidOfJane ?? '', sub: 'jane' })
  assert.equal((await request(receiver, logoutToken(ofJane))).status, 200)
  assert.equal((await jane.fetch(`${world.url}/echo`)).status, 401)

  // Another client has the address of the provider, as behind an untrusted proxy.
  for (let times = 0; times < 20; times += 1) await request(receiver, logoutToken('garbage'))
  const ofZoe = await world.provider.logoutToken({ sid: sidOfZoe ?? '', sub: 'zoe' })
  assert.equal((await request(receiver, logoutToken(ofZoe))).status, 200)
  assert.equal((await zoe.fetch(`${world.url}/echo`)).status, 401)
})

test('Logout Tokens that cannot be checked at the moment do not count against the provider', async (t) => {
  const world = await startWorld(t, {
    settings: 'limits: { per_client: { refused_logout_tokens: 2/h } }',
    providerStartsDown: true,
  })
  const receiver = `${world.url}/.gatehouse/backchannel-logout`

  for (let times = 0; times < 5; times += 1)
    assert.equal((await request(receiver, logoutToken('eyJhbGciOiJSUzI1NiJ9.e30.AAAA'))).status, 503)
})

test('A flood of tokens with unknown keys causes only a few requests to the provider', async (t) => {
  const world = await startWorld(t)
  const { sid = '' } = (await world.browser().get(`${world.url}/echo`), world.provider.sessions()[0]) ?? {}
  const good = await world.provider.logoutToken({ sid, sub: 'jane' })
  const [, payload, signature] = good.split('.')
  const before = world.provider.hits('/oauth/jwks')

  const statuses = await Promise.all(
    Array.from({ length: 200 }, (_, number) => {
      const head = Buffer.from(JSON.stringify({ alg: 'RS256', typ: 'logout+jwt', kid: `made-up-${number}` }))
      return request(
        `${world.url}/.gatehouse/backchannel-logout`,
        logoutToken(`${head.toString('base64url')}.${payload}.${signature}`),
      ).then(({ status }) => status)
    }),
  )

  assert.deepEqual([...new Set(statuses)], [400])
  assert.ok(
    world.provider.hits('/oauth/jwks') - before <= 5,
    `${world.provider.hits('/oauth/jwks') - before} questions`,
  )
  assert.equal((await request(`${world.url}/.gatehouse/backchannel-logout`, logoutToken(good))).status, 200)
})

test('More header fields than limits.header_count get 431, and no field is dropped silently', async (t) => {
  const world = await startWorld(t, {
    settings: 'limits: { header_count: 50 }',
    upstreamSettings: 'rules: [{ path: /*, access: public }]',
  })
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, number) => [`h${number}`, '1']))
  const linesAt = async (count: number) => request(`${world.url}/echo`, { headers: many(count) })

  const fits = await linesAt(40)
  assert.equal(fits.status, 200)
  assert.match(fits.body, /"h39"/)
  assert.equal((await linesAt(60)).status, 431)
  // Node.js drops all fields after the 2000th. Host or Content-Length may be among them.
  const raw = `GET /echo HTTP/1.1\r\nHost: 127.0.0.1\r\n${'a:\r\n'.repeat(2100)}Host: elsewhere.example\r\n\r\n`
  const response = await new RawClient(t, Number(new URL(world.url).port)).send(raw).until(/\r\n\r\n/)
  assert.match(response, /^HTTP\/1\.1 431 /)
})

test('A request body that arrives too slowly is aborted and frees its upstream connection', async (t) => {
  let closed = 0
  const upstream = createServer((req) => void req.resume().on('close', () => (closed += 1)))
  const world = await startWorld(t, {
    settings: 'limits: { body_idle_timeout: 1s, body_rate: 100b }',
    upstream: await listening(t, upstream),
    upstreamSettings: 'rules: [{ path: /*, access: public }]\n    max_connections: 1',
  })
  const client = new RawClient(t, Number(new URL(world.url).port))
  client.send('POST /upload HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n')
  const trickle = setInterval(() => client.send('x'), 50)
  t.after(() => clearInterval(trickle))

  assert.match(await client.until(/\r\n\r\n/), /^HTTP\/1\.1 408 /)
  await until('the application is free', () => closed === 1)
})

test('A slow request body is accepted as long as it makes progress', async (t) => {
  const world = await startWorld(t, { settings: 'limits: { body_idle_timeout: 3s, body_rate: 100b }' })
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const sent = send(`${world.url}/echo`, {
    method: 'POST',
    headers: { cookie: jane.cookieHeader, 'content-length': '6000' },
  })
  const responded = once(sent, 'response') as Promise<[IncomingMessage]>

  for (let part = 0; part < 60; part += 1) {
    sent.write('x'.repeat(100))
    await new Promise((resolve) => setTimeout(resolve, 60))
  }
  sent.end()

  assert.equal((await responded)[0].statusCode, 200)
})

test('A slow application does not delay others, and waiting requests get 503 or 504', async (t) => {
  const slow = await listening(
    t,
    createServer(() => {}),
  )
  const world = await startWorld(t, {
    upstreamSettings: `rules: [{ path: /*, access: public }]
  slow:
    url: ${slow.origin}
    path: /slow/
    max_connections: 2
    response_timeout: 500ms
    rules: [{ path: /*, access: public }]`,
  })

  const waiting = Array.from({ length: 20 }, () => request(`${world.url}/slow/page`))
  const quick = await Promise.all(Array.from({ length: 20 }, () => request(`${world.url}/static/about.txt`)))

  assert.deepEqual([...new Set(quick.map(({ status }) => status))], [200])
  // 504: the application did not respond in time. 503: the request waited too long for a
  // connection.
  assert.deepEqual([...new Set((await Promise.all(waiting)).map(({ status }) => status))].sort(), [503, 504])
})

test('The number of connections of a client is limited; other clients and trusted proxies are not affected', async (t) => {
  const settings = 'trusted_proxies: [127.0.0.7]\nlimits: { per_client: { connections: 5 } }'
  const world = await startWorld(t, { settings })
  const port = Number(new URL(world.url).port)

  const otherClient = await Promise.all(Array.from({ length: 8 }, () => fate(t, port, '127.0.0.66')))
  assert.equal(otherClient.filter((outcome) => outcome === 'closed').length, 3)
  assert.equal((await request(`${world.url}/static/about.txt`)).status, 200)
  const proxy = await Promise.all(Array.from({ length: 8 }, () => fate(t, port, '127.0.0.7')))
  assert.ok(proxy.every((outcome) => outcome === 'served'))
  assert.equal(rejectedClients(world)[0]?.['limit'], 'limits.per_client.connections')
})

test('A closed connection does not count', async (t) => {
  const world = await startWorld(t, { settings: 'limits: { per_client: { connections: 2 } }' })

  for (let times = 0; times < 10; times += 1)
    assert.equal((await request(`${world.url}/static/about.txt`, { from: '127.0.0.66' })).status, 200)
})

test('When nearly all connections are in use, idle connections are closed and no client is rejected', async (t) => {
  const world = await startWorld(t, { settings: 'limits: { connections: 20 }' })
  const port = Number(new URL(world.url).port)
  const idle = await Promise.all(Array.from({ length: 20 }, () => fate(t, port, '127.0.0.1')))
  assert.deepEqual([...new Set(idle)], ['served'])

  await until('a new client is served', async () => (await fate(t, port, '127.0.0.2')) === 'served')

  assert.deepEqual(rejectedClients(world), [])
})

test('A TLS handshake that takes too long is aborted', async (t) => {
  const { server } = issueCertificates()
  const world = await startWorld(t, {
    listen: (address) => `{ address: "${address}", tls: { cert_file: ${server.cert}, key_file: ${server.key} } }`,
    settings: 'limits: { headers_timeout: 1s }',
  })
  const port = Number(new URL(world.url).port)
  const silent = connectTcp(port, '127.0.0.1')
  t.after(() => silent.destroy())

  const talking = connectTls({ port, host: '127.0.0.1', ca: undefined, rejectUnauthorized: false })
  await once(talking, 'secureConnect')
  talking.destroy()
  await once(silent.resume(), 'close')
})

async function listening(t: TestContext, server: ReturnType<typeof createServer>): Promise<URL> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
}

/** Opens a connection, requests a page, and leaves the connection open. Returns the outcome. */
function fate(t: TestContext, port: number, from: string): Promise<'served' | 'closed'> {
  const socket: Socket = connectTcp({ port, host: '127.0.0.1', localAddress: from })
  t.after(() => socket.destroy())
  socket.on('error', () => {})
  socket.write('GET /static/about.txt HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
  return new Promise((resolve) => {
    socket.once('data', () => resolve('served'))
    socket.once('close', () => resolve('closed'))
  })
}
