import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { serveHalfClosedConnections } from '../../src/listener/half-closed.ts'
import { httpUpstream, RawClient } from '../proxy/support.ts'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

const rules = 'rules: [{ path: /*, access: public }]'

/** A server whose responses the test sends. Time stands still until the test moves it. */
async function start(t: TestContext) {
  const responses: ServerResponse[] = []
  const server = createServer((_req, res) => void responses.push(res))
  serveHalfClosedConnections(server, () => responses.at(-1))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { port } = server.address() as AddressInfo
  const client = new RawClient(t, port).send('GET / HTTP/1.1\r\nHost: h\r\n\r\n')
  await until('the request has arrived', () => responses.length === 1)
  return { client, res: responses[0] as ServerResponse }
}

const probesIn = (text: string) => text.split('HTTP/1.1 102 Processing').length - 1

test('A client that has half-closed its connection is probed at once, three times in 100 ms, then less often', async (t) => {
  const { client } = await start(t)
  client.socket.end()
  await until('it is probed', () => probesIn(client.received) === 1)
  for (const [ms, probes] of [
    [20, 2],
    [40, 3],
    [80, 4],
    [160, 5],
    [240, 6],
    [240, 7],
  ] as const) {
    t.mock.timers.tick(ms)
    await until(`${probes} probes`, () => probesIn(client.received) === probes)
  }
})

test('A client that has gone is noticed by the second probe, 20 ms after its FIN', async (t) => {
  const { client, res } = await start(t)
  const gone = once(res, 'close')
  const ended = once(res.socket as NonNullable<ServerResponse['socket']>, 'end')
  client.socket.destroy()
  await ended
  t.mock.timers.tick(20)
  await gone
})

test('An event stream that is silent ends within a second of the FIN of its client', async (t) => {
  const { client, res } = await start(t)
  res.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n')
  await client.until(/data: 1/)
  const ended = once(res.socket as NonNullable<ServerResponse['socket']>, 'end')
  const gone = once(res, 'close')
  client.socket.end()
  await ended
  for (let ms = 0; ms < 1_000; ms += 20) t.mock.timers.tick(20)
  await gone
})

test('With HTTP/1.0, a FIN before the response ends the request', async (t) => {
  let gone: Promise<unknown> | undefined
  const { port } = await httpUpstream(t, (_req, res) => void (gone = once(res, 'close')))
  const world = await startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings: `${rules}\n    response_timeout: 10m`,
  })
  const client = new RawClient(t, Number(new URL(world.url).port)).send('GET /slow HTTP/1.0\r\nHost: h\r\n\r\n')
  await until('the request has arrived', () => gone !== undefined)
  client.socket.end()
  await gone
  assert.equal(await client.untilClosed(), '')
})

test('A request that waits for a connection to the application is not begun when its client has sent a FIN', async (t) => {
  const seen: string[] = []
  let first: ServerResponse | undefined
  const { port } = await httpUpstream(t, (req, res) => {
    seen.push(req.url ?? '')
    if (req.url === '/first') first = res
    else res.end()
  })
  const world = await startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings: `${rules}\n    max_connections: 1`,
  })
  const client = (path: string) =>
    new RawClient(t, Number(new URL(world.url).port)).send(`GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`)
  client('/first')
  await until('the first request has arrived', () => first !== undefined)
  const others = [client('/waiting'), client('/waiting')]
  for (const { socket } of others) socket.end()
  // The gateway has read their FIN when it sends a probe.
  for (const other of others) await other.until(/102 Processing/)
  const last = client('/last')
  first?.end()
  for (const other of others) assert.match(await other.untilClosed(), /HTTP\/1\.1 503 [^]*$/)
  await last.until(/^HTTP\/1\.1 200 /)
  assert.deepEqual(seen, ['/first', '/last'])
})
