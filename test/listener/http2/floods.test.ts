// Slow: 4 s, clients send as fast as they can
import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants } from 'node:http2'
import { test, type TestContext } from 'node:test'
import { field, flags, frame, RawHttp2, requestFields, types, uint32 } from '../../support/http2-frames.ts'
import { startHttp2World } from '../../support/http2.ts'
import { until } from '../../support/until.ts'

const many = (count: number, each: (at: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, at) => each(at)))
const odd = (round: number, at: number, size: number) => (round * size + at) * 2 + 1

async function startServer(
  t: TestContext,
  handler: (req: IncomingMessage, res: ServerResponse) => unknown = (_req, res) => res.end('hello'),
  options: Parameters<typeof startHttp2World>[2] = {},
) {
  const world = await startHttp2World(t, handler, { h2c: true, ...options })
  const port = Number(new URL(world.url).port)
  return { world, client: (settings?: Buffer) => new RawHttp2(t, port, settings) }
}

/** Frames that carry nothing. None of them is an error by itself. */
for (const [name, flood] of [
  ['SETTINGS (CVE-2019-9515)', () => frame(types.settings, 0, 0)],
  ['PING (CVE-2019-9512)', () => frame(types.ping, 0, 0, Buffer.alloc(8))],
  ['PRIORITY (CVE-2019-9513)', () => frame(types.priority, 0, 1, Buffer.from([0, 0, 0, 3, 1]))],
  ['WINDOW_UPDATE', () => frame(types.windowUpdate, 0, 1, uint32(1))],
  ['unknown frames', () => frame(0xbe, 0, 0, Buffer.alloc(100))],
] as const)
  test(`A connection with a flood of ${name} is closed`, async (t) => {
    const { world, client } = await startServer(t, () => {})
    const raw = client()
    raw.send(frame(types.headers, flags.endHeaders, 1, requestFields('/public/x', 'POST')))

    const code = await raw.flood(() => many(100, flood))

    assert.equal(code, constants.NGHTTP2_ENHANCE_YOUR_CALM)
    const refused = world.replicas[0]?.log.find(({ message }) => message === 'request.unreadable')
    assert.equal(refused?.fields['reason'], 'http2')
  })

test('A connection with a flood of empty DATA frames (CVE-2019-9518) is closed', async (t) => {
  const { client } = await startServer(t, () => {})
  const raw = client()
  raw.send(frame(types.headers, flags.endHeaders, 1, requestFields('/public/x', 'POST')))

  await raw.flood(() => many(10, () => frame(types.data, 0, 1)))

  assert.ok(raw.of(types.goaway).length > 0)
})

test('Requests that are cancelled at once (CVE-2023-44487) end the connection, and few reach the application', async (t) => {
  let requests = 0
  const { client } = await startServer(t, () => (requests += 1))
  const raw = client()

  await raw.flood((round) =>
    many(20, (at) => {
      const stream = odd(round, at, 20)
      const head = frame(types.headers, flags.endHeaders | flags.endStream, stream, requestFields('/public/x'))
      return Buffer.concat([head, frame(types.rstStream, 0, stream, uint32(constants.NGHTTP2_CANCEL))])
    }),
  )

  const [goaway] = raw.of(types.goaway)
  assert.equal(goaway?.payload.readUInt32BE(4), constants.NGHTTP2_NO_ERROR)
  assert.ok((goaway?.payload.readUInt32BE(0) ?? Infinity) < 2 * 400, 'it ends after some 200 requests')
  assert.ok(requests < 250, `${requests} requests have reached the application`)
})

test('Requests whose reset the client provokes (CVE-2025-8671) end the connection', async (t) => {
  const { client } = await startServer(t, () => {})
  const raw = client()

  await raw.flood((round) =>
    many(20, (at) => {
      const stream = odd(round, at, 20)
      const head = frame(types.headers, flags.endHeaders, stream, requestFields('/public/x', 'POST'))
      return Buffer.concat([head, frame(types.windowUpdate, 0, stream, uint32(0))])
    }),
  )

  const [goaway] = raw.of(types.goaway)
  assert.ok((goaway?.payload.readUInt32BE(0) ?? Infinity) < 2 * 400, 'it ends after some 200 requests')
})

test('A header section that does not end (CVE-2024-27316) ends the connection', async (t) => {
  const { client } = await startServer(t)
  const raw = client()
  raw.send(frame(types.headers, flags.endStream, 1, requestFields('/public/x')))

  await raw.flood(() => frame(types.continuation, 0, 1, field('x-more', 'x'.repeat(1000))))

  assert.ok(raw.socket.bytesWritten < 1024 * 1024, `${raw.socket.bytesWritten} bytes`)
})

