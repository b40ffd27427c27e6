import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { flags, frame, RawHttp2, requestFields, types } from '../support/http2-frames.ts'
import { startHttp2World } from '../support/http2.ts'
import { until } from '../support/until.ts'

test('The application learns that a client of h2c has closed its connection', async (t) => {
  const responses: ServerResponse[] = []
  const world = await startHttp2World(
    t,
    (_req, res) => {
      responses.push(res)
      res.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    },
    { h2c: true },
  )
  const client = new RawHttp2(t, Number(new URL(world.url).port))
  client.send(frame(types.headers, flags.endHeaders | flags.endStream, 1, requestFields('/public/x')))
  await until('the stream is open', () => client.of(types.headers).length === 1)
  const [response] = responses
  assert.ok(response)
  const closed = once(response, 'close')

  client.socket.end()

  await closed
})
