import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { startFront } from '../listener/plain/front.ts'
import { until } from '../support/until.ts'

test('Requests of other clients are served between the pipelined requests of one client', async (t) => {
  const served: string[] = []
  const { port } = await startFront(t, ({ url }, res) => {
    served.push(url)
    res.end()
  })
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`
  const [greedy, other] = [connect(port, '127.0.0.1').resume(), connect(port, '127.0.0.1').resume()]
  t.after(() => {
    greedy.destroy()
    other.destroy()
  })
  greedy.write(get('/first'))
  other.write(get('/first'))
  await until('both connections are open', () => served.length === 2)

  // The server finds the data of both connections at once, in this order.
  greedy.write(get('/greedy').repeat(500))
  other.write(get('/other'))
  await until('all requests are served', () => served.length === 503)

  assert.ok(served.indexOf('/other') < 10, `after ${served.indexOf('/other')} requests`)
})
