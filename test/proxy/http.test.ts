import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { test } from 'node:test'
import {
  respondingUpstream,
  fetchWhole,
  httpUpstream,
  linesNamed,
  RawClient,
  rawUpstream,
  startGateway,
} from './support.ts'

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

test('Method, path, query and content arrive unchanged', async (t) => {
  const seen: string[] = []
  const upstream = await httpUpstream(t, async (req, res) => {
    let body = ''
    for await (const chunk of req) body += (chunk as Buffer).toString('latin1')
    seen.push(`${req.method} ${req.url} ${req.headers['content-length'] ?? '-'} ${body}`)
    res.end()
  })
  const { origin } = await startGateway(t, upstream.port)

  await fetchWhole(`${origin}/a%2Fb/%c3?q=%20&&x`, { method: 'POST', body: '\xff\x00' })
  await fetchWhole(`${origin}/`, { method: 'GET', headers: { 'Content-Length': 3 }, body: 'abc' })
  await fetchWhole(`${origin}/`, { method: 'DELETE', headers: { 'Content-Length': 3 }, body: 'abc' })

  assert.deepEqual(seen, ['POST /a%2Fb/%c3?q=%20&&x 3 \xc3\xbf\x00', 'GET / 3 abc', 'DELETE / 3 abc'])
})

for (const method of [
  'PROPFIND',
  'PROPPATCH',
  'MKCOL',
  'COPY',
  'MOVE',
  'LOCK',
  'UNLOCK',
  'REPORT',
  'SEARCH',
  'PURGE',
]) {
  test(`${method} is forwarded like any other method`, async (t) => {
    const upstream = await httpUpstream(t, (req, res) => {
      req.resume().on('end', () => res.writeHead(207).end(req.method))
    })
    const { origin } = await startGateway(t, upstream.port)

    const { status, body } = await fetchWhole(origin, { method, body: '<a/>' })

    assert.equal(`${status} ${body}`, `207 ${method}`)
  })
}

test('The base path of the upstream precedes the path', async (t) => {
  const upstream = await httpUpstream(t, (req, res) => res.end(req.url))
  const { origin } = await startGateway(t, upstream.port, {
    upstream: { url: new URL(`http://127.0.0.1:${upstream.port}/base/`) },
  })

  assert.equal((await fetchWhole(`${origin}/a?b`)).body, '/base/a?b')
})

test('The upstream receives the Host of the client, or its own', async (t) => {
  const upstream = await httpUpstream(t, (req, res) => res.end(req.headers.host))
  const client = await startGateway(t, upstream.port)
  const own = await startGateway(t, upstream.port, { upstream: { hostHeader: 'upstream' } })

  assert.equal((await fetchWhole(client.origin)).body, 'orders.example.com')
  assert.equal((await fetchWhole(own.origin)).body, `127.0.0.1:${upstream.port}`)
})

test('A forged identity header does not arrive, and Connection cannot remove the real one', async (t) => {
  const upstream = await httpUpstream(t, (req, res) => {
    req.resume().on('end', () => res.end(JSON.stringify([req.rawHeaders, req.rawTrailers])))
  })
  const { port } = await startGateway(t, upstream.port)
  const client = new RawClient(t, port).send(
    'POST / HTTP/1.1\r\nHost: h\r\nConnection: close, X-Remote-User\r\nX_Remote_User: admin\r\nx-REMOTE-user: admin\r\n' +
      'X-Remote-User: admin\r\nTransfer-Encoding: chunked\r\nTrailer: X-Remote-User\r\n\r\n' +
      '2\r\nhi\r\n0\r\nX-Remote-User: admin\r\n\r\n',
  )

  const body = (await client.untilClosed()).split('\r\n\r\n')[1] ?? ''

  assert.equal(body.includes('admin'), false)
  assert.match(body, /"X-Remote-User","jane"/)
})

