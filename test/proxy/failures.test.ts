import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { test } from 'node:test'
import { inTime } from '../support/in-time.ts'
import { until } from '../support/until.ts'
import { respondingUpstream, fetchWhole, httpUpstream, jane, RawClient, rawUpstream, startGateway } from './support.ts'

const get = 'GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n'

async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

test('A refused connection causes a 502, and only the log names the upstream', async (t) => {
  const port = await closedPort()
  const { origin, logged } = await startGateway(t, port)

  const { status, headers, body } = await fetchWhole(origin)

  assert.equal(status, 502)
  assert.equal(headers['content-type'], 'application/problem+json')
  assert.equal(headers['cache-control'], 'no-store')
  assert.equal(JSON.parse(body).detail, 'The application cannot be reached.')
  assert.doesNotMatch(body, /127\.0\.0\.1|ECONN/)
  assert.equal(logged[0]?.fields['url'], `http://127.0.0.1:${port}`)
  assert.match(String(logged[0]?.fields['reason']), /ECONNREFUSED/)
})

test('An error of a page load is a page', async (t) => {
  const { origin } = await startGateway(t, await closedPort(), { isPage: true })

  const { status, headers, body } = await fetchWhole(origin)

  assert.equal(status, 502)
  assert.match(String(headers['content-type']), /^text\/html/)
  assert.match(body, /The application cannot be reached\./)
})

