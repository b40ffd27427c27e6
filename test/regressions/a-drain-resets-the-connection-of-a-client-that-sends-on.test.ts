import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { test } from 'node:test'
import { httpUpstream } from '../proxy/support.ts'
import { statusesIn } from '../support/raw-exchange.ts'
import { until } from '../support/until.ts'
import { startWorld } from '../support/world.ts'

const get = 'GET / HTTP/1.1\r\nHost: h\r\n'
const form = 'POST /.gatehouse/backchannel-logout HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n'

test('A gateway that stops does not reset the connections of clients that pipeline', async (t) => {
  const held: ServerResponse[] = []
  const { port } = await httpUpstream(t, (_req, res) => void held.push(res))
  const world = await startWorld(t, {
    upstream: new URL(`http://127.0.0.1:${port}`),
    upstreamSettings: 'rules: [{ path: /*, access: public }]',
    drain: '60s',
  })
  const clients = [get, `${get}TE: trailers\r\n`, form].map((sent) => {
    const socket = connect({ port: Number(new URL(world.url).port), host: '127.0.0.1', allowHalfOpen: true })
    t.after(() => socket.destroy())
    const client = { socket, sent, text: '', failure: undefined as Error | undefined }
    socket.on('data', (part: Buffer) => (client.text += part.toString('latin1')))
    socket.on('error', (error) => (client.failure = error)).write(`${sent}\r\n`)
    return client
  })
  await until('all requests have arrived', () => held.length === 2)

  const stopped = world.replicas[0]?.gateway.close()
  const ended = Promise.all(clients.map(async ({ socket }) => once(socket, 'end')))
  for (const res of held) res.end('at last')
  clients[2]?.socket.write('x'.repeat(10))
  await ended
  for (const { socket } of clients)
    for (let part = 0; part < 30; part += 1)
      await new Promise((resolve) => socket.write(`${get}\r\n`.repeat(20), () => setImmediate(resolve)))
  for (const { socket } of clients) socket.end()
  await stopped

  for (const { sent, text, failure } of clients) {
    assert.equal(failure, undefined, sent)
    assert.deepEqual(statusesIn(text), [sent === form ? 400 : 200])
  }
})
