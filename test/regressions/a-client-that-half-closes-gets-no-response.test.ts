import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { test, type TestContext } from 'node:test'
import { connect } from 'node:tls'
import { httpUpstream, RawClient } from '../proxy/support.ts'
import { startHttp2World } from '../support/http2.ts'
import { until } from '../support/until.ts'
import { startWorld, type World } from '../support/world.ts'

const upstreamSettings = 'rules: [{ path: /*, access: public }]'

async function startGateway(
  t: TestContext,
  respond: (req: IncomingMessage, res: ServerResponse) => void,
): Promise<{ world: World; client: RawClient }> {
  const { port } = await httpUpstream(t, respond)
  const world = await startWorld(t, { upstream: new URL(`http://127.0.0.1:${port}`), upstreamSettings })
  return { world, client: new RawClient(t, Number(new URL(world.url).port)) }
}

const accessLine = (world: World, wanted: string) => world.replicas[0]?.access.find(({ path }) => path === wanted)

for (const isSlow of [false, true])
  test(`A client that half-closes its connection gets its response${isSlow ? ', even one that takes seconds' : ''}`, async (t) => {
    let response: ServerResponse | undefined
    const { client } = await startGateway(t, (req, res) => {
      response = res
      req.resume()
    })
    client.send('GET / HTTP/1.1\r\nHost: h\r\n\r\n').socket.end()
    await until('the request has arrived', () => response !== undefined)
    if (isSlow) await client.until(/^(?:HTTP\/1\.1 102 Processing\r\n\r\n){8}/)
    response?.end('x'.repeat(500_000))

    assert.match(await client.untilClosed(), /HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nx{500000}$/)
  })

// docs/security.md and docs/listener.md say so.
test('A client that half-closes its connection over TLS gets nothing', async (t) => {
  let gone: Promise<unknown> | undefined
  const { url } = await startHttp2World(t, (_req, res) => void (gone = once(res, 'close')))
  const socket = connect({ port: Number(new URL(url).port), rejectUnauthorized: false })
  let received = 0
  socket.on('data', (bytes: Buffer) => (received += bytes.length))
  socket.write('GET /public/slow HTTP/1.1\r\nHost: h\r\n\r\n')
  await until('the request has arrived', () => gone !== undefined)
  const closed = once(socket, 'close')
  socket.end()
  await Promise.all([gone, closed])

  assert.equal(received, 0)
})

test('Pipelined requests before a half-close all get their responses', async (t) => {
  const { client } = await startGateway(t, (req, res) => void res.end(`[${req.url}]`))
  client.send('GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n').socket.end()

  const text = await client.untilClosed()
  assert.deepEqual(
    [...text.matchAll(/\[(\/\d)\]/g)].map(([, path]) => path),
    ['/1', '/2'],
  )
})

test('The gateway notices that a client has disconnected before the application has responded', async (t) => {
  let gone: Promise<unknown> | undefined
  const { world, client } = await startGateway(t, (_req, res) => void (gone = once(res, 'close')))
  client.send('GET /slow HTTP/1.1\r\nHost: h\r\n\r\n')
  await until('the request has arrived', () => gone !== undefined)
  client.socket.destroy()
  await gone
  await until('it has its line', () => accessLine(world, '/slow') !== undefined)
  assert.equal(accessLine(world, '/slow')?.['aborted'], true)
})

test('A quiet event stream ends when its client half-closes the connection', async (t) => {
  let gone: Promise<unknown> | undefined
  const { client } = await startGateway(t, (_req, res) => {
    gone = once(res, 'close')
    res.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n')
  })
  client.send('GET /events HTTP/1.1\r\nHost: h\r\n\r\n')
  await client.until(/data: 1/)
  client.socket.end()
  await Promise.all([client.untilClosed(), gone])
})

test('An event stream that is not silent stays open when its client half-closes the connection', async (t) => {
  let response: ServerResponse | undefined
  const { client } = await startGateway(t, (_req, res) => {
    response = res.writeHead(200, { 'Content-Type': 'text/event-stream' })
    res.write('data: 1\n\n')
  })
  client.send('GET /events HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n')
  await client.until(/data: 1/)
  client.socket.end()
  // The next event follows as soon as the client has the last one, for longer than a silence may
  // take.
  for (const end = performance.now() + 1_000; performance.now() < end;) {
    response?.write('data: 2\n\n')
    await Promise.race([once(client.socket, 'data'), client.untilClosed()])
  }
  response?.end('data: 3\n\n')

  assert.match(await client.untilClosed(), /data: 3/)
})
