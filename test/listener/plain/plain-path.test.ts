import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { test, type TestContext } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { Front } from '../../../src/listener/plain/plain-connection.ts'
import type { PlainRequest } from '../../../src/listener/plain/plain-request.ts'
import { httpUpstream, RawClient } from '../../proxy/support.ts'
import { issueCertificates } from '../../support/certificates.ts'
import { statusesIn } from '../../support/raw-exchange.ts'
import { until } from '../../support/until.ts'
import { startWorld, type WorldOptions } from '../../support/world.ts'
import { startFront } from './front.ts'

const upstreamSettings = 'rules: [{ path: /*, access: public }]'
const request = (line: string, ...fields: readonly string[]) =>
  [`${line} HTTP/1.1`, 'Host: h', ...fields, '', ''].join('\r\n')
const get = (path: string, ...fields: readonly string[]) => request(`GET ${path}`, ...fields)

/** A gateway in front of an application that responds with what it received. */
async function start(t: TestContext, options: WorldOptions = {}) {
  const seen: string[] = []
  const { port } = await httpUpstream(t, async (req, res) => {
    let content = ''
    for await (const part of req) content += String(part)
    seen.push(`${req.method} ${req.url} ${content}`)
    if (req.url !== '/held') res.end(`[${req.method} ${req.url} ${content}]`)
  })
  const upstream = new URL(`http://127.0.0.1:${port}`)
  const world = await startWorld(t, { upstream, upstreamSettings, ...options })
  const gateway = Number(new URL(world.url).port)
  return { world, seen, port: gateway, client: () => new RawClient(t, gateway) }
}

const inBrackets = (text: string) => [...text.matchAll(/\[(\w+ \S+ [^\]]*)\]/g)].map(([, found]) => found)

test('Plain requests, endpoints of the gateway and unusual requests share a connection', async (t) => {
  const { client } = await start(t)
  const one = client()
  for (const [sent, expected] of [
    [get('/1'), /\[GET \/1 \]$/],
    [get('/.gatehouse/session'), /"status":401[^]*\}\s*$/],
    [request('POST /2', 'Content-Length: 5') + 'hello', /\[POST \/2 hello\]$/],
    [
      request(
        'POST /.gatehouse/backchannel-logout',
        'Content-Type: application/x-www-form-urlencoded',
        'Content-Length: 14',
      ) + 'logout_token=x',
      /"error":"invalid_request"[^]*\}\s*$/,
    ],
    [request('HEAD /3'), /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n$/],
    [get('/.gatehouse/session.js'), /HTTP\/1\.1 (?:200|404)[^]*\n$/],
    [request('DELETE /4', 'Transfer-Encoding: chunked') + '2\r\nhi\r\n0\r\n\r\n', /\[DELETE \/4 hi\]$/],
    [get('/5'), /\[GET \/5 \]$/],
    [get('/6', 'Connection: close'), /\[GET \/6 \]$/],
  ] as const) {
    const before = one.received.length
    one.send(sent)
    await until(`the response to ${sent.slice(0, 30)}`, () => expected.test(one.received.slice(before)))
  }
  await one.untilClosed()
})

test('Requests that arrive together, also byte by byte, are carried out in order', async (t) => {
  const { client, seen } = await start(t)
  const all = [
    get('/1'),
    request('POST /2', 'Content-Length: 3') + 'two',
    get('/.gatehouse/session'),
    get('/3'),
    request('PUT /4', 'Content-Length: 4') + 'four',
    get('/5', 'Connection: close'),
  ].join('')
  const together = await client()
    .send(all + get('/never'))
    .untilClosed()
  const single = client()
  single.socket.setNoDelay()
  for (const byte of all) {
    single.send(byte)
    await new Promise((resolve) => setImmediate(resolve))
  }
  const apart = await single.untilClosed()

  for (const text of [together, apart]) {
    assert.deepEqual(inBrackets(text), ['GET /1 ', 'POST /2 two', 'GET /3 ', 'PUT /4 four', 'GET /5 '])
    assert.deepEqual(statusesIn(text), [200, 200, 401, 200, 200, 200])
  }
  assert.ok(!seen.some((line) => line.includes('/never')))
})

test('The head of a request that does not arrive in time gets 408', async (t) => {
  const { client } = await start(t, { settings: 'limits: { headers_timeout: 1s }' })
  const began = performance.now()
  const slow = client().send('GET /slow HTTP/1.1\r\nHost: h\r\nX-')
  const second = client().send(get('/1'))
  await second.until(/\[GET \/1 \]$/)
  second.send('GET')
  assert.deepEqual(statusesIn(await slow.untilClosed()), [408])
  assert.ok(performance.now() - began >= 1_000)
  assert.deepEqual(statusesIn(await second.untilClosed()), [200, 408])
})

