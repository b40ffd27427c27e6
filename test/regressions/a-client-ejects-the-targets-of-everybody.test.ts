import assert from 'node:assert/strict'
import { test } from 'node:test'
import { httpUpstream, RawClient, startGateway } from '../proxy/support.ts'
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