test('Three Set-Cookie fields arrive as three, without cookies of the gateway', async (t) => {
  const upstream = await respondingUpstream(
    t,
    'HTTP/1.1 200 Fine\r\nSet-Cookie: a=1; Path=/\r\nset-cookie: b=2, x\r\nSet-Cookie: __Host-gatehouse=evil\r\n' +
      'Set-Cookie: c=3\r\nServer: legacy\r\nDate: yesterday\r\nContent-Length: 2\r\n\r\nok',
  )
  const { origin } = await startGateway(t, upstream)

  const { statusMessage, rawHeaders } = await fetchWhole(origin)

  assert.equal(statusMessage, 'Fine')
  assert.deepEqual(linesNamed(rawHeaders, 'Set-Cookie'), ['a=1; Path=/', 'b=2, x', 'c=3'])
  assert.deepEqual(linesNamed(rawHeaders, 'Server'), ['legacy'])
  assert.deepEqual(linesNamed(rawHeaders, 'Date'), ['yesterday'])
  assert.deepEqual(linesNamed(rawHeaders, 'Cache-Control'), ['private'])
})

test('Trailers arrive, except those that could change the meaning of the response', async (t) => {
  const upstream = await respondingUpstream(
    t,
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Checksum\r\n\r\n' +
      '2\r\nok\r\n0\r\nX-Checksum: 1\r\nSet-Cookie: a=1\r\nX-Remote-User: admin\r\n\r\n',
  )
  const { origin } = await startGateway(t, upstream)

  const { body, trailers } = await fetchWhole(origin)

  assert.equal(body, 'ok')
  assert.deepEqual({ ...trailers }, { 'x-checksum': '1' })
})

for (const [status, extra] of [
  [204, ''],
  [304, 'ETag: "1"\r\n'],
  [200, 'Content-Length: 1000\r\n'],
] as const) {
  const method = status === 200 ? 'HEAD' : 'GET'
  test(`A ${status} response to ${method} has no content`, async (t) => {
    const upstream = await respondingUpstream(t, `HTTP/1.1 ${status} X\r\n${extra}\r\n`)
    const { port } = await startGateway(t, upstream)
    const client = new RawClient(t, port).send(`${method} / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`)

    const text = await client.untilClosed()

    assert.ok(text.startsWith(`HTTP/1.1 ${status} X\r\n`))
    assert.ok(text.endsWith('\r\n\r\n'))
    assert.equal(text.includes('Transfer-Encoding'), false)
    assert.equal(text.includes('Content-Length: 1000'), status === 200)
  })
}

