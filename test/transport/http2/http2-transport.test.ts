import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createSecureServer, createServer, type Http2Server, type ServerHttp2Stream } from 'node:http2'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { test, type TestContext } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { issueCertificates } from '../../support/certificates.ts'
import { until } from '../../support/until.ts'
import { content, get, send, transportTo } from './exchanges.ts'

const post = { ...get, method: 'POST' }

interface Served {
  readonly port: number
  readonly server: Http2Server
  connections: number
}

/** An upstream that speaks HTTP/2 without TLS. */
async function upstream(
  t: TestContext,
  onStream: (stream: ServerHttp2Stream, headers: Record<string, unknown>) => unknown,
  maxConcurrentStreams?: number,
): Promise<Served> {
  const server = createServer(maxConcurrentStreams === undefined ? {} : { settings: { maxConcurrentStreams } })
  const sockets = new Set<{ destroy(): unknown }>()
  const served: Served = { port: 0, server, connections: 0 }
  server.on('session', (session) => {
    served.connections += 1
    sockets.add(session)
    session.on('error', () => {})
  })
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    onStream(stream, headers)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return Object.assign(served, { port: (server.address() as AddressInfo).port })
}

test('A request and its response keep their fields, content and trailers', async (t) => {
  let received: Record<string, unknown> = {}
  const { port } = await upstream(t, (stream, headers) => {
    received = headers
    let body = ''
    stream.setEncoding('latin1').on('data', (part: string) => (body += part))
    stream.on('end', () => {
      stream.respond({ ':status': 201, 'set-cookie': ['a=1', 'b=2'], 'x-name': 'M\xfcller' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '7' }))
      stream.end(`echo ${body}`)
    })
  })
  const headers = ['Host', 'orders.example.com', 'Cookie', 'a=1', 'X-List', '1', 'X-List', '2', 'X-Name', 'M\xfcller']

  const outcome = await send(transportTo(t, port), {
    ...post,
    path: '/a?b',
    ...{ headers, identity: ['X-Remote-User', 'jane'], body: content(['one ', 'two']) },
  }).over

  assert.deepEqual(
    [':method', ':scheme', ':authority', ':path', 'cookie', 'x-list', 'x-name', 'x-remote-user', 'host'].map(
      (name) => received[name],
    ),
    ['POST', 'http', 'orders.example.com', '/a?b', 'a=1', '1, 2', 'M\xfcller', 'jane', undefined],
  )
  assert.deepEqual([outcome.status, outcome.body, outcome.error], [201, 'echo one two', ''])
  assert.deepEqual(outcome.fields.slice(0, 6), ['set-cookie', 'a=1', 'set-cookie', 'b=2', 'x-name', 'M\xfcller'])
  assert.deepEqual(outcome.trailers, ['x-sum', '7'])
})

test('Early hints come before the response', async (t) => {
  const { port } = await upstream(t, (stream) => {
    stream.additionalHeaders({ ':status': 103, link: '</a.css>; rel=preload' })
    stream.respond({ ':status': 204 }, { endStream: true })
  })
  const statuses: number[] = []

  await send(transportTo(t, port), get, { onResponse: (status) => void statuses.push(status) }).over

  assert.deepEqual(statuses, [103, 204])
})

test('Requests share a connection up to its bound, and further ones get another', async (t) => {
  const streams: ServerHttp2Stream[] = []
  const served = await upstream(t, (stream) => streams.push(stream))
  const transport = transportTo(t, served.port, { streamsPerConnection: 2, maxConnections: 2 })
  const over = [1, 2, 3, 4, 5].map(() => send(transport).over)
  await until('four requests have arrived', () => streams.length === 4)
  assert.equal(served.connections, 2)

  for (const stream of streams.splice(0)) stream.respond({ ':status': 200 }, { endStream: true })
  await until('the fifth has arrived', () => streams.length === 1)
  streams[0]?.respond({ ':status': 200 }, { endStream: true })

  assert.ok((await Promise.all(over)).every(({ status }) => status === 200))
  assert.equal(served.connections, 2)
})

test('An upstream that allows fewer streams gets no more of them on a connection', async (t) => {
  const streams: ServerHttp2Stream[] = []
  const served = await upstream(t, (stream) => streams.push(stream), 1)
  const transport = transportTo(t, served.port)

  const over = [1, 2, 3].map(() => send(transport).over)
  await until('all requests have arrived', () => streams.length === 3)
  assert.equal(served.connections, 3)

  for (const stream of streams) stream.respond({ ':status': 200 }, { endStream: true })
  await Promise.all(over)
})

