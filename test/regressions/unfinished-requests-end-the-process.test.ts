// Slow: 5 s, thousands of clients in little memory
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { httpUpstream } from '../proxy/support.ts'
import { issueCertificates } from '../support/certificates.ts'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

const budgetBytes = 3 * 1024 * 1024
const fields = (bytes: number, length: number) => {
  const value = 'v'.repeat(length)
  return Array.from({ length: Math.ceil(bytes / (length + 8)) }, (_, at) => `X-${at % 100}: ${value}\r\n`).join('')
}
const head = (line: string, more: string) => `${line} HTTP/1.1\r\nHost: h\r\n${more}`
const form = 'Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 16000\r\n\r\n'

/** What strangers send; the gateway never gets the end, or waits for the application. */
const floods: Readonly<Record<string, readonly string[]>> = {
  'heads of long fields': [head('GET /', fields(28_000, 900))],
  'heads of short fields': [head('GET /', fields(28_000, 3))],
  'heads that Node.js does not read': [head('GET /', fields(14_000, 900))],
  'heads behind an unusual request': [head('OPTIONS /', '\r\n'), head('GET /', fields(28_000, 900))],
  forms: [head('POST /.gatehouse/backchannel-logout', form), 'x'.repeat(15_000)],
  'forms with large heads': [head('POST /.gatehouse/backchannel-logout', fields(28_000, 900) + form)],
  'requests with large heads': [head('GET /slow', `${fields(15_000, 900)}\r\n`)],
  'upgrades with large heads': [
    head('GET /slow', `${fields(28_000, 900)}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`),
  ],
  uploads: [head('POST /slow', 'Content-Length: 300000\r\n\r\n') + 'x'.repeat(200_000)],
  'chunked uploads': [head('POST /slow', 'Transfer-Encoding: chunked\r\n\r\n40000\r\n') + 'x'.repeat(200_000)],
}

async function startGateway(t: TestContext, isTls: boolean, plainPath: boolean) {
  const { server, port } = await httpUpstream(t, (req, res) => {
    if (req.url !== '/slow') res.end('here')
  })
  server.on('upgrade', (_req, socket) => socket.on('error', () => {}))
  const { server: files } = issueCertificates()
  const tls = isTls ? `, tls: { cert_file: ${files.cert}, key_file: ${files.key} }` : ''
  return startWorld(t, {
    budgetBytes,
    upstream: new URL(`http://127.0.0.1:${port}`),
    // Strangers wait for the few connections. The signed-in person has those of another upstream.
    upstreamSettings: `max_connections: 8
    max_streams: 8
    rules: [{ path: /*, access: public }]
  other:
    url: http://127.0.0.1:${port}
    path: /orders
    headers: { X-Remote-User: sub }`,
    listen: (address) => `{ address: "${address}", plain_path: ${plainPath}${tls} }`,
  })
}

for (const [over, isTls] of [
  ['http', false],
  ['https', true],
] as const)
  for (const [reader, plainPath] of [
    ['the gateway', true],
    ['Node.js', false],
  ] as const)
    test(`Unfinished and waiting requests are held up to the budget, over ${over}, read by ${reader}`, async (t) => {
      const world = await startGateway(t, isTls, plainPath)
      const [replica] = world.replicas
      const { port } = world.replicas[0]?.gateway.address ?? { port: 0 }
      const url = `http${isTls ? 's' : ''}://127.0.0.1:${port}`
      const jane = world.browser()
      if (!isTls) assert.equal((await jane.get(`${url}/orders`)).status, 200)
      const gauge = () =>
        replica?.metrics.collect().find(({ name }) => name === 'gatehouse_buffered_bytes')?.cells[0]?.values[0]

      for (const [kind, parts] of Object.entries(floods)) {
        let closed = 0
        const strangers = Array.from({ length: isTls ? 50 : 150 }, () => {
          const target = { port, host: '127.0.0.1', localAddress: '127.9.0.1' }
          const socket: Socket = isTls ? connectTls({ ...target, rejectUnauthorized: false }) : connect(target)
          socket.on('error', () => {}).once('close', () => (closed += 1))
          t.after(() => socket.destroy())
          for (const part of parts) socket.write(part, 'latin1')
          return socket.resume()
        })
        await until(`connections with ${kind} are closed`, () => closed > 0)
        assert.ok((gauge() ?? Infinity) <= budgetBytes, `${kind}: ${gauge()} bytes`)
        if (!isTls) {
          assert.equal((await jane.fetch(`${url}/orders`)).status, 200, kind)
          assert.equal((await world.postLogoutToken({ logout_token: 'a.b.c' })).status, 400, kind)
        }
        for (const socket of strangers) socket.destroy()
        await until('all are closed', () => closed === strangers.length)
      }
      assert.deepEqual(
        new Set(
          replica?.log.filter(({ message }) => message === 'limit.reached').map(({ fields: { limit } }) => limit),
        ),
        new Set(['memory']),
      )
    })
