import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { fetchWhole, httpUpstream, jane, RawClient, rawUpstream, startGateway } from './support.ts'

const mebibyte = 1024 * 1024

/**
 * Returns how much was written to a socket when the peer has stopped reading and the buffers of
 * both kernels are full.
 */
async function stalledAt(socket: Socket): Promise<number> {
  for (let written = -1; socket.bytesWritten - socket.writableLength !== written;) {
    written = socket.bytesWritten - socket.writableLength
    await new Promise((resolve) => setTimeout(resolve, 150))
  }
  return socket.bytesWritten - socket.writableLength
}

/** Writes `size` bytes as fast as the peer reads them. */
function pour(socket: Socket, size: number): void {
  const block = Buffer.alloc(64 * 1024, 'x')
  let left = size
  const more = (): void => {
    while (left > 0 && !socket.destroyed) {
      left -= block.length
      if (!socket.write(block)) {
        socket.once('drain', more)
        return
      }
    }
  }
  more()
}

test('A download waits for a client that does not read, and arrives completely when it reads', async (t) => {
  const size = 64 * mebibyte
  let socket: Socket | undefined
  const upstream = await rawUpstream(t, (each) => {
    socket = each
    each.write(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`)
    pour(each, size)
  })
  const { origin } = await startGateway(t, upstream)
  const req = request(origin, { agent: false }).end()
  const [res] = (await once(req, 'response')) as [IncomingMessage]

  const taken = await stalledAt(socket as unknown as Socket)
  let received = 0
  for await (const chunk of res) received += (chunk as Buffer).length

  assert.ok(taken < 24 * mebibyte, `${taken} bytes were taken from the upstream`)
  assert.equal(received, size)
})

test('An upload waits for an upstream that does not read, and arrives completely when it reads', async (t) => {
  const size = 64 * mebibyte
  let upload: IncomingMessage | undefined
  const upstream = await httpUpstream(t, (req, res) => {
    upload = req
    req.on('end', () => res.end('ok'))
  })
  const { port } = await startGateway(t, upstream.port)
  const client = new RawClient(t, port).send(`POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ${size}\r\n\r\n`)
  const arrived = once(upstream.server, 'request')
  pour(client.socket, size)
  await arrived

  const taken = await stalledAt(client.socket)
  let received = 0
  upload?.on('data', (chunk: Buffer) => (received += chunk.length))
  await client.until(/\r\n\r\n/)

  assert.ok(taken < 24 * mebibyte, `${taken} bytes were taken from the client`)
  assert.equal(received, size)
})

test('A chunked upload of unknown length arrives', async (t) => {
  const upstream = await httpUpstream(t, async (req, res) => {
    let received = 0
    for await (const chunk of req) received += (chunk as Buffer).length
    res.end(`${req.headers['transfer-encoding']} ${received}`)
  })
  const { origin } = await startGateway(t, upstream.port)
  const req = request(origin, { method: 'PUT', agent: false })
  for (let each = 0; each < 100; each++) if (!req.write(Buffer.alloc(100_000))) await once(req, 'drain')
  req.end()

  const [res] = (await once(req, 'response')) as [IncomingMessage]

  assert.equal(String(await res.toArray()), 'chunked 10000000')
})

test('A response may begin before the request is complete, and both continue', async (t) => {
  const upstream = await httpUpstream(t, (req, res) => {
    res.flushHeaders()
    req.pipe(res)
  })
  const { origin } = await startGateway(t, upstream.port)
  const req = request(origin, { method: 'POST', agent: false })
  req.write('one')
  const [res] = (await once(req, 'response')) as [IncomingMessage]

  assert.equal(String((await once(res, 'data'))[0]), 'one')
  req.write('two')
  assert.equal(String((await once(res, 'data'))[0]), 'two')
  req.end()
  await once(res, 'end')
})

/** An upstream with an event stream, and a client that has received the first event. */
async function listeningClient(t: TestContext, idleTimeoutMs = 10_000) {
  let send = (_: string): unknown => undefined
  let closed: Promise<unknown> | undefined
  const upstream = await httpUpstream(t, (_, res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' }).flushHeaders()
    send = (event) => res.write(`data: ${event}\n\n`)
    closed = once(res, 'close')
  })
  const gateway = await startGateway(t, upstream.port, { upstream: { idleTimeoutMs } })
  const req = request(gateway.origin, { agent: false }).end()
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  return { gateway, res, send: (event: string) => send(event), closed: () => closed }
}

test('Events arrive one by one, and a long pause does not end the stream', async (t) => {
  const { res, send } = await listeningClient(t, 50)

  for (const event of ['1', '2']) {
    const arrival = once(res, 'data')
    send(event)
    assert.equal(String((await arrival)[0]), `data: ${event}\n\n`)
    // The pause is four times as long as any other response may pause.
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  assert.equal(res.closed, false)
})

test('The end of a session closes its event streams on both sides', async (t) => {
  const { gateway, res, closed } = await listeningClient(t)
  const failed = once(res, 'error')
  assert.deepEqual([...gateway.live.sessions()], [jane])

  gateway.live.closeAll([jane])

  await failed
  await closed()
  assert.equal(gateway.live.size, 0)
})

test('The end of a session aborts its downloads, even if the client does not read', async (t) => {
  let closed: Promise<unknown> | undefined
  const upstream = await rawUpstream(t, (socket) => {
    closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${64 * mebibyte}\r\n\r\n`)
    pour(socket, 64 * mebibyte)
  })
  const { port, live } = await startGateway(t, upstream)
  const client = new RawClient(t, port).send('GET / HTTP/1.1\r\nHost: h\r\n\r\n')
  await once(client.socket, 'data')
  client.socket.pause()

  live.closeAll([jane])
  client.socket.resume()

  await closed
  await client.untilClosed()
  assert.equal(live.size, 0)
})

test('The end of a session aborts its uploads, and the access log has the reason', async (t) => {
  let closed: Promise<unknown> | undefined
  let arrived = (): void => {}
  const arrival = new Promise<void>((resolve) => (arrived = resolve))
  const upstream = await rawUpstream(t, (socket) => {
    closed = once(socket, 'close')
    arrived()
  })
  const { port, live } = await startGateway(t, upstream)
  const client = new RawClient(t, port).send('POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99\r\n\r\n12345')
  await arrival

  live.closeAll([jane])

  await closed
  assert.match(await client.untilClosed(), /^HTTP\/1\.1 401 /)
  assert.equal(live.size, 0)
})

test('A finished request leaves nothing open, and is not recorded as aborted', async (t) => {
  const upstream = await httpUpstream(t, (req, res) => req.resume().on('end', () => res.end('ok')))
  const { origin, live, records, server } = await startGateway(t, upstream.port)
  const closed = new Promise((resolve) => server.once('request', (_, res) => res.once('close', resolve)))

  await fetchWhole(origin, { method: 'POST', body: 'x' })
  await closed

  assert.equal(live.size, 0)
  assert.equal(records[0]?.aborted, false)
})

test('A request without a session is not aborted when a session ends', async (t) => {
  const upstream = await httpUpstream(t, (_, res) => res.end('ok'))
  const { origin, live, server } = await startGateway(t, upstream.port, {
    pass: { session: undefined, caching: 'anybody' },
  })
  let open: number | undefined
  server.once('request', () => (open = live.size))

  const { headers } = await fetchWhole(origin)

  assert.equal(open, 0)
  assert.equal(headers['cache-control'], undefined)
})
