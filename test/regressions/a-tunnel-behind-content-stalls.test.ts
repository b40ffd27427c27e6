import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { httpUpstream } from '../proxy/support.ts'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

const content = 'y'.repeat(30_000)
const upload = `POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: ${content.length}\r\n\r\n${content}`
const websocket = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhl'
/** A masked frame (RFC 6455 §5.2) whose content is not masked, because the mask is 0. */
const frame = Buffer.concat([Buffer.from('82fe9c4000000000', 'hex'), Buffer.alloc(40_000, 'x')])

test('A WebSocket that a client opens behind an upload carries all messages, without the plain path', async (t) => {
  const { port, server } = await httpUpstream(t, (req, res) => void req.resume().on('end', () => res.end()))
  let received = 0
  server.on('upgrade', (_req, socket: Socket, head: Buffer) => {
    received += head.length
    socket.on('error', () => {}).on('data', (part: Buffer) => (received += part.length))
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  })
  const world = await startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings: 'rules: [{ path: /*, access: public }]',
    listen: (address) => `{ address: "${address}", plain_path: false }`,
  })
  const socket = connect(Number(new URL(world.url).port), '127.0.0.1')
  t.after(() => socket.destroy())

  const head = Buffer.from(`${upload}GET /ws HTTP/1.1\r\nHost: h\r\n${websocket}\r\n\r\n`)
  socket.resume().write(Buffer.concat([head, frame]))

  await until('all bytes have arrived', () => received === frame.length)
})
