import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { flags, frame, types } from '../../support/http2-frames.ts'
import { until } from '../../support/until.ts'
import { content, get, send, transportTo } from './exchanges.ts'
import { block, frameServer, goaway, pushPromise, resetStream, settings } from './frames.ts'

const { endHeaders, endStream } = flags
const ok = block([[':status', '200']])
const whole = (stream: number) => frame(types.headers, endHeaders | endStream, stream, ok)
const sized = (length: string) =>
  block([
    [':status', '200'],
    ['content-length', length],
  ])
const head = (stream: number, fields: Buffer, flags: number = endHeaders) => frame(types.headers, flags, stream, fields)

// The upstream sends raw frames. The request must end, and the client must not take a broken
// response for a complete one.
for (const [what, respond, expected] of [
  ['no :status', (id) => head(id, block([['x-a', 'a']])), 'ERR_UPSTREAM_RESPONSE'],
  ['a :status that is no number', (id) => head(id, block([[':status', 'abc']])), 'ERR_UPSTREAM_RESPONSE'],
  [
    'two :status',
    (id) =>
      head(
        id,
        block([
          [':status', '200'],
          [':status', '204'],
        ]),
      ),
    'ERR_UPSTREAM_RESPONSE',
  ],
  ['101', (id) => head(id, block([[':status', '101']])), 'ERR_UPSTREAM_RESPONSE'],
  [
    'a pseudo-header field of a request',
    (id) =>
      head(
        id,
        block([
          [':status', '200'],
          [':path', '/'],
        ]),
      ),
    'ERR_UPSTREAM_RESPONSE',
  ],
  [
    'a name in upper case',
    (id) =>
      head(
        id,
        block([
          [':status', '200'],
          ['X-A', 'a'],
        ]),
      ),
    'ERR_UPSTREAM_RESPONSE',
  ],
  [
    'Connection',
    (id) =>
      head(
        id,
        block([
          [':status', '200'],
          ['connection', 'close'],
        ]),
      ),
    'ERR_UPSTREAM_RESPONSE',
  ],
  [
    'Transfer-Encoding',
    (id) =>
      head(
        id,
        block([
          [':status', '200'],
          ['transfer-encoding', 'chunked'],
        ]),
      ),
    'ERR_UPSTREAM_RESPONSE',
  ],
  [
    'two different lengths',
    (id) =>
      head(
        id,
        block([
          [':status', '200'],
          ['content-length', '1'],
          ['content-length', '2'],
        ]),
      ),
    'ERR_UPSTREAM_RESPONSE',
  ],
  [
    'content shorter than its length',
    (id) => Buffer.concat([head(id, sized('9')), frame(types.data, endStream, id, 'short')]),
    'ERR_UPSTREAM_RESPONSE',
  ],
  [
    'content longer than its length',
    (id) => Buffer.concat([head(id, sized('2')), frame(types.data, endStream, id, 'longer')]),
    'ERR_UPSTREAM_RESPONSE',
  ],
  [
    'a reset without an error before the end of the content',
    (id) => Buffer.concat([head(id, sized('9')), frame(types.data, 0, id, 'short'), resetStream(id, 0)]),
    'ERR_UPSTREAM_RESPONSE',
  ],
  ['a reset without an error and without a response', (id) => resetStream(id, 0), 'ERR_UPSTREAM_RESPONSE'],
  [
    'a reset in the content',
    (id) => Buffer.concat([head(id, ok), frame(types.data, 0, id, 'part'), resetStream(id, 2)]),
    'ERR_UPSTREAM_UNREACHABLE',
  ],
  ['content before the head', (id) => frame(types.data, endStream, id, 'early'), 'ERR_UPSTREAM_RESPONSE'],
  [
    'a pushed response',
    (id) =>
      frame(
        pushPromise,
        endHeaders,
        id,
        Buffer.concat([
          Buffer.from([0, 0, 0, 2]),
          block([
            [':method', 'GET'],
            [':path', '/'],
            [':scheme', 'http'],
            [':authority', 'a'],
          ]),
        ]),
      ),
    'ERR_UPSTREAM_RESPONSE',
  ],
  ['a head longer than 64 KiB', (id) => longHead(id), 'ERR_UPSTREAM_RESPONSE'],
  [
    'endless CONTINUATION',
    (id) =>
      Buffer.concat([
        head(id, ok, 0),
        ...Array.from({ length: 100 }, () => frame(types.continuation, 0, id, block([['x-a', 'a']]))),
      ]),
    'ERR_UPSTREAM_RESPONSE',
  ],
  [
    'a frame that is too long',
    (id) => Buffer.concat([head(id, ok), frame(types.data, endStream, id, 'a'.repeat(20_000))]),
    'ERR_UPSTREAM_RESPONSE',
  ],
  ['HTTP/1.1', () => Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'), 'ERR_UPSTREAM_RESPONSE'],
  [
    'a SETTINGS frame with too many settings',
    () => settings(...Array.from({ length: 64 }, () => [0x1234, 1] as const)),
    'ERR_UPSTREAM_RESPONSE',
  ],
] as readonly (readonly [string, (stream: number) => Buffer, string])[])
  test(`An exchange fails when the upstream sends ${what}`, async (t) => {
    const { port } = await frameServer(t, (socket, stream) => socket.write(respond(stream)))
    const transport = transportTo(t, port)

    const outcome = await send(transport).over

    assert.equal(outcome.error, expected, JSON.stringify(outcome))
    assert.equal(outcome.done, 1)
    await transport.close()
  })

function longHead(stream: number): Buffer {
  const field = (name: string) => block([[name, 'a'.repeat(15_000)]])
  return Buffer.concat([
    head(stream, ok, 0),
    ...['x-a', 'x-b', 'x-c', 'x-d'].map((name) => frame(types.continuation, 0, stream, field(name))),
    frame(types.continuation, endHeaders, stream, field('x-e')),
  ])
}

for (const [what, flood] of [
  ['PING', frame(types.ping, 0, 0, Buffer.alloc(8))],
  ['SETTINGS', settings([4, 65_535])],
] as const)
  test(`A flood of ${what} frames does not fill the memory`, async (t) => {
    const { port, sockets } = await frameServer(t, (socket) => {
      // The peer does not read what is sent in response.
      socket.pause()
      socket.write(Buffer.concat(Array.from({ length: 50_000 }, () => flood)))
    })
    const transport = transportTo(t, port)
    const before = process.memoryUsage().rss

    const { outcome, over } = send(transport)
    await until(
      'the connection has ended or everything was read',
      () => outcome.done === 1 || sockets[0]?.writableLength === 0,
    )
    outcome.control?.abort(new Error('the client is gone'))
    await over

    // Other tests may share the process.
    assert.ok(process.memoryUsage().rss - before < 256 * 1024 * 1024)
  })

test('Responses to several requests on a connection are not mixed up', async (t) => {
  const waiting: [Socket, number][] = []
  const { port, sockets } = await frameServer(t, (socket, stream) => {
    waiting.push([socket, stream])
    if (waiting.length < 3) return
    for (const [each, id] of [...waiting].reverse())
      each.write(Buffer.concat([head(id, ok), frame(types.data, endStream, id, `stream ${id}`)]))
  })
  const transport = transportTo(t, port)

  const bodies = await Promise.all([1, 2, 3].map(async () => (await send(transport).over).body))

  assert.deepEqual(bodies, ['stream 1', 'stream 3', 'stream 5'])
  assert.equal(sockets.length, 1)
})

test('One reset stream of 100 fails alone', async (t) => {
  const waiting: number[] = []
  const { port, sockets } = await frameServer(t, (socket, stream) => {
    waiting.push(stream)
    if (waiting.length < 100) return
    for (const id of waiting) socket.write(id === 7 ? resetStream(id, 2) : whole(id))
  })
  const transport = transportTo(t, port)

  const outcomes = await Promise.all(Array.from({ length: 100 }, () => send(transport).over))

  assert.deepEqual(
    outcomes.map(({ error }) => error).filter((error) => error !== ''),
    ['ERR_UPSTREAM_UNREACHABLE'],
  )
  assert.equal(sockets.length, 1)
})

test('A request that the upstream has refused is sent once more', async (t) => {
  const { port } = await frameServer(t, (socket, stream) =>
    socket.write(stream === 1 ? resetStream(1, 7) : whole(stream)),
  )
  const transport = transportTo(t, port)

  const outcome = await send(transport, { ...get, method: 'POST' }).over

  assert.deepEqual([outcome.status, outcome.sends, outcome.done], [200, 2, 1])
})

test('A request that the upstream refuses again counts as not sent', async (t) => {
  const { port } = await frameServer(t, (socket, stream) => socket.write(resetStream(stream, 7)))

  const outcome = await send(transportTo(t, port), { ...get, method: 'POST' }).over

  assert.deepEqual([outcome.error, outcome.progress, outcome.sends], ['ERR_UPSTREAM_UNREACHABLE', 'unsent', 2])
})

test('After GOAWAY, the requests that it leaves out get another connection, and the others their responses', async (t) => {
  const { port, sockets } = await frameServer(t, (socket, stream, connection) => {
    if (connection > 1)
      return socket.write(Buffer.concat([head(stream, ok), frame(types.data, endStream, stream, 'second')]))
    if (stream === 5)
      return socket.write(Buffer.concat([goaway(3), head(1, ok), frame(types.data, endStream, 1, 'first'), whole(3)]))
    return undefined
  })
  const transport = transportTo(t, port)

  const outcomes = await Promise.all([1, 2, 3].map(() => send(transport, { ...get, method: 'POST' }).over))

  assert.deepEqual(
    outcomes.map(({ body, error }) => body + error),
    ['first', '', 'second'],
  )
  assert.equal(sockets.length, 2)
})

test('GOAWAY in the middle of an upload lets the upload finish', async (t) => {
  const { port, frames } = await frameServer(t, (socket, stream) => socket.write(goaway(stream)))
  const transport = transportTo(t, port)
  let reader: Parameters<NonNullable<typeof get.body>['begin']>[0] | undefined
  const body = { ...content([], true), begin: (given: typeof reader) => void (reader = given) }
  const { over } = send(transport, { ...get, method: 'POST', body })
  await until('the head has arrived', () => frames.some(({ type }) => type === types.headers))

  reader?.onPart(Buffer.from('late'), () => {})
  reader?.onEnd()
  await until('the content has arrived', () =>
    frames.some(({ type, flags: flag }) => type === types.data && flag === endStream),
  )

  assert.equal(
    Buffer.concat(frames.filter(({ type }) => type === types.data).map(({ payload }) => payload)).toString(),
    'late',
  )
  await transport.destroy()
  assert.equal((await over).error, 'ERR_UPSTREAM_UNREACHABLE')
})

test('An upload that GOAWAY leaves out is not sent again', async (t) => {
  const { port } = await frameServer(t, (socket) => socket.write(goaway(0)))
  const body = content(['begun'], true)

  const outcome = await send(transportTo(t, port), { ...get, method: 'POST', body }).over

  assert.deepEqual([outcome.error, outcome.progress, outcome.sends], ['ERR_UPSTREAM_UNREACHABLE', 'sent', 1])
  assert.ok(body.isDestroyed)
})

test('GOAWAY with an error fails what the upstream has begun, and nothing else', async (t) => {
  const { port } = await frameServer(t, (socket, stream, connection) => {
    if (connection > 1) return socket.write(whole(stream))
    return stream === 3 ? socket.write(goaway(1, 11)) : undefined
  })
  const transport = transportTo(t, port)

  const outcomes = await Promise.all([1, 2].map(() => send(transport, { ...get, method: 'POST' }).over))

  assert.deepEqual(
    outcomes.map(({ status, error }) => error || status),
    ['ERR_UPSTREAM_UNREACHABLE', 200],
  )
})

test('When a connection dies, each of its requests ends once', async (t) => {
  let count = 0
  const { port } = await frameServer(t, (socket) => {
    count += 1
    if (count === 50) socket.resetAndDestroy()
  })
  const transport = transportTo(t, port)

  const outcomes = await Promise.all(Array.from({ length: 50 }, () => send(transport, { ...get, method: 'POST' }).over))

  assert.ok(
    outcomes.every(
      ({ error, progress, done }) => error === 'ERR_UPSTREAM_UNREACHABLE' && progress === 'sent' && done === 1,
    ),
  )
})

test('A safe request is sent again when its connection was used before, and dies', async (t) => {
  const { port } = await frameServer(t, (socket, stream, connection) => {
    if (connection === 1 && stream > 1) socket.destroy()
    else socket.write(whole(stream))
  })
  const transport = transportTo(t, port)
  await send(transport).over

  const outcome = await send(transport).over

  assert.deepEqual([outcome.status, outcome.sends], [200, 2])
})
