import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { httpUpstream, RawClient, rawUpstream, startGateway } from '../proxy/support.ts'
import { grpcClient, startGrpcServer } from '../support/grpc.ts'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

test('Clients that do not read responses eject no target', async (t) => {
  const { port } = await httpUpstream(t, (_, res) => {
    res.writeHead(200, { 'Content-Length': 1e9 })
    const write = () => {
      while (res.write(Buffer.alloc(65536)));
    }
    res.on('drain', write)
    write()
  })
  const eject = { failures: 1, statuses: [], forMs: 60_000, atMostMs: 60_000 }
  const {
    port: gatewayPort,
    records,
    logged,
  } = await startGateway(t, port, {
    upstream: { eject, idleTimeoutMs: 200, targets: [port, 1].map(target) },
  })
  const client = new RawClient(t, gatewayPort).send('GET / HTTP/1.1\r\nHost: orders.example.com\r\n\r\n')
  await client.until(/200 OK/)
  client.socket.pause()
  await until('the gateway has given up', () => records.length === 1)
  assert.deepEqual(
    logged.filter(({ message }) => message === 'upstream.target_ejected'),
    [],
  )
})

const target = (port: number) => ({
  ...{ url: new URL(`http://127.0.0.1:${port}`), socketPath: undefined, weight: 1, backup: false },
})

test('Calls whose clients hardly wait eject no target', async (t) => {
  const server = await startGrpcServer(t)
  const { url, replicas } = await startWorld(t, {
    listen: (address) => `{ address: "${address}", h2c: true }`,
    targets: `[${server.url.origin}, http://127.0.0.1:1]`,
    upstreamSettings: 'protocol: h2c\n    eject: { failures: 1 }\n    rules: [{ path: /*, access: public }]',
  })
  for (let call = 0; call < 3; call += 1) {
    const { status } = await grpcClient(t, url).unary('wait', { deadline: Date.now() + 100 })
    assert.equal(status.code, 4)
  }
  const messages = replicas[0]?.log.filter(
    ({ message, fields }) => message === 'upstream.target_ejected' && String(fields['target']) === server.url.origin,
  )
  assert.deepEqual(messages, [])
})

/** Applications that do not wait for a client that has stopped in the middle of its upload. */
const impatient = {
  'closes the connection': (t) => rawUpstream(t, (socket) => socket.destroy()),
  'closes the connection over HTTP/2': (t) => http2Upstream(t),
  'responds with a status of eject.statuses': (t) =>
    rawUpstream(t, (socket) => socket.end('HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n')),
  'pauses its response': (t) =>
    rawUpstream(t, (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhal')),
} satisfies Record<string, (t: TestContext) => Promise<number>>

async function http2Upstream(t: TestContext): Promise<number> {
  const server = createHttp2Server()
  server.on('stream', (stream) => {
    stream.on('error', () => {})
    stream.session?.destroy()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return (server.address() as AddressInfo).port
}

for (const [what, start] of Object.entries(impatient))
  test(`A client that stops its uploads ejects no target that ${what}`, async (t) => {
    const ports = [await start(t), await start(t)]
    const { port, upstreams, records, logged } = await startGateway(t, ports[0] as number, {
      upstream: {
        ...{ eject: { failures: 1, statuses: [503], forMs: 60_000, atMostMs: 60_000 }, idleTimeoutMs: 100 },
        ...{ targets: ports.map(target), protocol: what.endsWith('HTTP/2') ? 'h2c' : 'http1' },
      },
    })
    for (let upload = 1; upload <= 8; upload += 1) {
      new RawClient(t, port).send('POST / HTTP/1.1\r\nHost: orders.example.com\r\nContent-Length: 100\r\n\r\nhalf')
      await until('the upload has failed', () => records.length === upload)
    }
    assert.deepEqual(
      logged.filter(({ message }) => message === 'upstream.target_ejected'),
      [],
    )
    const states = [...upstreams.targets()].flatMap(([, each]) => each.map(({ state }) => state))
    assert.deepEqual(states, ['up', 'up'])
  })

test('A target whose connections cannot be opened is ejected, also by uploads that have stopped', async (t) => {
  const { port, records, logged } = await startGateway(t, 1, {
    upstream: { eject: { failures: 1, statuses: [], forMs: 60_000, atMostMs: 60_000 }, targets: [1, 2].map(target) },
  })
  new RawClient(t, port).send('POST / HTTP/1.1\r\nHost: orders.example.com\r\nContent-Length: 100\r\n\r\nhalf')
  await until('the upload has failed', () => records.length === 1)

  assert.equal(logged.filter(({ message }) => message === 'upstream.target_ejected').length, 2)
})
