import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { RawClient, rawUpstream, startGateway } from '../proxy/support.ts'
import { until } from '../support/until.ts'

const hint = `HTTP/1.1 103 Early Hints\r\nLink: </${'x'.repeat(8_000)}>; rel=preload\r\n\r\n`

test('The hints of an upstream do not wait in the memory for a client that does not read', async (t) => {
  // More than the kernel buffers.
  const port = await rawUpstream(t, (socket) => {
    for (let sent = 0; sent < 30; sent += 1) socket.write(hint.repeat(100))
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlast')
  })
  const gateway = await startGateway(t, port)
  let response: ServerResponse | undefined
  gateway.server.once('request', (_, res) => (response = res))
  const client = new RawClient(t, gateway.port)
  client.socket.pause()
  client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')

  await until('the final response has arrived', () => response?.headersSent === true)
  const { writableLength } = (response as ServerResponse).socket as Socket
  assert.ok(writableLength < 256 * 1024, `${writableLength} bytes wait for the client`)

  client.socket.resume()
  await until('the client has the final response', () => client.received.endsWith('\r\n\r\nlast'))
})
