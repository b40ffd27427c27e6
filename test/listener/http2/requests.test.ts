import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { constants, type Settings } from 'node:http2'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { rawUpstream } from '../../proxy/support.ts'
import { readResponse, request, startHttp2World } from '../../support/http2.ts'
import { until } from '../../support/until.ts'

const run = promisify(execFile)

for (const [how, option, version] of [
  ['HTTP/2 over TLS', {}, '2'],
  ['HTTP/2 without TLS', { h2c: true }, '2'],
  ['HTTP/1.1 beside HTTP/2 over TLS', {}, '1.1'],
  ['HTTP/1.1 beside HTTP/2 without TLS', { h2c: true }, '1.1'],
  ['HTTP/1.1 where listen.http2 is false', { listen: ', http2: false' }, '1.1'],
] as const) {
  test(`curl uses ${how}`, async (t) => {
    const world = await startHttp2World(
      t,
      (req, res) => void req.on('data', () => {}).on('end', () => res.end('hello')),
      option,
    )
    const wanted = version === '1.1' && how !== 'HTTP/1.1 where listen.http2 is false' ? '--http1.1' : '--http2'
    const flag = 'h2c' in option && wanted === '--http2' ? '--http2-prior-knowledge' : wanted

    const { stdout } = await run('curl', [flag, '-sk', '-d', 'text', '-w', ' %{http_version}', `${world.url}/public/x`])

    assert.equal(stdout, `hello ${version}`)
    const [line] = world.replicas[0]?.access ?? []
    assert.equal(line?.['http'], version === '2' ? '2' : undefined)
    assert.equal(line?.['aborted'], undefined)
  })
}

test('A request of HTTP/2 reaches the application as a request of HTTP/1.1', async (t) => {
  const seen: string[][] = []
  const world = await startHttp2World(t, (req, res) => {
    seen.push(req.rawHeaders)
    res.writeHead(200, { Connection: 'close', Trailer: 'X-Sum', 'Set-Cookie': ['a=1', 'b=2'] })
    res.write('first ')
    res.addTrailers({ 'X-Sum': '7' })
    res.end('last')
  })
  const session = world.connect()

  const response = await request(session, {
    ':path': '/public/x',
    cookie: ['a=1', 'b=2; c=3'],
    te: 'trailers',
    'x-own': ['1', '2'],
  })

  const host = new URL(world.url).host
  const [fields = []] = seen
  const values = (name: string) => fields.filter((_, at) => at % 2 === 1 && fields[at - 1]?.toLowerCase() === name)
  assert.deepEqual(values('host'), [host])
  assert.deepEqual(values('cookie'), ['a=1; b=2; c=3'])
  assert.deepEqual(values('te'), [])
  assert.deepEqual(values('x-forwarded-proto'), ['https'])
  assert.equal(response.body, 'first last')
  assert.equal(response.headers['connection'], undefined)
  assert.deepEqual(response.headers['set-cookie'], ['a=1', 'b=2'])
  assert.equal(response.trailers['x-sum'], '7')
})

for (const [why, headers, expected] of [
  ['Host differs from :authority', { ':authority': 'AUTHORITY', host: 'evil.example.com' }, 400],
  ['Host equals :authority', { ':authority': 'AUTHORITY', host: 'AUTHORITY' }, 200],
  ['Host is alone', { host: 'AUTHORITY' }, 200],
  ['the scheme is not http', { ':scheme': 'ftp' }, 400],
  ['the method is TRACE', { ':method': 'TRACE' }, 501],
  // The regression "a method in lower case bypasses a rule": rules name methods in upper case.
  ...['post', 'get', 'FOO', 'PRI'].map((method) => [`the method is ${method}`, { ':method': method }, 400] as const),
  ['Expect is not supported', { expect: 'magic' }, 417],
  ['the fields are too many', Object.fromEntries(Array.from({ length: 120 }, (_, at) => [`x-${at}`, '1'])), 431],
  ['the fields are too large', { 'x-large': 'x'.repeat(40_000) }, 431],
] as const) {
  test(`The status is ${expected} when ${why}`, async (t) => {
    let received = 0
    // It accepts what Node.js would reject.
    const port = await rawUpstream(t, (socket) => {
      received += 1
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    })
    const world = await startHttp2World(t, () => {}, { upstream: new URL(`http://127.0.0.1:${port}`) })
    const session = world.connect()
    const host = new URL(world.url).host
    const filled = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, value === 'AUTHORITY' ? host : value]),
    )

    const response = await request(session, { ':path': '/public/x', ...filled })

    assert.deepEqual([response.status, received], [expected, expected === 200 ? 1 : 0])
    assert.equal((await request(session, { ':path': '/public/x' })).status, 200, 'the connection is usable')
  })
}

