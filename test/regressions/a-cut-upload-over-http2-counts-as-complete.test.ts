import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { flags, frame, RawHttp2, requestFields, types, uint32 } from '../support/http2-frames.ts'
import { startHttp2World } from '../support/http2.ts'

const reset = (code: number) => frame(types.rstStream, 0, 1, uint32(code))

for (const [what, cut] of [
  ['RST_STREAM with NO_ERROR', ({ socket }) => socket.write(reset(0))],
  ['RST_STREAM with CANCEL', ({ socket }) => socket.write(reset(8))],
  ['GOAWAY and the end of the connection', ({ socket }) => socket.end(frame(types.goaway, 0, 0, Buffer.alloc(8)))],
  ['the end of the connection', ({ socket }) => socket.end()],
  ['a reset of the connection', ({ socket }) => socket.resetAndDestroy()],
] as const satisfies readonly (readonly [string, (client: RawHttp2) => unknown])[])
  test(`An upload that ends with ${what} is incomplete for the application`, async (t) => {
    const requests: IncomingMessage[] = []
    const { promise: ended, resolve } = Promise.withResolvers<boolean>()
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
    const world = await startHttp2World(
      t,
      (req) => {
        requests.push(req)
        req
          .once('data', () => begin())
          .on('error', () => {})
          .once('close', () => resolve(req.complete))
      },
      { h2c: true },
    )
    const client = new RawHttp2(t, Number(new URL(world.url).port))
    client.send(
      frame(types.headers, flags.endHeaders, 1, requestFields('/public/x', 'POST')),
      frame(types.data, 0, 1, 'part'),
    )
    await begun

    cut(client)

    assert.equal(await ended, false)
  })
