import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, Server } from 'node:http'
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import type { Duplex } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { startHttp2World } from '../../support/http2.ts'
import { until } from '../../support/until.ts'

const accepts = (key: string) =>
  createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')

interface Upstream {
  readonly seen: { readonly req: IncomingMessage; readonly socket: Duplex }[]
}

/** A gateway before an application whose WebSocket sends back what it gets. */
async function startEcho(t: TestContext, acceptOf = accepts, options: Parameters<typeof startHttp2World>[2] = {}) {
  const seen: Upstream['seen'] = []
  const world = await startHttp2World(t, (_req, res) => res.end(), {
    onUpstream: (server: Server) =>
      server.on('upgrade', (req, socket) => {
        seen.push({ req, socket })
        const fields = `Sec-WebSocket-Accept: ${acceptOf(String(req.headers['sec-websocket-key']))}\r\nSec-WebSocket-Protocol: chat`
        socket.write(
          `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${fields}\r\n\r\n`,
        )
        socket.on('error', () => {}).pipe(socket)
      }),
    ...options,
  })
  const session = world.connect()
  await once(session, 'remoteSettings')
  return { world, seen, session }
}

function open(
  session: ClientHttp2Session,
  path = '/public/socket',
  protocol = 'websocket',
  cookie?: string,
): ClientHttp2Stream {
  const fields = {
    ...{ 'sec-websocket-version': '13', 'sec-websocket-protocol': 'chat' },
    ...(cookie !== undefined && { cookie }),
  }
  const stream = session.request(
    { ':method': 'CONNECT', ':protocol': protocol, ':path': path, ...fields },
    { endStream: false },
  )
  stream.on('error', () => {})
  return stream
}

test('A WebSocket over HTTP/2 is a WebSocket over HTTP/1.1 for the application', async (t) => {
  const { world, seen, session } = await startEcho(t)
  const stream = open(session)
  const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]

  stream.write('hello')
  const [echo] = (await once(stream, 'data')) as [Buffer]
  stream.end()
  await once(stream, 'close')

  assert.equal(headers[':status'], 200)
  assert.equal(headers['sec-websocket-protocol'], 'chat')
  assert.equal(headers['sec-websocket-accept'], undefined)
  assert.equal(headers['upgrade'], undefined)
  assert.equal(echo.toString(), 'hello')
  assert.equal(seen[0]?.req.method, 'GET')
  assert.equal(seen[0]?.req.headers.upgrade, 'websocket')
  assert.equal(seen[0]?.req.headers['sec-websocket-version'], '13')
  await until('the access log has the WebSocket', () => world.replicas[0]?.access.length === 1)
  const [line] = world.replicas[0]?.access ?? []
  assert.equal(line?.['status'], 101)
  assert.equal(line?.['bytes'], 5)
})

test('A WebSocket that the application does not accept is refused', async (t) => {
  const { session } = await startEcho(t, () => 'wrong')

  const [headers] = (await once(open(session), 'response')) as [Record<string, unknown>]

  assert.equal(headers[':status'], 502)
})

test('A WebSocket without a session is refused, and the connection stays', async (t) => {
  const { session } = await startEcho(t)

  const [refused] = (await once(open(session, '/private/socket'), 'response')) as [Record<string, unknown>]
  const [accepted] = (await once(open(session), 'response')) as [Record<string, unknown>]

  assert.equal(refused[':status'], 401)
  assert.equal(accepted[':status'], 200)
})

test('Another protocol than WebSocket is not supported', async (t) => {
  const { session, seen } = await startEcho(t)

  const [headers] = (await once(open(session, '/public/socket', 'connect-udp'), 'response')) as [
    Record<string, unknown>,
  ]

  assert.equal(headers[':status'], 501)
  assert.equal(seen.length, 0)
})

test('A stop closes a WebSocket with a Close frame', async (t) => {
  const { world, session } = await startEcho(t)
  const stream = open(session)
  await once(stream, 'response')
  let received = Buffer.alloc(0)
  stream.on('data', (part: Buffer) => (received = Buffer.concat([received, part])))
  const closed = once(stream, 'close')

  await Promise.all([world.replicas[0]?.stop(), closed])

  // RFC 6455 §5.5.1: a Close frame, with 1001 (going away).
  assert.equal(received[0], 0x88)
  assert.equal(received.readUInt16BE(2), 1001)
})

test('A WebSocket ends with its session, with a Close frame', async (t) => {
  const { world, seen, session } = await startEcho(t, accepts, { h2c: true })
  const jane = world.browser()
  await jane.get(`${world.url}/private`)
  const [ofJane, ofAnybody] = [open(session, '/private/socket', 'websocket', jane.cookieHeader), open(session)]
  const responses = await Promise.all([once(ofJane, 'response'), once(ofAnybody, 'response')])
  assert.deepEqual(
    responses.map(([headers]) => (headers as Record<string, unknown>)[':status']),
    [200, 200],
  )
  let received = Buffer.alloc(0)
  ofJane.on('data', (part: Buffer) => (received = Buffer.concat([received, part])))
  // As a browser does: it answers the Close frame, and waits for the end of the connection.
  ofJane.on('end', () => ofJane.end())

  await world.provider.endSession(world.provider.sessions()[0]?.sid ?? '')

  await until('the WebSocket of the session is closed', () => ofJane.closed)
  await until('the application sees the end', () => seen[0]?.socket.destroyed === true)
  // RFC 6455 §7.4.1: a Close frame, with 1008 (policy violation).
  assert.equal(received[0], 0x88)
  assert.equal(received.readUInt16BE(2), 1008)
  assert.equal(ofAnybody.closed, false, 'another WebSocket of the connection stays')
})

test('A client that cancels its WebSocket closes the one of the application', async (t) => {
  const { seen, session } = await startEcho(t)
  const stream = open(session)
  await once(stream, 'response')

  stream.close(8)

  await until('the application sees the end', () => seen[0]?.socket.destroyed === true)
})
