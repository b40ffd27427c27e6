import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { test } from 'node:test'
import { httpUpstream } from '../proxy/support.ts'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

test('A gateway that stops lets the last request of a half-closed connection finish', async (t) => {
  const held = new Map<string, ServerResponse>()
  const { port } = await httpUpstream(t, (req, res) => void held.set(String(req.url), res))
  const arrived = (path: string) => until(path, () => held.has(path))
  const world = await startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings: 'rules: [{ path: /*, access: public }]',
    drain: '60s',
  })
  const [replica] = world.replicas
  const { port: gateway } = new URL(world.url)
  const socket = connect({ port: Number(gateway), host: '127.0.0.1', allowHalfOpen: true })
  t.after(() => socket.destroy())
  let text = ''
  socket.on('data', (part: Buffer) => (text += part.toString('latin1')))
  // Node's server reads the second request, because it is not plain.
  socket.end('GET /plain HTTP/1.1\r\nHost: h\r\n\r\nGET /last HTTP/1.1\r\nHost: h\r\nTE: trailers\r\n\r\n')
  await arrived('/plain')
  held.get('/plain')?.end('first')
  await arrived('/last')

  const closed = once(socket, 'close')
  const stopped = replica?.gateway.close()
  held.get('/last')?.end('second')

  await Promise.all([closed, stopped])
  assert.match(text, /first[^]*second$/)
})
