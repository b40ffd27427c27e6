import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer as createRelay, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { createServer } from 'node:tls'
import { Http1Transport } from '../../src/transport/http1/http1-transport.ts'
import type {
  SwitchedConnection,
  ExchangeControl,
  ResponseHandler,
  TransportTarget,
  UpstreamRequest,
} from '../../src/transport/transport.ts'
import { rawUpstream } from '../proxy/support.ts'
import { issueCertificates } from '../support/certificates.ts'
import { until } from '../support/until.ts'

// Every request to a transport ends with exactly one `onDone`: the proxy releases the connection
// slot there, so a request without it would keep its slot forever.

const head = ['Host', 'orders.example.com']
const get: UpstreamRequest = {
  method: 'GET',
  path: '/',
  headers: head,
  identity: [],
  body: undefined,
  upgrade: undefined,
}
const webSocket: UpstreamRequest = { ...get, upgrade: 'websocket' }
const sized = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const switching = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'

function targetAt(port: number, changes: Partial<TransportTarget> = {}): TransportTarget {
  const timeouts = { connectTimeoutMs: 10_000, keepAliveMs: 10_000, lifetimeMs: 60_000 }
  return { host: 'localhost', port, tls: undefined, maxConnections: 4, ...timeouts, ...changes }
}

/** Records which methods of the handler are called. */
function noting(changes: Partial<ResponseHandler> = {}) {
  const calls: string[] = []
  let control: ExchangeControl | undefined
  const handler: ResponseHandler = {
    onSend: (given) => {
      control = given
      return true
    },
    onResponse() {},
    onShortPart() {},
    onContent: (_, giveBack) => giveBack(),
    onEnd: () => void calls.push('end'),
    onSwitch: ({ socket }) => {
      calls.push('switch')
      socket.destroy()
    },
    onError: ({ code }) => void calls.push(code),
    onDone: () => void calls.push('done'),
    ...changes,
  }
  return { calls, handler, abort: () => control?.abort(new Error('the client is gone')) }
}

for (const [what, request, response, calls] of [
  ['a plain response', get, (socket: Socket) => socket.write(sized), ['done', 'end']],
  ['a response with trailers', get, (socket: Socket) => socket.write(chunked('X-T: t\r\n')), ['done', 'end']],
  [
    'a response that ends with its connection',
    get,
    (socket: Socket) => socket.end('HTTP/1.0 200 OK\r\n\r\nok'),
    ['done', 'end'],
  ],
  ['a connection that is closed', get, (socket: Socket) => socket.destroy(), ['done', 'ERR_UPSTREAM_UNREACHABLE']],
  [
    'a malformed response',
    get,
    (socket: Socket) => socket.write('nonsense\r\n\r\n'),
    ['done', 'ERR_UPSTREAM_RESPONSE'],
  ],
  [
    'a malformed chunk',
    get,
    (socket: Socket) => socket.write(chunked('').replace('0\r\n', 'x\r\n')),
    ['done', 'ERR_UPSTREAM_RESPONSE'],
  ],
  ['a switch to another protocol', webSocket, (socket: Socket) => socket.write(switching), ['switch', 'done']],
  [
    'an unrequested switch of protocols',
    get,
    (socket: Socket) => socket.write(switching),
    ['done', 'ERR_UPSTREAM_RESPONSE'],
  ],
  ['a response to an upgrade', webSocket, (socket: Socket) => socket.write(sized), ['done', 'end']],
  [
    'a control character in a field',
    { ...get, headers: [...head, 'X-A', 'a\r\nX-B: b'] },
    () => {},
    ['done', 'ERR_REQUEST_MALFORMED'],
  ],
] as const)
  test(`A request releases its connection exactly once after ${what}`, async (t) => {
    const transport = new Http1Transport(targetAt(await rawUpstream(t, response), { host: '127.0.0.1' }))
    t.after(() => transport.destroy())
    const { calls: noted, handler } = noting()

    transport.dispatch(request, handler)
    await until('the request has ended', () => noted.length >= 2)
    await transport.close()

    assert.deepEqual(noted, calls)
  })

