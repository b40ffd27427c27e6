import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { test } from 'node:test'
import { singleFields } from '../../src/core/header-fields.ts'
import { arrived } from '../../src/explain/request.ts'

// Node rejects a second `Content-Length`, and a second `Host` is not admitted.
const repeated = [...singleFields].filter((name) => name !== 'content-length' && name !== 'host')

test('explain reads a field that a client sends twice as the gateway does', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const names = [...repeated, 'accept', 'x-team', 'origin', 'cookie']
  const fields = names.flatMap((name): [string, string][] => [
    [name, 'one'],
    [name, 'two'],
  ])
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  t.after(() => socket.destroy())
  const received = once(server, 'request')

  socket.write(`GET / HTTP/1.1\r\nhost: a\r\n${fields.map((field) => field.join(': ')).join('\r\n')}\r\n\r\n`)
  const [{ headers }] = (await received) as [IncomingMessage]

  const rawHeaders = ['host', 'a', ...fields.flat()]
  const explained = arrived({ method: 'GET', target: '/', rawHeaders, peer: undefined }, false)
  assert.deepEqual({ ...explained.headers }, { ...headers })
})