test('An upload waits for the upstream, and a response for the client', async (t) => {
  let stream: ServerHttp2Stream | undefined
  const { port } = await upstream(t, (opened) => (stream = opened))
  const transport = transportTo(t, port)
  let paused = 0
  let resumed = 0
  let given = 0
  let reader: Parameters<NonNullable<typeof get.body>['begin']>[0] | undefined
  const body = {
    ...content([], true),
    begin: (to: typeof reader) => void (reader = to),
    pause: () => (paused += 1),
    resume: () => (resumed += 1),
  }
  let received = 0
  const { outcome, over } = send(
    transport,
    { ...post, body },
    {
      onShortPart: (part) => {
        received += part.length
        outcome.control?.pause()
      },
    },
  )
  await until('the head has arrived', () => stream !== undefined && reader !== undefined)
  const part = Buffer.alloc(64 * 1024)
  for (let sent = 0; sent < 4; sent += 1) reader?.onPart(part, () => (given += 1))
  assert.ok(paused > 0)
  stream?.resume()
  await until('the upload goes on', () => resumed > 0)
  await until('the memory was given back', () => given === 4)
  reader?.onEnd()

  stream?.respond({ ':status': 200 })
  const written = 1024 * 1024
  stream?.end(Buffer.alloc(written))
  await until('the first part has arrived', () => received > 0)
  assert.ok(stream !== undefined && stream.writableLength > 0)
  const resuming = setInterval(() => outcome.control?.resume(), 1)
  await over
  clearInterval(resuming)

  assert.equal(received, written)
})

test('A response before the end of the request ends the upload', async (t) => {
  const { port } = await upstream(t, (stream) => {
    stream.respond({ ':status': 413 }, { endStream: true })
  })
  const body = content(['begun'], true)

  const outcome = await send(transportTo(t, port), { ...post, body }).over

  assert.deepEqual([outcome.status, outcome.error, body.isDestroyed], [413, '', true])
})

test('An aborted request is cancelled at the upstream, and its connection stays', async (t) => {
  const streams: ServerHttp2Stream[] = []
  const served = await upstream(t, (stream) => streams.push(stream))
  const transport = transportTo(t, served.port)
  const { outcome, over } = send(transport)
  await until('the request has arrived', () => streams.length === 1)

  outcome.control?.abort(new Error('the client is gone'))
  outcome.control?.abort(new Error('the client is gone'))
  await over
  await until('the stream is closed', () => streams[0]?.closed === true)
  const next = send(transport)
  await until('the next request has arrived', () => streams.length === 2)
  streams[1]?.respond({ ':status': 200 }, { endStream: true })

  assert.equal((await next.over).status, 200)
  assert.deepEqual([outcome.error, outcome.done, served.connections], ['ERR_UPSTREAM_UNREACHABLE', 1, 1])
})

test('A connection is replaced before the upstream minds the cancelled requests', async (t) => {
  let arrived = 0
  const served = await upstream(t, () => (arrived += 1))
  const transport = transportTo(t, served.port)
  for (let count = 1; count <= 201; count += 1) {
    const { outcome, over } = send(transport)
    await until('it has arrived', () => arrived === count)
    outcome.control?.abort(new Error('the client is gone'))
    await over
  }

  assert.equal(served.connections, 2)
})

for (const [what, changes] of [
  ['keep_alive is 0', { keepAliveMs: 0 }],
  ['its lifetime is over', { lifetimeMs: 0 }],
] as const)
  test(`A connection is not used again when ${what}`, async (t) => {
    const served = await upstream(t, (stream) => stream.respond({ ':status': 200 }, { endStream: true }))
    const transport = transportTo(t, served.port, changes)

    await send(transport).over
    await send(transport).over

    assert.equal(served.connections, 2)
    await transport.close()
  })

test('A transport that closes lets its exchanges end, and takes no further request', async (t) => {
  let stream: ServerHttp2Stream | undefined
  const { port } = await upstream(t, (opened) => (stream = opened))
  const transport = transportTo(t, port)
  const { over } = send(transport)
  await until('the request has arrived', () => stream !== undefined)

  const closed = transport.close()
  assert.equal((await send(transport).over).progress, 'unsent')
  stream?.respond({ ':status': 200 }, { endStream: true })

  assert.equal((await over).status, 200)
  await closed
})

