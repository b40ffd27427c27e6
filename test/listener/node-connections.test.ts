import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { test } from 'node:test'
import { NodeConnections } from '../../src/listener/node-connections.ts'
import { RawClient } from '../proxy/support.ts'

test('A connection awaits a head while none of its requests is under way', async (t) => {
  const connections = new NodeConnections(() => {})
  const server = createServer().listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const accepted = once(server, 'connection') as Promise<[Socket]>
  const requested = once(server, 'request') as Promise<[IncomingMessage, ServerResponse]>
  const client = new RawClient(t, (server.address() as AddressInfo).port)
  const [socket] = await accepted
  connections.serve(socket)
  assert.equal(connections.awaitsHead(socket), true)

  client.send('GET / HTTP/1.1\r\nHost: h\r\n\r\n')
  const [req, res] = await requested
  connections.begin(req, res)
  assert.equal(connections.awaitsHead(socket), false)

  await once(res.end(), 'close')
  assert.equal(connections.awaitsHead(socket), true)
})
