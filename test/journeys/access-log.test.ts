import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request, type ServerResponse } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { openWebSocket } from '../support/streams.ts'
import { until } from '../support/until.ts'
import { startWorld, type Replica, type World } from '../support/world.ts'

type Line = Readonly<Record<string, unknown>>

/** Waits for the line of the one request for this path. */
async function lineOf(replica: Replica, path: string): Promise<Line> {
  const lines = () => replica.access.filter((line) => line['path'] === path)
  await until(`a line about ${path}`, () => lines().length > 0)
  assert.equal(lines().length, 1)
  return lines()[0] as Line
}

/** An application that responds to some requests only on demand, or in part. */
async function slowUpstream(t: TestContext) {
  const held: ServerResponse[] = []
  const server = createServer((req, res) => {
    if (req.url === '/held') held.push(res)
    else if (req.url === '/part') res.writeHead(200, { 'content-length': 1000 }).write('the beginning')
    else if (req.url === '/broken') res.writeHead(200, { 'content-length': 1000 }).write('x', () => res.destroy())
    else if (req.url === '/large') res.end(Buffer.alloc(16 * 1024 * 1024))
    else res.writeHead(201).end(`${req.headers['x-request-id']}`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), waiting: () => held.length }
}

const first = (world: World) => world.replicas[0] as Replica

test('A request of a signed-in person has one line, which names the session as the audit events do', async (t) => {
  const world = await startWorld(t)
  const jane = world.browser()
  await jane.get(`${world.url}/echo?code=SECRET`)
  const replica = first(world)
  replica.access.length = 0

  const { body } = await jane.send(`${world.url}/echo?code=SECRET#x`)

  const line = await lineOf(replica, '/echo')
  const { request: id, time, ms, session, ...rest } = line
  assert.deepEqual(rest, {
    level: 'info',
    msg: 'request.ended',
    method: 'GET',
    host: '127.0.0.1',
    path: '/echo',
    status: 200,
    bytes: Buffer.byteLength(body),
    client: '127.0.0.1',
    upstream: 'orders',
  })
  assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.ok(Number(ms) > 0 && Number(ms) < 60_000)
  assert.equal(session, replica.log.find(({ message }) => message === 'session.created')?.fields['session'])
  const received = (JSON.parse(body) as { headers: [string, string][] }).headers
  assert.deepEqual(
    received.filter(([name]) => name.toLowerCase() === 'x-request-id'),
    [['X-Request-Id', id]],
  )
})

test('Each request has an id of its own, and the id of a client is neither used nor forwarded', async (t) => {
  const world = await startWorld(t)
  const replica = first(world)
  for (let times = 0; times < 3; times += 1)
    await world.browser().send(`${world.url}/static/about.txt`, { headers: { 'x-request-id': 'forged' } })

  await until('three lines', () => replica.access.length === 3)
  const ids = new Set(replica.access.map((line) => line['request']))
  assert.equal(ids.size, 3)
  assert.equal(ids.has('forged'), false)
})

for (const [given, isTaken] of [
  ['0d6f3e9a-abcd:1/2', true],
  ['x"y', false],
  ['a b', false],
  ['', false],
  ['a'.repeat(129), false],
] as const)
  test(`An id from a trusted proxy is ${isTaken ? '' : 'not '}used: "${given.slice(0, 20)}"`, async (t) => {
    const { url } = await slowUpstream(t)
    const world = await startWorld(t, {
      upstream: url,
      settings: 'trusted_proxies: [127.0.0.1]',
      upstreamSettings: 'rules: [{ path: /*, access: public }]',
    })

    const { body } = await world.browser().send(`${world.url}/x`, { headers: { 'x-request-id': given } })

    assert.equal(body === given, isTaken)
    assert.equal((await lineOf(first(world), '/x'))['request'], body)
  })

test('A trace context reaches the application unchanged, and the line names the trace', async (t) => {
  const world = await startWorld(t)
  const headers = {
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    tracestate: 'congo=t61rcWkgMzE,rojo=00f067aa0ba902b7',
  }
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const replica = first(world)
  replica.access.length = 0

  const { body } = await jane.send(`${world.url}/echo`, { headers })

  const received = Object.fromEntries((JSON.parse(body) as { headers: [string, string][] }).headers)
  assert.equal(received['traceparent'], headers.traceparent)
  assert.equal(received['tracestate'], headers.tracestate)
  assert.equal((await lineOf(replica, '/echo'))['trace'], '0af7651916cd43dd8448eb211c80319c')
})

test('A rejected request has its error code and the id that the error page shows', async (t) => {
  const world = await startWorld(t)
  const replica = first(world)
  const zoe = world.browser('zoe')
  await zoe.get(`${world.url}/echo`)
  await lineOf(replica, '/.gatehouse/callback')
  replica.access.length = 0
  const shown = (body: string) => /Request ID ([\w-]+)</.exec(body)?.[1] ?? /"request_id":"([\w-]+)"/.exec(body)?.[1]

  for (const [path, status, code, headers] of [
    ['/admin/', 403, 'ERR_FORBIDDEN', {}],
    ['/%zz', 400, 'ERR_REQUEST_TARGET', {}],
    ['/.gatehouse/nothing', 404, 'ERR_NO_ROUTE', {}],
    ['/.gatehouse/callback', 400, 'ERR_SIGN_IN_EXPIRED', {}],
    ['/api/me', 401, 'ERR_UNAUTHENTICATED', { cookie: '' }],
  ] as const) {
    const visit = await zoe.send(`${world.url}${path}`, { headers })
    const line = await lineOf(replica, path)
    assert.equal(visit.status, status)
    assert.equal(line['status'], status)
    assert.equal(line['code'], code)
    assert.equal(line['request'], shown(visit.body), path)
    assert.equal(line['bytes'], Buffer.byteLength(visit.body))
  }
})

test('The line of a malformed request has the host without its port, and gives the reason once, without the code', async (t) => {
  const world = await startWorld(t)
  const replica = first(world)

  await world.browser().send(`${world.url}/%zz`)

  assert.equal((await lineOf(replica, '/%zz'))['host'], new URL(world.url).hostname)
  const refused = replica.log.find(({ message }) => message === 'request.refused')
  assert.equal(refused?.fields['code'], 'ERR_REQUEST_TARGET')
  assert.doesNotMatch(String(refused?.fields['reason']), /ERR_|refused/)
})

test('A redirect to the sign-in is not a denial, and the lines of endpoints leave out the query', async (t) => {
  const world = await startWorld(t)
  const replica = first(world)
  await world.browser().get(`${world.url}/echo`)

  await until('the line after the sign-in', () => replica.access.length >= 4)
  assert.deepEqual(
    replica.access.map(({ path, status, code }) => [path, status, code]),
    [
      ['/echo', 303, undefined],
      ['/.gatehouse/sign-in', 303, undefined],
      ['/.gatehouse/callback', 303, undefined],
      ['/echo', 200, undefined],
    ],
  )
})

test('A WebSocket has its line when it ends, with its duration and the reason of its end', async (t) => {
  const world = await startWorld(t)
  const replica = first(world)
  const jane = world.browser()
  await jane.get(`${world.url}/echo`)
  const socket = await openWebSocket(t, `${world.url}/ws`, jane.cookieHeader)
  assert.equal(
    replica.access.some(({ path }) => path === '/ws'),
    false,
  )

  const [session] = world.provider.sessions()
  await world.provider.endSession(session?.sid ?? '')
  await socket.ended

  const line = await lineOf(replica, '/ws')
  assert.equal(line['status'], 101)
  assert.equal(line['upstream'], 'orders')
  assert.equal(line['code'], 'session_ended')
  assert.ok(Number(line['bytes']) > 10)
})

test('A rejected upgrade has its error code', async (t) => {
  const world = await startWorld(t)
  const sent = request(`${world.url}/ws`, { headers: { connection: 'upgrade', upgrade: 'websocket' } }).end()
  const [response] = await once(sent, 'response')
  response.resume()

  const line = await lineOf(first(world), '/ws')
  assert.equal(line['status'], 401)
  assert.equal(line['code'], 'ERR_UNAUTHENTICATED')
})

test('A request with an unsupported Expect has its line and its error code', async (t) => {
  const world = await startWorld(t)
  const sent = request(`${world.url}/static/expecting`, { headers: { expect: 'tea' } }).end()
  const [response] = await once(sent, 'response')
  response.resume()

  const line = await lineOf(first(world), '/static/expecting')
  assert.deepEqual([response.statusCode, line['status'], line['code']], [417, 417, 'ERR_EXPECTATION'])
})

test('The log tells a client that disconnects from one that gets its response', async (t) => {
  const { url, waiting } = await slowUpstream(t)
  const upstreamSettings = 'rules: [{ path: /*, access: public }]'
  const world = await startWorld(t, { upstream: url, upstreamSettings })
  const replica = first(world)
  const ask = (path: string) =>
    request(`${world.url}${path}`, { agent: false })
      .on('error', () => {})
      .end()

  const before = ask('/held')
  await until('it waits', () => waiting() === 1)
  before.destroy()
  const during = ask('/part')
  await once(during, 'response')
  during.destroy()
  // The gateway has received the whole response, and cannot send most of it.
  const late = ask('/large')
  await once(late, 'response')
  late.destroy()

  const lines = [await lineOf(replica, '/held'), await lineOf(replica, '/part'), await lineOf(replica, '/large')]
  assert.deepEqual(
    lines.map(({ status, aborted, code }) => [status, aborted, code]),
    [
      [499, true, undefined],
      [200, true, undefined],
      [200, true, undefined],
    ],
  )
  assert.equal(lines[1]?.['bytes'], 13)
})

test('The line of a response that the application breaks off says so', async (t) => {
  const { url } = await slowUpstream(t)
  const world = await startWorld(t, { upstream: url, upstreamSettings: 'rules: [{ path: /*, access: public }]' })
  const sent = request(`${world.url}/broken`, { agent: false })
    .on('error', () => {})
    .end()
  const [response] = await once(sent, 'response')
  response.on('error', () => {}).resume()

  const line = await lineOf(first(world), '/broken')
  assert.deepEqual([line['status'], line['aborted'], line['code']], [200, true, 'ERR_UPSTREAM_UNREACHABLE'])
})

test('Pipelined requests have one line each, in the order in which they are carried out', async (t) => {
  const { url } = await slowUpstream(t)
  const world = await startWorld(t, { upstream: url, upstreamSettings: 'rules: [{ path: /*, access: public }]' })
  const replica = first(world)
  const { port } = new URL(world.url)
  const client = connect(Number(port), '127.0.0.1')
  client.on('error', () => {})
  const head = (path: string) => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`
  client.write(head('/a') + head('/held') + head('/c'))

  await lineOf(replica, '/a')
  client.destroy()

  const statuses = [await lineOf(replica, '/a'), await lineOf(replica, '/held')]
  assert.deepEqual(
    statuses.map(({ aborted }) => aborted),
    [undefined, true],
  )
  await fetch(`${world.url}/d`)
  await lineOf(replica, '/d')
  assert.ok(!replica.access.some(({ path }) => path === '/c'))
})
