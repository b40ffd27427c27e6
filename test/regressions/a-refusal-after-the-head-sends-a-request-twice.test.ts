import assert from 'node:assert/strict'
import { test } from 'node:test'
import { flags, frame, types } from '../support/http2-frames.ts'
import { get, send, transportTo } from '../transport/http2/exchanges.ts'
import { block, frameServer, goaway, resetStream } from '../transport/http2/frames.ts'

for (const [what, ending] of [
  ['RST_STREAM with REFUSED_STREAM', (stream: number) => resetStream(stream, 7)],
  ['GOAWAY that leaves it out', () => goaway(0)],
] as const)
  test(`A request whose response has begun does not count as unsent: ${what}`, async (t) => {
    const { port } = await frameServer(t, (socket, stream) => {
      socket.write(frame(types.headers, flags.endHeaders, stream, block([[':status', '200']])))
      socket.end(ending(stream))
    })

    const outcome = await send(transportTo(t, port), { ...get, method: 'POST' }).over

    assert.deepEqual([outcome.sends, outcome.progress], [1, 'responding'])
  })