test('103 Early Hints are forwarded, 100 and 102 are not, and none is the final response', async (t) => {
  const upstream = await respondingUpstream(
    t,
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nX-Secret: 1\r\n\r\n' +
      'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </b.css>; rel=preload\r\n\r\n' +
      ok,
  )
  const { port } = await startGateway(t, upstream)
  const client = new RawClient(t, port).send('GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n')

  const text = await client.untilClosed()

  assert.deepEqual(text.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 103', 'HTTP/1.1 103', 'HTTP/1.1 200'])
  assert.match(text, /Link: <\/a\.css>; rel=preload/)
  assert.equal(text.includes('X-Secret'), false)
})

test('HTTP/1.0 clients get no 1xx response', async (t) => {
  const upstream = await respondingUpstream(t, 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n' + ok)
  const { port } = await startGateway(t, upstream)

  const text = await new RawClient(t, port).send('GET / HTTP/1.0\r\n\r\n').untilClosed()

  assert.ok(text.startsWith('HTTP/1.1 200 OK\r\n'))
})

test('A "100 Continue" that arrives in pieces is not the final response', async (t) => {
  const upstream = await rawUpstream(t, (socket) => {
    const pieces = [
      'HTT',
      'P/1.1 10',
      '0 Continue\r\nX-A: 1',
      '\r\n\r',
      '\n',
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
    ]
    socket.setNoDelay(true)
    const next = (): void => {
      const piece = pieces.shift()
      if (piece !== undefined) socket.write(piece, () => setImmediate(next))
    }
    next()
  })
  const { origin } = await startGateway(t, upstream)

  assert.equal((await fetchWhole(origin)).body, 'ok')
})

test('Content that looks like a 100 Continue stays content', async (t) => {
  const lookalike = 'HTTP/1.1 100 Continue\r\n\r\n'
  const upstream = await rawUpstream(t, (socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${lookalike.length}\r\n\r\n`, () =>
      setImmediate(() => socket.write(lookalike)),
    )
  })
  const { origin } = await startGateway(t, upstream)

  assert.equal((await fetchWhole(origin)).body, lookalike)
})

test('The gateway responds to Expect: 100-continue and does not forward it', async (t) => {
  const upstream = await httpUpstream(t, (req, res) => {
    req.resume().on('end', () => res.end(String(req.headers.expect)))
  })
  const { origin } = await startGateway(t, upstream.port)
  const req = request(origin, { method: 'POST', headers: { Expect: '100-continue', 'Content-Length': 2 } })
  req.flushHeaders()

  await once(req, 'continue')
  req.end('ok')
  const [res] = (await once(req, 'response')) as [IncomingMessage]

  assert.equal(res.statusCode, 200)
  assert.equal(String(await res.toArray()), 'undefined')
})

test('HTTP/1.0 clients get no 100 Continue', async (t) => {
  const upstream = await httpUpstream(t, (req, res) => req.resume().on('end', () => res.end('ok')))
  const { port } = await startGateway(t, upstream.port)
  const client = new RawClient(t, port).send('POST / HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nok')

  assert.match(await client.untilClosed(), /^HTTP\/1\.1 200 OK\r\n/)
})

test('The upstream receives a POST at most once, whatever happens', async (t) => {
  let seen = 0
  const upstream = await rawUpstream(t, (socket) => {
    seen += 1
    socket.resetAndDestroy()
  })
  const { origin } = await startGateway(t, upstream)

  const { status } = await fetchWhole(origin, { method: 'POST', body: 'x' })

  assert.equal(status, 502)
  assert.equal(seen, 1)
})

test('A GET that fails or gets 503 is not repeated', async (t) => {
  let seen = 0
  const upstream = await rawUpstream(t, (socket) => {
    seen += 1
    if (seen === 1) socket.resetAndDestroy()
    else socket.write('HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n')
  })
  const { origin } = await startGateway(t, upstream)

  assert.equal((await fetchWhole(origin)).status, 502)
  assert.equal((await fetchWhole(origin)).status, 503)
  assert.equal(seen, 2)
})

test('A second response after the first one reaches no client', async (t) => {
  const evil = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil'
  for (const together of [true, false]) {
    const upstream = await rawUpstream(t, (socket) => {
      if (together) socket.write(ok + evil)
      else socket.write(ok, () => setImmediate(() => socket.write(evil)))
    })
    const { origin } = await startGateway(t, upstream, { upstream: { maxConnections: 1 } })

    for (let each = 0; each < 5; each++) assert.notEqual((await fetchWhole(origin)).body, 'evil')
  }
})

test('A connection is reused', async (t) => {
  const upstream = await httpUpstream(t, (_, res) => res.end('ok'))
  let connections = 0
  upstream.server.on('connection', () => (connections += 1))
  const { origin } = await startGateway(t, upstream.port)

  for (let each = 0; each < 5; each++) await fetchWhole(origin)

  assert.equal(connections, 1)
})

test('Two pipelined requests get their responses in order', async (t) => {
  const upstream = await httpUpstream(t, (req, res) => res.end(`path ${req.url}`))
  const { port, live } = await startGateway(t, upstream.port)
  const client = new RawClient(t, port).send(
    'GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n',
  )

  assert.match(await client.untilClosed(), /path \/1[^]*path \/2/)
  assert.equal(live.size, 0)
})

test('A reason phrase that Node.js rejects is replaced', async (t) => {
  const { origin } = await startGateway(
    t,
    await respondingUpstream(t, 'HTTP/1.1 404 Introuvabl\xe9\r\nContent-Length: 0\r\n\r\n'),
  )

  const { status, statusMessage } = await fetchWhole(origin)

  assert.equal(`${status} ${statusMessage}`, '404 Not Found')
})

test('A response with a large head is forwarded', async (t) => {
  const policy = 'x'.repeat(40_000)
  const { port } = await startGateway(
    t,
    await respondingUpstream(t, `HTTP/1.1 200 OK\r\nX-P: ${policy}\r\nContent-Length: 0\r\n\r\n`),
  )

  const text = await new RawClient(t, port).send('GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n').untilClosed()

  assert.ok(text.includes(policy))
})
