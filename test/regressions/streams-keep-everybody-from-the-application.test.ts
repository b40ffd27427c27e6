import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test, type TestContext } from 'node:test'
import { fetchWhole, httpUpstream, RawClient, rawUpstream, startGateway } from '../proxy/support.ts'
import { replacePauses } from '../support/pauses.ts'
import { until } from '../support/until.ts'

const switching =
  'GET /socket HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'

/** Never ends the response to `/events` and never begins the one to `/poll`. */
async function startApplication(t: TestContext) {
  const open: ServerResponse[] = []
  const { port, server } = await httpUpstream(t, (req, res) => {
    if (req.url === '/short') return void res.end('served')
    open.push(res)
    if (req.url === '/events') res.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n')
  })
  server.on('upgrade', (_, socket) => {
    socket
      .on('error', () => {})
      .on('end', () => socket.end())
      .resume()
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  })
  return { port, open }
}

function ask(t: TestContext, port: number, path: string): RawClient {
  return new RawClient(t, port).send(`GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`)
}

test('As many event streams as there are connections do not delay a short request', async (t) => {
  const application = await startApplication(t)
  const { origin, port } = await startGateway(t, application.port, { upstream: { maxConnections: 4 } })
  for (let each = 0; each < 8; each += 1) await ask(t, port, '/events').until(/data: 1/)

  assert.equal((await fetchWhole(origin, { path: '/short' })).body, 'served')
})

test('As many long polls as there are connections make room for a short request after some seconds', async (t) => {
  replacePauses(t, { findLongExchangesMs: 20 })
  const application = await startApplication(t)
  const { origin, port, records } = await startGateway(t, application.port, {
    upstream: { maxConnections: 2, responseTimeoutMs: 600_000 },
  })
  ask(t, port, '/poll')
  ask(t, port, '/poll')
  await until('the application has both', () => application.open.length === 2)

  assert.equal((await fetchWhole(origin, { path: '/short' })).body, 'served')
  await until('it has its record', () => records.length === 1)
  assert.ok((records[0]?.waitedMs ?? 0) > 0)
})

test('A slow upload also makes room for a short request', async (t) => {
  replacePauses(t, { findLongExchangesMs: 20 })
  const application = await startApplication(t)
  const { origin, port } = await startGateway(t, application.port, {
    upstream: { maxConnections: 1, responseTimeoutMs: 600_000 },
  })
  new RawClient(t, port).send('POST /poll HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nx')
  await until('the application has it', () => application.open.length === 1)

  assert.equal((await fetchWhole(origin, { path: '/short' })).body, 'served')
})

for (const [what, request, begins] of [
  ['WebSocket', switching, / 101 /],
  ['event stream', 'GET /events HTTP/1.1\r\nHost: h\r\n\r\n', /data: 1/],
] as const)
  test(`A client with the maximum number of streams gets 503 for one more ${what}, until one ends`, async (t) => {
    const application = await startApplication(t)
    const { origin, port, logged } = await startGateway(t, application.port, { upstream: { maxStreamsPerClient: 2 } })
    const [first] = [new RawClient(t, port).send(request), new RawClient(t, port).send(request)]
    await first.until(begins)
    const more = async () => {
      const client = new RawClient(t, port).send(request)
      await client.until(/^HTTP\/1\.1 \d+[^]*\r\n\r\n/)
      return client.received.split(' ')[1]
    }
    await until('both are open', async () => (await more()) === '503')

    assert.match(String(logged.find(({ message }) => message === 'upstream.busy')?.fields['hint']), /max_streams/)
    assert.equal((await fetchWhole(origin, { path: '/short' })).body, 'served')
    first.socket.destroy()
    await until('there is room for another one', async () => (await more()) !== '503')
  })

test('The log does not blame the application when a request gets no connection within response_timeout', async (t) => {
  const application = await startApplication(t)
  const { origin, logged, records } = await startGateway(t, application.port, {
    upstream: { maxConnections: 1, responseTimeoutMs: 1_000 },
  })
  const first = fetchWhole(origin, { path: '/poll' })
  await until('the application has it', () => application.open.length === 1)

  const second = await fetchWhole(origin, { path: '/poll' })

  assert.deepEqual([(await first).status, second.status], [504, 503])
  const busy = logged.filter(({ message }) => message === 'upstream.busy')
  // A process that is late may report the long wait too.
  assert.ok(Number(busy.at(-1)?.fields['waited_ms']) > 0)
  assert.deepEqual(
    records.map(({ code }) => code),
    ['ERR_UPSTREAM_TIMEOUT', 'ERR_UPSTREAM_BUSY'],
  )
})

test('The time that a request waits for a connection is part of response_timeout', async (t) => {
  const sent: string[] = []
  const port = await rawUpstream(t, (socket, head) => {
    const path = head.split(' ')[1] ?? ''
    sent.push(path)
    if (path === '/first') setTimeout(() => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'), 1_200)
  })
  const { origin } = await startGateway(t, port, { upstream: { maxConnections: 1, responseTimeoutMs: 2_000 } })
  const first = fetchWhole(origin, { path: '/first' })
  await until('the application has it', () => sent.length === 1)

  // The request waits for more than half of the time, so the application has less than half.
  const second = await fetchWhole(origin, { path: '/second' })

  assert.deepEqual([(await first).status, second.status], [200, 503])
})