test('Clients that keep to the announced size of a head may send one of header_size, with many cookies', async (t) => {
  const world = await startHttp2World(t, () => {}, { settings: 'limits: { header_size: 64kb }' })

  const [{ maxHeaderListSize }] = (await once(world.connect(), 'remoteSettings')) as [Settings]

  // Each field counts 32 bytes more than it has (RFC 9113 §6.5.2).
  assert.ok(Number(maxHeaderListSize) >= 2 * 64 * 1024, String(maxHeaderListSize))
})

test('A page with too many cookies has the button that removes them', async (t) => {
  const world = await startHttp2World(t, (_req, res) => res.end('hello'))
  const cookies = Array.from({ length: 150 }, (_, at) => `cookie-${at}=${'x'.repeat(300)}`)

  const response = await request(world.connect(), { ':path': '/private', accept: 'text/html', cookie: cookies })

  assert.equal(response.status, 431)
  assert.match(response.body, /clear-cookies/)
})

test('One of 100 requests is cancelled, and the others are complete', async (t) => {
  let cancelled = 0
  let held: (() => void)[] = []
  const world = await startHttp2World(
    t,
    (_req, res) => {
      held.push(() => res.end('x'.repeat(1000)))
      res.once('close', () => (cancelled += res.writableFinished ? 0 : 1))
    },
    { upstreamSettings: 'max_connections: 200\n    rules: [{ path: /public/*, access: public }]' },
  )
  const session = world.connect()
  const streams = Array.from({ length: 100 }, (_, at) => session.request({ ':path': `/public/${at}` }))
  const responses = streams.map(async (stream, at) => (at === 50 ? undefined : readResponse(stream)))
  await until('all requests are at the application', () => held.length === 100)

  streams[50]?.close(constants.NGHTTP2_CANCEL)
  await until('the application sees that one is cancelled', () => cancelled === 1)
  for (const respond of held) respond()

  const bodies = (await Promise.all(responses)).flatMap((response) => response?.body.length ?? [])
  assert.deepEqual(bodies, Array(99).fill(1000))
})

test('A stop sends GOAWAY, and an upload under way is completed', async (t) => {
  let received = 0
  const world = await startHttp2World(
    t,
    async (req, res) => {
      for await (const part of req) received += (part as Buffer).length
      res.end(String(received))
    },
    { drain: '10s' },
  )
  const session = world.connect()
  const upload = session.request({ ':path': '/public/upload', ':method': 'POST' })
  upload.write('x'.repeat(10_000))
  await until('the upload has begun', () => received === 10_000)
  const goaway = once(session, 'goaway')
  const closed = once(session, 'close')

  const stopped = world.replicas[0]?.stop()
  const [code] = (await goaway) as [number]
  upload.end('x'.repeat(10_000))

  assert.equal(code, constants.NGHTTP2_NO_ERROR)
  assert.equal((await readResponse(upload)).body, '20000')
  await Promise.all([stopped, closed])
})

test('A stop closes connections whose requests do not end', async (t) => {
  const world = await startHttp2World(t, () => {}, { drain: '100ms' })
  const session = world.connect()
  const stream = session.request({ ':path': '/public/x' })
  stream.on('error', () => {})
  await until('the request is open', () => stream.id !== undefined && !stream.pending)
  const closed = once(session, 'close')

  await world.replicas[0]?.stop()

  await closed
})
