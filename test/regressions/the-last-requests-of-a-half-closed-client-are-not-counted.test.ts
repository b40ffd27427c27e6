import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { httpUpstream, RawClient } from '../proxy/support.ts'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

const unusual = `GET /waiting HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nX: ${'x'.repeat(1000)}\r\n\r\n`
const count = 15

test('The memory budget counts requests that wait behind others, also of a client that has half-closed', async (t) => {
  const held: ServerResponse[] = []
  const { port } = await httpUpstream(t, (_req, res) => void held.push(res))
  const world = await startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings: 'rules: [{ path: /*, access: public }]',
  })
  const client = new RawClient(t, Number(new URL(world.url).port))
  client.send('GET /first HTTP/1.1\r\nHost: h\r\n\r\n' + unusual.repeat(count))
  client.socket.end()
  await until('the first request has arrived', () => held.length === 1)
  // The gateway has read the FIN when it sends a probe.
  await client.until(/102 Processing/)

  held[0]?.end('the first response')
  await until('the second request has arrived', () => held.length === 2)

  const counted = () => Number(world.replicas[0]?.metrics.read('gatehouse_buffered_bytes')?.cells[0]?.values[0])
  // Beside the connection itself.
  await until('all are counted', () => counted() > 12 * 1024 + count * 1000)
})
