import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rawUpstream } from '../proxy/support.ts'
import { request, startHttp2World } from '../support/http2.ts'

test('Over HTTP/2 too, a method that HTTP/1.1 does not know reaches no application', async (t) => {
  const received: string[] = []
  const port = await rawUpstream(t, (socket, head) => {
    received.push(head.slice(0, head.indexOf(' ')))
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
  })
  const upstream = new URL(`http://127.0.0.1:${port}`)
  const session = (await startHttp2World(t, () => {}, { h2c: true, upstream })).connect()
  const statuses: number[] = []
  for (const method of ['GET', 'post', 'get', 'FOO', 'PRI'])
    statuses.push((await request(session, { ':method': method, ':path': '/public/x' })).status)

  assert.deepEqual(statuses, [200, 400, 400, 400, 400])
  assert.deepEqual(received, ['GET'])
})
