import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants } from 'node:http2'
import { type AddressInfo, createServer } from 'node:net'
import { test, type TestContext } from 'node:test'
import type { ClientReply } from '../../../src/http/client-messages.ts'
import { Http2Connections } from '../../../src/listener/http2/connections.ts'
import { sessionOptions } from '../../../src/listener/http2/session-options.ts'
import { flags, frame, RawHttp2, requestFields, types } from '../../support/http2-frames.ts'
import { readResponse, startHttp2World } from '../../support/http2.ts'
import { until } from '../../support/until.ts'

const size = 10 * 1024 * 1024
const public_ = 'rules: [{ path: /public/*, access: public }]'

const bufferedBytes = ({ replicas: [replica] }: Awaited<ReturnType<typeof startHttp2World>>): number =>
  Number(replica?.metrics.read('gatehouse_buffered_bytes')?.cells[0]?.values[0])

test('A download waits for a client that does not read, and the gateway holds little of it', async (t) => {
  const world = await startHttp2World(t, (_req, res) => res.end(Buffer.alloc(size, 'x')))
  const stream = world.connect().request({ ':path': '/public/x' })
  await once(stream, 'response')
  await until('the response waits', () => bufferedBytes(world) > 128 * 1024)

  const held = bufferedBytes(world)
  let received = 0
  for await (const part of stream) received += (part as Buffer).length

  assert.ok(held < size / 4, `${held} bytes are held`)
  assert.equal(received, size)
})

test('An upload waits for an application that does not read, and the gateway holds little of it', async (t) => {
  let upload: IncomingMessage | undefined
  let received = 0
  const world = await startHttp2World(t, (req, res) => {
    upload = req
    req.on('end', () => res.end(String(received)))
  })
  const stream = world.connect().request({ ':path': '/public/x', ':method': 'POST' }, { endStream: false })
  stream.end(Buffer.alloc(size, 'x'))
  await until('the upload waits', () => upload !== undefined && bufferedBytes(world) > 128 * 1024)

  const held = bufferedBytes(world)
  upload?.on('data', (part: Buffer) => (received += part.length))

  assert.equal((await readResponse(stream)).body, String(size))
  assert.ok(held < size / 4, `${held} bytes are held`)
})

test('A logout ends the event stream of the session, and other requests of the connection stay', async (t) => {
  let held: (() => void) | undefined
  const world = await startHttp2World(
    t,
    (req, res) => {
      if (req.url === '/events') res.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n')
      else if (req.url === '/public/held') held = () => res.end('complete')
      else res.end()
    },
    { upstreamSettings: `${public_}\n    logout: { paths: [/logout] }` },
  )
  const jane = world.browser()
  await jane.get(`${world.url}/orders`)
  const session = world.connect()
  const events = session.request({ ':path': '/events', cookie: jane.cookieHeader })
  events.on('error', () => {})
  await once(events, 'data')
  const other = readResponse(session.request({ ':path': '/public/held' }))
  await until('the other request is at the application', () => held !== undefined)
  const closed = new Promise((resolve) => events.once('close', resolve))

  await Promise.all([jane.get(`${world.url}/logout`), closed])
  held?.()

  assert.equal(events.rstCode, constants.NGHTTP2_INTERNAL_ERROR)
  assert.equal((await other).body, 'complete')
})

/** A port whose connections wait 100 ms, in place of 75 s, for a request or a reader. */
async function startConnections(t: TestContext): Promise<number> {
  const limits = { headerSizeBytes: 32 * 1024, headerCount: 100, headersTimeoutMs: 100 }
  const respond = (_req: unknown, res: ClientReply) => void res.end('hello', 'utf8')
  const connections = new Http2Connections({
    ...{ limits, sessionOptions: sessionOptions(limits), keepAliveMs: 100, isDraining: () => false },
    ...{ request: respond, expectation: respond, upgrade: () => {}, beginRequest: () => () => {} },
    headersTooLarge: () => ({ status: 431, headers: {}, body: '' }),
    refusals: { http2: () => {}, tooLarge: () => {} },
  })
  const server = createServer((socket) => connections.open(socket)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    connections.closeAll()
  })
  return (server.address() as AddressInfo).port
}

test('A connection without a request is closed', async (t) => {
  const raw = new RawHttp2(t, await startConnections(t))

  await once(raw.socket, 'close')

  assert.equal(raw.of(types.goaway)[0]?.payload.readUInt32BE(4), constants.NGHTTP2_NO_ERROR)
})

test('A response that a client does not read ends as an incomplete one', async (t) => {
  // SETTINGS_INITIAL_WINDOW_SIZE is 0.
  const raw = new RawHttp2(t, await startConnections(t), Buffer.from([0, 4, 0, 0, 0, 0]))
  raw.send(frame(types.headers, flags.endHeaders | flags.endStream, 1, requestFields('/')))

  await until('the stream is reset', () => raw.of(types.rstStream).length === 1)

  assert.equal(raw.of(types.rstStream)[0]?.payload.readUInt32BE(0), constants.NGHTTP2_INTERNAL_ERROR)
})

for (const [what, code, length] of [
  ['cancels a response whose rest waits for its window', constants.NGHTTP2_CANCEL, 70_000],
  ['resets a response that has no end yet with NO_ERROR', constants.NGHTTP2_NO_ERROR, undefined],
] as const)
  test(`The access log says that a response was aborted when a client ${what}`, async (t) => {
    const respond = (res: ServerResponse) => (length === undefined ? res.write('part') : res.end(Buffer.alloc(length)))
    const world = await startHttp2World(t, (_req, res) => void respond(res), { h2c: true })
    const raw = new RawHttp2(t, Number(new URL(world.url).port))
    raw.send(frame(types.headers, flags.endHeaders | flags.endStream, 1, requestFields('/public/x')))
    const received = () => raw.of(types.data).reduce((sum, { payload }) => sum + payload.length, 0)
    await until(
      'the window is used up, or a part has arrived',
      () => received() === (length === undefined ? 4 : 65_535),
    )

    const payload = Buffer.alloc(4)
    payload.writeUInt32BE(code)
    raw.send(frame(types.rstStream, 0, 1, payload))

    const access = world.replicas[0]?.access ?? []
    await until('the line', () => access.length > 0)
    assert.equal(access[0]?.['aborted'], true)
  })

test('A request that is denied during its upload gets its response, and need not send the rest', async (t) => {
  const world = await startHttp2World(t, (_req, res) => res.end(), { h2c: true })
  const raw = new RawHttp2(t, Number(new URL(world.url).port))

  raw.send(frame(types.headers, flags.endHeaders, 1, requestFields('/private', 'POST')))

  // RFC 9113 §8.1: NO_ERROR, behind the whole response.
  await until('the stream is reset', () => raw.of(types.rstStream).length === 1)
  const ofStream = raw.frames.filter(({ stream }) => stream === 1).map(({ type }) => type)
  assert.deepEqual([ofStream.at(0), ofStream.at(-1)], [types.headers, types.rstStream])
  assert.equal(raw.of(types.rstStream)[0]?.payload.readUInt32BE(0), constants.NGHTTP2_NO_ERROR)
  assert.ok(raw.frames.some(({ stream, flags: flag }) => stream === 1 && (flag & flags.endStream) !== 0))
})
