import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { test } from 'node:test'
import { IdleConnections } from '../../src/listener/idle-connections.ts'

/** More than the operating system buffers. */
const size = 12_000_000

test('Closing idle connections does not truncate the response to a client that reads slowly', async (t) => {
  const responses: ServerResponse[] = []
  const server = createServer((req, res) => {
    idle.keepFor(res)
    responses.push(res.setHeader('Content-Length', req.url === '/large' ? size : 5))
    res.end('x'.repeat(req.url === '/large' ? size : 5))
  })
  const idle = new IdleConnections(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const open = (path: string): Socket => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').pause()
    t.after(() => socket.destroy())
    socket.write(`GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`)
    return socket
  }
  const [small, large] = [open('/small'), open('/large')]
  await Promise.all([once(small, 'readable'), once(large, 'readable')])
  assert.equal(responses.filter(({ writableFinished }) => !writableFinished).length, 1)

  idle.close()
  // It closes idle connections too.
  const closed = once(server.close(), 'close')

  await once(small.resume(), 'close')
  let received = 0
  large.on('data', (part: Buffer) => (received += part.length)).resume()
  await once(responses.find(({ req }) => req.url === '/large') as ServerResponse, 'close')
  idle.close()
  await Promise.all([once(large, 'close'), closed])
  assert.ok(received > size, `${received} bytes`)
})
