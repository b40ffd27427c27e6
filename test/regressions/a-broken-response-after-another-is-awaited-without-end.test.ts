import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { RawClient, rawUpstream, startGateway } from '../proxy/support.ts'
import { until } from '../support/until.ts'

test('A response that breaks off behind another response ends the connection after that one', async (t) => {
  let first: Socket | undefined
  const upstreamPort = await rawUpstream(t, (socket, head) => {
    if (head.startsWith('GET /broken')) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbroken')
    else first = socket
  })
  const { port } = await startGateway(t, upstreamPort)
  const client = new RawClient(t, port)

  client.send('GET /whole HTTP/1.1\r\nHost: h\r\n\r\nGET /broken HTTP/1.1\r\nHost: h\r\n\r\n')
  await until('the first request has arrived', () => first !== undefined)
  first?.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole')

  assert.match(await client.untilClosed(), /whole.*Content-Length: 9\r\n.*broken$/s)
})