test('Content that is not read is dropped, and the next request of the connection is served', async (t) => {
  const { client } = await start(t, {
    upstreamSettings: 'rules: [{ path: /open/*, access: public }, { path: /*, access: signed_in }]',
  })
  const text = await client()
    .send(`${request('POST /private', 'Content-Length: 4')}priv${get('/open/1', 'Connection: close')}`)
    .untilClosed()
  assert.deepEqual(statusesIn(text), [401, 200])
})

test('A response that has no content has no framing either', async (t) => {
  const { port } = await startFront(t, ({ url }, res) => void res.writeHead(Number(url.slice(1))).end())

  const text = await new RawClient(t, port)
    .send(get('/304') + get('/204') + request('HEAD /200', 'Connection: close'))
    .untilClosed()

  assert.deepEqual(statusesIn(text), [304, 204, 200])
  assert.match(text, /^(?:HTTP\/1\.1 (?:.+\r\n)+\r\n){3}$/)
  assert.doesNotMatch(text, /transfer-encoding/i)
})

test('A gateway that stops closes a connection without a request, and none whose first request waits', async (t) => {
  const requests: PlainRequest[] = []
  const { server, port, front } = await startFront(t, (req) => void requests.push(req))
  new RawClient(t, port).send(get('/held'))
  await until('the request has arrived', () => requests.length === 1)
  const accepted = once(server, 'connection')
  const unused = new RawClient(t, port)
  await accepted

  front.closeUnused(-1)

  await unused.untilClosed()
  assert.equal(requests[0]?.socket.destroyed, false)
})

test('A gateway that stops lets requests finish, and closes connections without one', async (t) => {
  const { world, client, seen } = await start(t, { drain: '5s' })
  const idle = client().send(get('/1'))
  await idle.until(/\[GET \/1 \]$/)
  const busy = client().send(get('/held'))
  await until('the request has arrived', () => seen.includes('GET /held '))
  const closed = world.replicas[0]?.gateway.close()
  await idle.untilClosed()
  assert.equal(busy.socket.closed, false)
  busy.socket.destroy()
  await closed
})

test('Over TLS, plain requests and endpoints share a connection', async (t) => {
  const { server } = issueCertificates()
  const { port } = await start(t, {
    listen: (address) => `{ address: "${address}", tls: { cert_file: ${server.cert}, key_file: ${server.key} } }`,
  })
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
  t.after(() => socket.destroy())
  let text = ''
  socket.on('data', (part: Buffer) => (text += part.toString('latin1')))
  await once(socket, 'secureConnect')
  socket.write(get('/1') + get('/.gatehouse/session') + get('/2', 'Connection: close'))
  await once(socket, 'close')
  assert.deepEqual(statusesIn(text), [200, 401, 200])
})

test('With plain_path: false, the parser of Node.js reads all requests', async (t) => {
  const { world, client } = await start(t, { listen: (address) => `{ address: "${address}", plain_path: false }` })
  assert.deepEqual(inBrackets(await client().send(get('/1', 'Connection: close')).untilClosed()), ['GET /1 '])
  // Only Node's parser emits all requests of a client at once, so that too many may wait.
  client().send(get('/held').repeat(1_400))
  await until('the log says that too many wait', () =>
    Boolean(world.replicas[0]?.log.some(({ fields }) => fields['limit'] === 'pipelined requests')),
  )
})

for (const [what, last] of [
  ['an unusual request', get('/last', 'TE: trailers')],
  ['a chunked request', `${request('POST /last', 'Transfer-Encoding: chunked')}0\r\n\r\n`],
  ['an endpoint', get('/.gatehouse/session')],
  ['half of a request', 'GET /last HTTP/1.1\r\nHo'],
  ['half of an unusual request', 'GET /last HTTP/1.0\r\nHo'],
  ['no request', '\0\0\0\r\n\r\n'],
] as const)
  test(`A client that half-closes its connection after ${what} gets all responses that it can have`, async (t) => {
    const { client } = await start(t)
    const one = client()
    one.socket.end(get('/1') + get('/2') + last, 'latin1')
    const text = await one.untilClosed()

    assert.deepEqual(inBrackets(text).slice(0, 2), ['GET /1 ', 'GET /2 '])
    if (last.includes('last HTTP/1.1\r\nHost')) assert.match(text, /\[(?:GET|POST) \/last \]/)
    if (last.includes('.gatehouse')) assert.deepEqual(statusesIn(text), [200, 200, 401])
    assert.equal((await client().send(get('/after', 'Connection: close')).untilClosed()).includes('/after'), true)
  })

test('Where Node.js serves connections in another way, its parser reads all requests', () => {
  const server = createServer()
  assert.equal(Front.fits(server, false), true)
  assert.equal(Front.fits(createTlsServer(), true), true)
  server.on('connection', () => {})
  assert.equal(Front.fits(server, false), false)
  assert.equal(Front.fits(server.removeAllListeners('connection') as typeof server, false), false)
})