test('A transport that is destroyed ends each exchange once, and sends none again', async (t) => {
  const streams: ServerHttp2Stream[] = []
  const { port } = await upstream(t, (stream) => {
    streams.push(stream)
    if (streams.length === 1) stream.respond({ ':status': 200 }, { endStream: true })
  })
  const transport = transportTo(t, port)
  await send(transport).over
  const over = [1, 2, 3].map(() => send(transport).over)
  await until('the requests have arrived', () => streams.length === 4)

  await transport.destroy()

  for (const { error, done, sends } of await Promise.all(over))
    assert.deepEqual([error, done, sends], ['ERR_UPSTREAM_UNREACHABLE', 1, 1])
})

test('A request that is not wanted any more is not sent', async (t) => {
  let arrived = 0
  const { port } = await upstream(t, () => (arrived += 1))
  const transport = transportTo(t, port)
  const calls: string[] = []
  const { outcome } = send(transport, get, { onSend: () => false, onError: () => calls.push('error') })

  await until('it is done', () => outcome.done === 1)
  await transport.close()

  assert.deepEqual([arrived, calls], [0, []])
})

for (const [what, request, error] of [
  [
    'a control character in a field',
    { ...get, headers: [...get.headers, 'X-A', 'a\0x-b\0b'] },
    'ERR_REQUEST_MALFORMED',
  ],
  [
    'a field that must not be repeated',
    { ...get, headers: [...get.headers, 'Range', 'a', 'Range', 'b'] },
    'ERR_REQUEST_MALFORMED',
  ],
  ['an upgrade', { ...get, upgrade: 'websocket' }, 'ERR_UPSTREAM_RESPONSE'],
] as const)
  test(`A request with ${what} is not sent`, async (t) => {
    let arrived = 0
    const { port } = await upstream(t, () => (arrived += 1))

    const outcome = await send(transportTo(t, port), request).over

    assert.deepEqual([outcome.error, outcome.done, arrived], [error, 1, 0])
  })

test('Nothing of a request reaches a server that speaks HTTP/1.1 only', async (t) => {
  let received = ''
  const server = createTcpServer((socket) => {
    socket
      .on('error', () => {})
      .on('data', (bytes) => {
        received += String(bytes)
        socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')
      })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())

  const outcome = await send(transportTo(t, (server.address() as AddressInfo).port)).over

  assert.deepEqual([outcome.error, outcome.progress], ['ERR_UPSTREAM_UNREACHABLE', 'unsent'])
  assert.match(outcome.message, /does not speak HTTP\/2/)
  assert.doesNotMatch(received, /orders/)
})

test('A server that never sends its settings fails a request in time', async (t) => {
  const server = createTcpServer((socket) => void socket.on('error', () => {}).resume()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const transport = transportTo(t, (server.address() as AddressInfo).port, { connectTimeoutMs: 50 })
  t.after(() => server.close())

  const outcome = await send(transport).over

  assert.deepEqual([outcome.error, outcome.progress], ['ERR_UPSTREAM_TIMEOUT', 'unsent'])
  await transport.close()
})

for (const [what, protocols] of [
  ['that has no ALPN', undefined],
  ['that offers HTTP/1.1 only', ['http/1.1']],
] as const)
  test(`A server with TLS ${what} is named in the error`, async (t) => {
    const { key, cert, ca } = issueCertificates().server
    const options = { key: readFileSync(key), cert: readFileSync(cert) }
    const server = createTlsServer(protocols ? { ...options, ALPNProtocols: [...protocols] } : options)
    server.on('tlsClientError', () => {}).listen(0)
    await once(server, 'listening')
    t.after(() => server.close())
    const { port } = server.address() as AddressInfo
    const transport = transportTo(t, port, { host: 'localhost', tls: { ca: readFileSync(ca, 'utf8') } })

    const outcome = await send(transport).over

    assert.deepEqual([outcome.error, outcome.progress], ['ERR_UPSTREAM_UNREACHABLE', 'unsent'])
    assert.match(outcome.message, /does not speak HTTP\/2/)
  })

test('Over TLS, only a server with a trusted certificate gets requests', async (t) => {
  const { key, cert, ca } = issueCertificates().server
  const schemes: unknown[] = []
  const server = createSecureServer({ key: readFileSync(key), cert: readFileSync(cert) }, (req, res) => {
    schemes.push(req.scheme)
    res.end('ok')
  }).listen(0)
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const trusting = (pem: string | undefined) => transportTo(t, port, { host: 'localhost', tls: { ca: pem } })

  const rejected = await send(trusting(undefined)).over
  const accepted = await send(trusting(readFileSync(ca, 'utf8'))).over

  assert.deepEqual([rejected.error, rejected.progress], ['ERR_UPSTREAM_UNREACHABLE', 'unsent'])
  assert.deepEqual([accepted.body, schemes], ['ok', ['https']])
})
