import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { until } from '../support/until.ts'
import { type GatewayOptions, httpUpstream, linesNamed, RawClient, rawUpstream, startGateway } from './support.ts'

const handshake = (...lines: string[]): string =>
  [
    'GET /socket HTTP/1.1',
    'Host: h',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ...lines,
    '',
    '',
  ].join('\r\n')

const switched = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Own: 1\r\n\r\n'

async function echoing(t: TestContext, options?: GatewayOptions) {
  const upstream = await httpUpstream(t, (_, res) => res.end('no upgrade'))
  const sockets = new WebSocketServer({ server: upstream.server, handleProtocols: () => 'chat' })
  t.after(() => sockets.close())
  const received: string[][] = []
  sockets.on('connection', (socket, req) => {
    received.push(req.rawHeaders)
    socket.on('message', (data, binary) => socket.send(data, { binary }))
  })
  const gateway = await startGateway(t, upstream.port, options)
  const open = async (headers: Record<string, string> = {}): Promise<WebSocket> => {
    const client = new WebSocket(`ws://127.0.0.1:${gateway.port}/socket`, ['chat'], { headers })
    t.after(() => client.terminate())
    await once(client, 'open')
    return client
  }
  return { gateway, received, sockets, open }
}

test('A WebSocket is forwarded, with the identity and without the session cookie', async (t) => {
  const { open, received } = await echoing(t)
  const client = await open({
    Cookie: 'a=1; __Host-gatehouse=secret',
    'X-Remote-User': 'admin',
    X_Remote_User: 'admin',
  })

  client.send('hello')
  assert.equal(String((await once(client, 'message'))[0]), 'hello')
  client.send(Buffer.alloc(5_000_000, 'x'))
  assert.equal(((await once(client, 'message'))[0] as Buffer).length, 5_000_000)

  const [lines = []] = received
  assert.equal(client.protocol, 'chat')
  assert.deepEqual(linesNamed(lines, 'X-Remote-User'), ['jane'])
  assert.deepEqual(linesNamed(lines, 'Cookie'), ['a=1'])
  assert.equal(lines.includes('admin'), false)
})

test('A Close frame of either side is forwarded', async (t) => {
  const { open, sockets, gateway } = await echoing(t)
  for (const side of ['client', 'upstream'] as const) {
    const client = await open()
    const [upstream] = [...sockets.clients].slice(-1) as [WebSocket]
    const closed = [once(client, 'close'), once(upstream, 'close')]
    if (side === 'client') client.close(4001)
    else upstream.close(4001)

    assert.deepEqual(
      (await Promise.all(closed)).map(([code]) => code),
      [4001, 4001],
    )
  }
  while (gateway.live.size > 0) await new Promise(setImmediate)
})

test('When the client or the upstream disconnects, the other side is closed', async (t) => {
  const { open, sockets } = await echoing(t)
  for (const side of ['client', 'upstream'] as const) {
    const client = await open()
    const [upstream] = [...sockets.clients].slice(-1) as [WebSocket]
    const closed = [once(client, 'close'), once(upstream, 'close')]
    if (side === 'client') client.terminate()
    else upstream.terminate()
    await Promise.all(closed)
  }
})

test('Data that either side sends together with the handshake arrives', async (t) => {
  let received = ''
  const upstream = await rawUpstream(t, (socket) => {
    socket.write(switched + 'from upstream')
    socket.on('data', (chunk: Buffer) => {
      received += String(chunk)
      if (received.endsWith('later')) socket.end('bye')
    })
  })
  const { port, records } = await startGateway(t, upstream)
  const client = new RawClient(t, port).send(handshake() + 'early ')

  const text = await client.until(/from upstream/)
  client.send('later')

  assert.ok((await client.untilClosed()).endsWith('from upstreambye'))
  assert.equal(received.replace(/^[^]*\r\n\r\n/, ''), 'early later')
  assert.match(text, /\r\nX-Own: 1\r\n/)
  await until('the tunnel is over', () => records.length === 1)
  assert.equal(records[0]?.bytes, 'from upstreambye'.length)
})

test('The response of a rejected upgrade is forwarded unchanged, and the connection is closed', async (t) => {
  const upstream = await httpUpstream(t, (_, res) => {
    res.writeHead(426, { 'Set-Cookie': ['a=1', 'b=2'], 'X-Hop': '1', Connection: 'X-Hop' }).end('not here')
  })
  const { port, live } = await startGateway(t, upstream.port)
  const client = new RawClient(t, port).send(handshake())

  const text = await client.untilClosed()

  assert.match(text, /^HTTP\/1\.1 426 Upgrade Required\r\n/)
  assert.match(text, /Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n/)
  assert.match(text, /not here/)
  assert.match(text, /\r\nConnection: close\r\n/)
  assert.equal(text.includes('X-Hop'), false)
  assert.equal(live.size, 0)
})