for (const [what, response] of [
  ['garbage', 'hello\r\n\r\n'],
  ['a bare CR in a header', 'HTTP/1.1 200 OK\r\nX-A: a\rb\r\nContent-Length: 0\r\n\r\n'],
  ['a NUL in a header', 'HTTP/1.1 200 OK\r\nX-A: a\0b\r\nContent-Length: 0\r\n\r\n'],
  ['a control character in a header', 'HTTP/1.1 200 OK\r\nX-A: a\x01b\r\nContent-Length: 0\r\n\r\n'],
  ['a Content-Length that is no number', 'HTTP/1.1 200 OK\r\nContent-Length: 2x\r\n\r\nok'],
  ['two different Content-Length', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!'],
  [
    'Content-Length beside chunked',
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  ],
  ['another transfer coding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n'],
  ['an unrequested 101', 'HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'],
  ['a 101 to nothing', 'HTTP/1.1 101 X\r\n\r\n'],
  ['a head without end', `HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(70_000)}`],
] as const) {
  test(`A response with ${what} causes a 502`, async (t) => {
    const { port } = await startGateway(t, await respondingUpstream(t, response))

    const text = await new RawClient(t, port).send(get).untilClosed()

    assert.match(text, /^HTTP\/1\.1 502 Bad Gateway\r\n/)
    assert.equal(text.includes('X-A'), false)
  })
}

for (const [what, close] of [
  ['closes', 'end'],
  ['resets', 'resetAndDestroy'],
] as const) {
  test(`An upstream that ${what} without a response causes a 502`, async (t) => {
    const upstream = await rawUpstream(t, (socket) => void socket[close]())
    const { origin } = await startGateway(t, upstream)

    assert.equal((await fetchWhole(origin)).status, 502)
  })
}

for (const [what, head] of [
  ['Content-Length', 'Content-Length: 10\r\n\r\n12345'],
  ['Content-Length and close', 'Connection: close\r\nContent-Length: 10\r\n\r\n12345'],
  ['chunked', 'Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n'],
  ['chunked and close', 'Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n'],
  ['chunked, in a chunk', 'Transfer-Encoding: chunked\r\n\r\na\r\n12345'],
] as const) {
  for (const close of ['end', 'resetAndDestroy'] as const) {
    test(`An incomplete response (${what}, ${close}) does not look complete`, async (t) => {
      const upstream = await rawUpstream(t, (socket) => {
        socket.write(`HTTP/1.1 200 OK\r\n${head}`)
        t.after(() => socket.destroy())
        broken = () => socket[close]()
      })
      let broken = (): unknown => undefined
      const { port } = await startGateway(t, upstream)
      const client = new RawClient(t, port).send('GET / HTTP/1.1\r\nHost: h\r\n\r\n')

      await client.until(/12345/)
      broken()
      const text = await client.untilClosed()

      assert.match(text, /^HTTP\/1\.1 200 OK\r\n/)
      assert.equal(text.endsWith('0\r\n\r\n'), false)
      assert.equal(text.endsWith('1234512345'), false)
    })
  }
}

test('A response that ends with its connection is complete after a close and incomplete after a reset', async (t) => {
  for (const [close, whole] of [
    ['end', true],
    ['resetAndDestroy', false],
  ] as const) {
    let finish = (): unknown => undefined
    const upstream = await rawUpstream(t, (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n12345')
      finish = () => socket[close]()
    })
    const { port } = await startGateway(t, upstream)
    const client = new RawClient(t, port).send(get)

    await client.until(/12345/)
    finish()

    assert.equal((await client.untilClosed()).endsWith('\r\n0\r\n\r\n'), whole)
  }
})

test('An HTTP/1.0 client sees a reset when a response is incomplete, because a close would look complete', async (t) => {
  let finish = (): unknown => undefined
  const upstream = await rawUpstream(t, (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n')
    finish = () => socket.destroy()
  })
  const { port } = await startGateway(t, upstream)
  const client = new RawClient(t, port).send('GET / HTTP/1.0\r\n\r\n')
  const failed = once(client.socket, 'error')

  await client.until(/12345/)
  finish()

  assert.equal(((await failed)[0] as NodeJS.ErrnoException).code, 'ECONNRESET')
})

test('An upstream that never responds causes a 504, and its connection is closed', async (t) => {
  let closed: Promise<unknown> | undefined
  const upstream = await rawUpstream(
    t,
    (socket) => void (closed = new Promise((resolve) => socket.once('close', resolve))),
  )
  const { origin } = await startGateway(t, upstream, { upstream: { responseTimeoutMs: 100 } })

  const { status, body } = await fetchWhole(origin, { method: 'POST', body: 'x' })

  assert.equal(status, 504)
  assert.equal(JSON.parse(body).detail, 'The application did not respond in time.')
  await closed
})

test('A request whose session ends before it is sent is never sent', async (t) => {
  let arrived = 0
  const upstream = await httpUpstream(t, (_, res) => res.end(String((arrived += 1))))
  const { origin, server, live } = await startGateway(t, upstream.port)
  server.once('request', () => live.closeAll([jane]))

  assert.equal((await fetchWhole(origin)).status, 401)
  assert.equal((await fetchWhole(origin)).body, '1')
})

test('A request without a response yet is not aborted when the gateway stops', async (t) => {
  const heads: Socket[] = []
  const { origin, live } = await startGateway(t, await rawUpstream(t, (socket) => void heads.push(socket)))
  const response = fetchWhole(origin)
  await until('the request arrives', () => heads.length === 1)

  live.closeEndless()
  heads[0]?.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')

  assert.equal((await response).body, 'ok')
})

test('A connection that is not established in time causes a 504', async (t) => {
  // 192.0.2.0/24 is unreachable (RFC 5737). A network that reports this at once causes a 502.
  const { origin } = await startGateway(t, 1, {
    upstream: { url: new URL('http://192.0.2.1:9'), connectTimeoutMs: 100, responseTimeoutMs: 0 },
  })

  const { status } = await fetchWhole(origin)

  assert.ok(status === 504 || status === 502)
})

test('A pause longer than the idle timeout aborts the response', async (t) => {
  const upstream = await respondingUpstream(t, 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n')
  const { origin, logged } = await startGateway(t, upstream, { upstream: { idleTimeoutMs: 100 } })

  await assert.rejects(fetchWhole(origin), { code: 'ECONNRESET' })

  assert.equal(logged[0]?.fields['code'], 'ERR_UPSTREAM_TIMEOUT')
})

test('A client that does not read the end of a response is disconnected after idle_timeout', async (t) => {
  const part = `2000\r\n${'x'.repeat(0x2000)}\r\n`
  let application: Socket | undefined
  const upstream = await rawUpstream(t, (socket) => {
    application = socket
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
  })
  const { port, server, logged, records } = await startGateway(t, upstream, { upstream: { idleTimeoutMs: 3_000 } })
  const request = once(server, 'request')
  const client = new RawClient(t, port).send('GET / HTTP/1.1\r\nHost: h\r\n\r\n')
  const [{ socket: towardsClient }] = (await request) as [IncomingMessage]
  await client.until(/\r\n\r\n/)
  client.socket.pause()
  // Writes until the kernel buffers are full, in parts that are small enough for the gateway to
  // continue reading.
  while (towardsClient.writableLength === 0) {
    const before = towardsClient.bytesWritten
    application?.write(part, 'latin1')
    while (towardsClient.bytesWritten < before + 0x2000) await new Promise(setImmediate)
  }
  assert.equal(towardsClient.writableNeedDrain, false)

  const closed = once(towardsClient, 'close')
  application?.write('0\r\n\r\n')
  await inTime(10_000, () => closed)
  client.socket.resume()

  assert.equal((await client.untilClosed()).endsWith('\r\n0\r\n\r\n'), false)
  assert.deepEqual(
    records.map(({ aborted }) => aborted),
    [true],
  )
  // No warning about the application, because it has sent everything.
  assert.deepEqual(logged, [])
})

test('A client that pauses its request gets 408, and the connection is closed', async (t) => {
  let canceled: Promise<unknown> | undefined
  const upstream = await rawUpstream(
    t,
    (socket) => void (canceled = new Promise((resolve) => socket.once('close', resolve))),
  )
  const { port } = await startGateway(t, upstream, { bodyIdleTimeoutMs: 100, upstream: { responseTimeoutMs: 50 } })
  const client = new RawClient(t, port).send('POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n12345')

  const text = await client.until(/\r\n\r\n.+/)

  assert.match(text, /^HTTP\/1\.1 408 Request Timeout\r\n/)
  assert.match(text, /\r\nConnection: close\r\n/i)
  await client.untilClosed()
  await canceled
})

test('A client that disconnects cancels the upstream request at once', async (t) => {
  for (const response of ['', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345']) {
    let arrived = (): void => {}
    let closed: Promise<unknown> | undefined
    const arrival = new Promise<void>((resolve) => (arrived = resolve))
    const upstream = await rawUpstream(t, (socket) => {
      closed = new Promise((resolve) => socket.once('close', resolve))
      socket.write(response)
      arrived()
    })
    const { port, live } = await startGateway(t, upstream)
    const client = new RawClient(t, port).send('GET / HTTP/1.1\r\nHost: h\r\n\r\n')
    await (response === '' ? arrival : client.until(/12345/))

    client.socket.destroy()

    await closed
    assert.equal(live.size, 0)
  }
})

test('A client that disconnects during its request cancels it', async (t) => {
  let closed: Promise<unknown> | undefined
  let arrived = (): void => {}
  const arrival = new Promise<void>((resolve) => (arrived = resolve))
  const upstream = await rawUpstream(t, (socket) => {
    closed = new Promise((resolve) => socket.once('close', resolve))
    arrived()
  })
  const { port, live } = await startGateway(t, upstream)
  const client = new RawClient(t, port).send('POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n12345')
  await arrival

  client.socket.destroy()

  await closed
  assert.equal(live.size, 0)
})

test('A request whose client has disconnected is never sent, and its connection stays usable', async (t) => {
  const seen: string[] = []
  let response = (): unknown => undefined
  const upstream = await httpUpstream(t, (req, res) => {
    seen.push(req.url ?? '')
    if (req.url === '/first') response = () => res.end('first')
    else res.end('ok')
  })
  const { port, origin, live, server } = await startGateway(t, upstream.port, { upstream: { maxConnections: 1 } })
  const arrived = once(upstream.server, 'request')
  const first = fetchWhole(`${origin}/first`)
  await arrived
  const queued = once(server, 'request')
  const client = new RawClient(t, port).send('GET /abandoned HTTP/1.1\r\nHost: h\r\n\r\n')
  const [, res] = (await queued) as [unknown, NodeJS.EventEmitter]
  const gone = once(res, 'close')
  client.socket.destroy()
  await gone

  response()

  assert.equal((await first).body, 'first')
  assert.equal((await fetchWhole(`${origin}/next`)).body, 'ok')
  assert.deepEqual(seen, ['/first', '/next'])
  assert.equal(live.size, 0)
})

test('An early response to a large upload arrives completely, although the upload does not', async (t) => {
  const upstream = await rawUpstream(t, (socket) => {
    socket.pause()
    socket.end('HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\nConnection: close\r\n\r\ntoo large')
  })
  const { origin } = await startGateway(t, upstream)
  const req = request(origin, { method: 'POST', agent: false, headers: { 'Content-Length': 256 * 1024 * 1024 } })
  req.on('error', () => {})
  const block = Buffer.alloc(64 * 1024)
  const send = (): void => {
    while (!req.destroyed && req.write(block));
  }
  req.on('drain', send)
  send()

  const [res] = (await once(req, 'response')) as [IncomingMessage]
  const text = String(Buffer.concat((await res.toArray()) as Buffer[]))
  req.destroy()

  assert.equal(`${res.statusCode} ${text}`, '413 too large')
  assert.equal(res.headers.connection, 'close')
})

test('A connection is not reused after a response to an incomplete request', async (t) => {
  const upstream = await respondingUpstream(t, 'HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\n\r\ntoo large')
  const { port } = await startGateway(t, upstream)
  const client = new RawClient(t, port).send('POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n12345')

  const text = await client.until(/too large/)
  client.send(`67890${get}`)

  assert.match(text, /\r\nConnection: close\r\n/)
  assert.equal(await client.untilClosed(), text)
})

test('A value that undici rejects causes a 400, not a crash', async (t) => {
  const { port } = await startGateway(t, await closedPort())

  const text = await new RawClient(t, port)
    .send('GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX-A: \x7f\r\n\r\n')
    .untilClosed()

  assert.match(text, /^HTTP\/1\.1 400 /)
})

for (const [why, status, length, isLogged] of [
  ['431', 431, 10, true],
  ['400 to long headers', 400, 5_000, true],
  ['400 to short headers', 400, 10, false],
  ['403 to long headers', 403, 5_000, false],
] as const)
  test(`An application that may reject identity headers is logged once, with the longest: ${why}`, async (t) => {
    const { port } = await httpUpstream(t, (_req, res) => res.writeHead(status).end())
    const identity = ['X-Groups', 'g'.repeat(length), 'X-Remote-User', 'jane']
    const { origin, logged } = await startGateway(t, port, { pass: { identity } })

    assert.equal((await fetchWhole(origin)).status, status)
    await fetchWhole(origin)

    const found = logged.filter(({ message }) => message === 'upstream.rejected_headers')
    assert.equal(found.length, isLogged ? 1 : 0)
    if (!isLogged) return
    const { header, reason, hint } = found[0]?.fields ?? {}
    assert.equal(header, 'X-Groups')
    assert.match(String(reason), new RegExp(`with ${status}, and its identity headers have ${length + 25} bytes`))
    assert.match(String(hint), /^Shorten X-Groups \(max_bytes, or fewer values\), or raise/)
  })