test('An aborted request and a canceled one release their connections exactly once', async (t) => {
  let arrived = 0
  const transport = new Http1Transport(targetAt(await rawUpstream(t, () => (arrived += 1)), { host: '127.0.0.1' }))
  t.after(() => transport.destroy())
  const [aborted, unwanted, closed] = [noting(), noting({ onSend: () => false }), noting()]

  transport.dispatch(get, aborted.handler)
  transport.dispatch(get, unwanted.handler)
  transport.dispatch(get, closed.handler)
  await until('two requests have arrived', () => arrived === 2)
  aborted.abort()
  aborted.abort()
  await transport.destroy()

  assert.deepEqual(aborted.calls, ['done', 'ERR_UPSTREAM_UNREACHABLE'])
  assert.deepEqual(unwanted.calls, ['done'])
  assert.deepEqual(closed.calls, ['done', 'ERR_UPSTREAM_UNREACHABLE'])
})

test('Nothing of a request reaches a server whose certificate is not trusted', async (t) => {
  const { server, received } = await tlsServer(t)
  const transport = new Http1Transport(targetAt(server.port, { tls: { ca: undefined } }))
  t.after(() => transport.destroy())
  for (const request of [get, webSocket]) {
    const { calls, handler } = noting()
    transport.dispatch(request, handler)
    await until('the request has failed', () => calls.length === 2)
    assert.deepEqual(calls, ['done', 'ERR_UPSTREAM_UNREACHABLE'])
  }
  await transport.close()

  assert.equal(received(), '')
})

for (const request of [get, webSocket])
  test(`A request over TLS is sent to a server with a trusted certificate${request === get ? '' : ', also to switch the protocol'}`, async (t) => {
    const { server, received } = await tlsServer(t, (socket) => socket.write(request === get ? sized : switching))
    const transport = new Http1Transport(targetAt(server.port, { tls: { ca: server.ca } }))
    t.after(() => transport.destroy())
    const { calls, handler } = noting()

    transport.dispatch(request, handler)
    await until('the request has ended', () => calls.length >= 2)

    assert.deepEqual(calls, request === get ? ['done', 'end'] : ['switch', 'done'])
    assert.match(received(), /^GET \/ HTTP\/1\.1\r\nHost: orders\.example\.com\r\n/)
  })

test('After a switch of protocols, data that arrives before its receiver is kept', async (t) => {
  const { server } = await tlsServer(t, (socket) => {
    relay.hold()
    socket.write(switching + 'first', () =>
      socket.write(' second', () => socket.write(' third', () => void relay.deliver())),
    )
  })
  const relay = await holdingRelay(t, server.port)
  const transport = new Http1Transport(targetAt(relay.port, { tls: { ca: server.ca } }))
  t.after(() => transport.destroy())
  let connection: SwitchedConnection | undefined
  const { handler } = noting({ onSwitch: (switched) => (connection = switched) })
  transport.dispatch(webSocket, handler)
  await until('the protocol is another', () => connection !== undefined)
  t.after(() => connection?.socket.destroy())

  let received = ''
  connection?.read((bytes) => (received += String(bytes)))

  await until('all data has arrived', () => received.length >= 18)
  assert.equal(received, 'first second third')
})

/** A TCP relay to a server that can hold the bytes of the server, and deliver them in one write. */
async function holdingRelay(t: TestContext, target: number) {
  const held: Buffer[] = []
  let isHolding = false
  let client: Socket | undefined
  const relay = createRelay((socket) => {
    const server = connect(target, '127.0.0.1').on('error', () => {})
    client = socket.on('error', () => {}).on('data', (bytes) => server.write(bytes))
    server.on('data', (bytes) => (isHolding ? held.push(bytes) : socket.write(bytes)))
    t.after(() => [socket, server].map((each) => each.destroy()))
  }).listen(0)
  await once(relay, 'listening')
  t.after(() => relay.close())
  return {
    port: (relay.address() as AddressInfo).port,
    hold: () => void (isHolding = true),
    /** Delivers all bytes that the server has written. */
    async deliver() {
      for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate)
      client?.write(Buffer.concat(held))
    },
  }
}

async function tlsServer(t: TestContext, respond = (socket: Socket): unknown => socket.write(sized)) {
  const { key, cert, ca } = issueCertificates().server
  let text = ''
  const server = createServer({ key: readFileSync(key), cert: readFileSync(cert), noDelay: true }, (socket) => {
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      text += String(bytes)
      respond(socket)
    })
  })
  server.on('tlsClientError', () => {})
  server.listen(0)
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  return { server: { port, ca: readFileSync(ca, 'utf8') }, received: () => text }
}

function chunked(trailers: string): string {
  return `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n${trailers}\r\n`
}