test('An upgrade to an unreachable upstream gets a problem document', async (t) => {
  const { port } = await startGateway(t, 1)

  const text = await new RawClient(t, port).send(handshake()).untilClosed()

  assert.match(text, /^HTTP\/1\.1 502 Bad Gateway\r\n/)
  assert.match(text, /application\/problem\+json/)
})

test('An upgrade without a response gets 504', async (t) => {
  const upstream = await rawUpstream(t, () => {})
  const { port } = await startGateway(t, upstream, { upstream: { responseTimeoutMs: 50 } })

  assert.match(await new RawClient(t, port).send(handshake()).untilClosed(), /^HTTP\/1\.1 504 /)
})

for (const [offer, heads, listed] of [
  ['h2c', /^(?![^]*upgrade)/i, ['websocket', 'h2c']],
  ['TLS/1.0', /^(?![^]*upgrade)/i, ['websocket', 'tls/1.0']],
  ['HTTP/2.0, websocket', /\r\nUpgrade: websocket\r\n/, ['websocket']],
  ['custom/2, WebSocket', /\r\nUpgrade: WebSocket\r\n/, ['websocket']],
  ['custom', /^(?![^]*upgrade)/i, ['websocket']],
  ['Custom/2, websocket', /\r\nUpgrade: Custom\/2\r\n/, ['custom']],
  ['custom/2, custom/3', /\r\nUpgrade: custom\/3\r\n/, ['custom/3']],
  ['custom', /^(?![^]*upgrade)/i, ['custom/3']],
] as const) {
  test(`An unlisted protocol, or one that tunnels requests, is not forwarded: Upgrade: ${offer}, listed ${listed.join()}`, async (t) => {
    let asked = ''
    const upstream = await rawUpstream(t, (socket, head) => {
      asked = head
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain')
    })
    const { port } = await startGateway(t, upstream, { upstream: { upgrade: listed } })
    const client = new RawClient(t, port).send(
      `GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: ${offer}\r\nHTTP2-Settings: AA\r\n\r\n`,
    )

    assert.match(await client.untilClosed(), /^HTTP\/1\.1 200 OK\r\n[^]*plain$/)
    assert.match(asked, heads)
  })
}

test('An Upgrade of an HTTP/1.0 client is not forwarded', async (t) => {
  let asked = ''
  const upstream = await rawUpstream(t, (socket, head) => {
    asked = head
    socket.end(/\r\nupgrade:/i.test(head) ? switched : 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain')
  })
  const { port } = await startGateway(t, upstream)

  const text = await new RawClient(t, port).send(handshake().replace('HTTP/1.1', 'HTTP/1.0')).untilClosed()

  assert.match(text, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nplain$/)
  assert.doesNotMatch(asked, /\r\n(?:upgrade|connection: upgrade)/i)
})

test('A switch to a protocol that was not offered causes a 502', async (t) => {
  const upstream = await rawUpstream(t, (socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n')
  })
  const { port, live } = await startGateway(t, upstream)

  const text = await new RawClient(t, port).send(handshake()).untilClosed()

  assert.match(text, /^HTTP\/1\.1 502 /)
  assert.equal(live.size, 0)
})

test('An upgrade with content is rejected, because the content would become the first bytes of the tunnel', async (t) => {
  const upstream = await rawUpstream(t, () => assert.fail('the upstream was asked'))
  const { port } = await startGateway(t, upstream)

  const text = await new RawClient(t, port).send(handshake('Content-Length: 5') + 'GET /').untilClosed()

  assert.match(text, /^HTTP\/1\.1 400 /)
})

test('A client that disconnects while it waits cancels the upgrade', async (t) => {
  for (const leave of ['end', 'destroy', 'resetAndDestroy'] as const) {
    let closed: Promise<unknown> | undefined
    let arrived = (_: Socket): void => {}
    const arrival = new Promise<Socket>((resolve) => (arrived = resolve))
    const upstream = await rawUpstream(t, (socket) => {
      closed = once(socket, 'close')
      arrived(socket)
    })
    const { port, live } = await startGateway(t, upstream)
    const client = new RawClient(t, port).send(handshake())
    await arrival

    client.socket[leave]()

    await closed
    assert.equal(live.size, 0)
  }
})

test('A tunnel waits for a side that does not read', async (t) => {
  const block = Buffer.alloc(1024 * 1024)
  let upstreamSocket: Socket | undefined
  const upstream = await rawUpstream(t, (socket) => {
    upstreamSocket = socket
    socket.write(switched)
    for (let each = 0; each < 64; each++) socket.write(block)
  })
  const { port } = await startGateway(t, upstream)
  const client = new RawClient(t, port).send(handshake())
  await client.until(/\r\n\r\n/)
  client.socket.pause()

  let left = -1
  while (upstreamSocket?.writableLength !== left) {
    left = upstreamSocket?.writableLength ?? 0
    await new Promise((resolve) => setTimeout(resolve, 150))
  }

  assert.ok(left > 32 * block.length, `${left} bytes are left at the upstream`)
})