test('Fields that HPACK makes large (CVE-2016-6581) reset the request, and then end the connection', async (t) => {
  let requests = 0
  const { client } = await startServer(t, () => (requests += 1))
  const raw = client()
  // The first entry of the dynamic table has the index 62 (RFC 7541 §2.3.3).
  const references = Buffer.alloc(12_000, 0x80 | 62)
  const first = Buffer.concat([requestFields('/public/x'), field('x-large', 'x'.repeat(4000), 0x40), references])
  const head = (stream: number, block: Buffer) =>
    frame(types.headers, flags.endHeaders | flags.endStream, stream, block)
  raw.send(head(1, first))
  await until('the request is reset', () => raw.of(types.rstStream).length === 1)

  await raw.flood((round) => head(round * 2 + 3, Buffer.concat([requestFields('/public/x'), references])))

  assert.equal(raw.of(types.rstStream)[0]?.payload.readUInt32BE(0), constants.NGHTTP2_ENHANCE_YOUR_CALM)
  assert.equal(requests, 0)
})

test('Fields that HPACK makes too large get 431, before the client has acknowledged the bound', async (t) => {
  let requests = 0
  const { client, world } = await startServer(t, () => (requests += 1))
  const raw = client()
  const block = [requestFields('/public/x'), field('x-large', 'x'.repeat(4000), 0x40), Buffer.alloc(50, 0x80 | 62)]

  raw.send(frame(types.headers, flags.endHeaders | flags.endStream, 1, Buffer.concat(block)))

  await until('there is a response', () => raw.of(types.data).length > 0)
  assert.match(Buffer.concat(raw.of(types.data).map(({ payload }) => payload)).toString(), /"status":431/)
  assert.equal(requests, 0)
  const refused = world.replicas[0]?.log.find(({ message }) => message === 'request.unreadable')
  assert.equal(refused?.fields['reason'], 'header_size')
})

test('At most 100 requests are open on a connection', async (t) => {
  let requests = 0
  const { client } = await startServer(t, () => (requests += 1), {
    upstreamSettings: 'max_connections: 500\n    rules: [{ path: /public/*, access: public }]',
  })
  const raw = client()

  raw.send(
    many(150, (at) => frame(types.headers, flags.endHeaders | flags.endStream, at * 2 + 1, requestFields('/public/x'))),
  )

  await until('50 requests are refused', () => raw.of(types.rstStream).length === 50)
  for (const { payload } of raw.of(types.rstStream))
    assert.equal(payload.readUInt32BE(0), constants.NGHTTP2_REFUSED_STREAM)
  await until('the others are open', () => requests === 100)
})

test('The requests of a client count like its connections', async (t) => {
  let requests = 0
  const { client, world } = await startServer(t, () => (requests += 1), {
    settings: 'limits: { per_client: { connections: 10 } }',
  })
  const raw = client()

  raw.send(
    many(20, (at) => frame(types.headers, flags.endHeaders | flags.endStream, at * 2 + 1, requestFields('/public/x'))),
  )

  await until('the others are refused', () => raw.of(types.rstStream).length === 10)
  await until('ten are open', () => requests === 10)
  const limits = world.replicas[0]?.log.flatMap(({ message, fields }) =>
    message === 'limit.reached' ? [fields['limit']] : [],
  )
  assert.deepEqual(limits, ['limits.per_client.connections'])
})

test('A client that opens no window holds little memory, and its requests are cancelled', async (t) => {
  const part = Buffer.alloc(1024 * 1024)
  const { world, client } = await startServer(
    t,
    (_req, res) => {
      for (let at = 0; at < 10; at += 1) res.write(part)
      res.end()
    },
    { upstreamSettings: 'idle_timeout: 2s\n    rules: [{ path: /public/*, access: public }]' },
  )
  // SETTINGS_INITIAL_WINDOW_SIZE is 0.
  const raw = client(Buffer.from([0, 4, 0, 0, 0, 0]))
  raw.send(
    many(10, (at) => frame(types.headers, flags.endHeaders | flags.endStream, at * 2 + 1, requestFields('/public/x'))),
  )
  await until('the responses have begun', () => raw.of(types.headers).length === 10)

  const held = () => Number(world.replicas[0]?.metrics.read('gatehouse_buffered_bytes')?.cells[0]?.values[0])
  await until('the responses are counted', () => held() > 10 * 16 * 1024)
  assert.ok(held() < 10 * 512 * 1024, `${held()} bytes are held`)
  await until('the requests are cancelled', () => raw.of(types.rstStream).length === 10)
})
