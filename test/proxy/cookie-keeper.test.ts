import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { GatewayError } from '../../src/core/errors.ts'
import { parseNamePattern } from '../../src/core/patterns.ts'
import type { KeptCookie } from '../../src/http/cookie-jar.ts'
import { fetchWhole, type GatewayOptions, httpUpstream, RawClient, rawUpstream, startGateway } from './support.ts'

const kept = { sessionCookies: [parseNamePattern('SID')] }

/** A store whose writes end when the test says so. */
function slowStore() {
  const stored: (readonly KeptCookie[])[] = []
  let end: (error?: Error) => void = () => {}
  let begun = () => {}
  const isAsked = new Promise<void>((resolve) => (begun = resolve))
  const keepCookies: GatewayOptions['keepCookies'] = (_session, _upstream, cookies) => {
    stored.push(cookies.kept)
    begun()
    return new Promise((resolve, reject) => (end = (error) => (error === undefined ? resolve() : reject(error))))
  }
  return { stored, isAsked, keepCookies, end: (error?: Error) => end(error) }
}

async function gatewayBefore(t: TestContext, port: number, options: GatewayOptions = {}) {
  const store = slowStore()
  const gateway = await startGateway(t, port, {
    keepCookies: store.keepCookies,
    ...options,
    upstream: { ...kept, maxConnections: 1, ...options.upstream },
  })
  return { store, gateway }
}

const withCookie = (content: string) =>
  `HTTP/1.1 200 OK\r\nSet-Cookie: SID=1; Path=/\r\nContent-Length: ${content.length}\r\n\r\n${content}`

test('A response waits until its cookies are stored, and arrives complete', async (t) => {
  const content = 'x'.repeat(3_000_000)
  for (const text of [content, 'short', '']) {
    const upstream = await httpUpstream(t, (_, res) => res.setHeader('Set-Cookie', ['SID=1', 'a=2']).end(text))
    const { store, gateway } = await gatewayBefore(t, upstream.port)
    let hasArrived = false
    const arriving = fetchWhole(gateway.origin).then((response) => {
      hasArrived = true
      return response
    })
    await store.isAsked
    for (let turns = 0; turns < 50; turns += 1) await new Promise(setImmediate)
    assert.equal(hasArrived, false)

    store.end()

    const { body, headers } = await arriving
    assert.equal(body, text)
    assert.deepEqual(headers['set-cookie'], ['a=2'])
    assert.deepEqual(
      store.stored.map((cookies) => cookies.map(({ name, value }) => `${name}=${value}`)),
      [['SID=1']],
    )
  }
})

test('A chunked response with trailers waits like any other', async (t) => {
  const port = await rawUpstream(t, (socket) =>
    socket.write(
      'HTTP/1.1 200 OK\r\nSet-Cookie: SID=1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n',
    ),
  )
  const { store, gateway } = await gatewayBefore(t, port)
  const arriving = fetchWhole(gateway.origin)
  await store.isAsked

  store.end()

  const { body, trailers } = await arriving
  assert.deepEqual([body, trailers['x-t']], ['abc', '1'])
})

test('A response that undici reads waits like any other', async (t) => {
  const port = await rawUpstream(t, (socket) => socket.end('HTTP/1.0 200 OK\r\nSet-Cookie: SID=1\r\n\r\nto the end'))
  const { store, gateway } = await gatewayBefore(t, port)
  const arriving = fetchWhole(gateway.origin)
  await store.isAsked

  store.end()

  const { body, headers } = await arriving
  assert.deepEqual([body, headers['set-cookie']], ['to the end', undefined])
})

test('When the cookies cannot be stored, the client gets an error, and the next request is served', async (t) => {
  let requests = 0
  const port = await rawUpstream(t, (socket) =>
    socket.write((requests += 1) === 1 ? withCookie('secret') : 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'),
  )
  const { store, gateway } = await gatewayBefore(t, port)
  const arriving = fetchWhole(gateway.origin)
  await store.isAsked

  store.end(new GatewayError('ERR_STORE_UNAVAILABLE', 'away'))

  const { status, body } = await arriving
  assert.equal(status, 503)
  assert.doesNotMatch(body, /secret/)
  assert.equal((await fetchWhole(gateway.origin)).body, 'ok')
  assert.deepEqual(gateway.upstreams.loads(), [['orders', { waiting: 0, requests: 0, streams: 0 }]])
})

test('A client that leaves while the cookies are being stored leaves nothing behind', async (t) => {
  let requests = 0
  const port = await rawUpstream(t, (socket) =>
    socket.write((requests += 1) === 1 ? withCookie('first') : 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'),
  )
  const { store, gateway } = await gatewayBefore(t, port)
  const client = new RawClient(t, gateway.port).send('GET / HTTP/1.1\r\nHost: orders.example.com\r\n\r\n')
  await store.isAsked

  client.socket.destroy()
  await client.untilClosed()
  store.end()

  assert.equal((await fetchWhole(gateway.origin)).body, 'ok')
  assert.deepEqual(gateway.upstreams.loads(), [['orders', { waiting: 0, requests: 0, streams: 0 }]])
})

test('A kept cookie in an interim response is dropped, and the response does not wait', async (t) => {
  const port = await rawUpstream(t, (socket) =>
    socket.write(
      'HTTP/1.1 103 Early Hints\r\nSet-Cookie: SID=0\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
    ),
  )
  const { store, gateway } = await gatewayBefore(t, port)
  const client = new RawClient(t, gateway.port).send('GET / HTTP/1.1\r\nHost: orders.example.com\r\n\r\n')

  assert.doesNotMatch(await client.until(/ok$/), /SID/)

  assert.deepEqual(store.stored, [])
})

for (const setCookie of [
  'SID=1',
  'sid=1',
  ' SID = 1',
  '=SID=1',
  'SID',
  'SID=1; Domain=evil.example',
  `SID=${'x'.repeat(5000)}`,
])
  test(`A browser never gets ${JSON.stringify(setCookie.slice(0, 30))}`, async (t) => {
    const port = await rawUpstream(t, (socket) =>
      socket.write(`HTTP/1.1 200 OK\r\nset-COOKIE:${setCookie}\r\nContent-Length: 2\r\n\r\nok`),
    )
    const { store, gateway } = await gatewayBefore(t, port, { keepCookies: () => Promise.resolve() })

    const { headers, body } = await fetchWhole(gateway.origin)

    assert.deepEqual([headers['set-cookie'], body, store.stored], [undefined, 'ok', []])
  })
