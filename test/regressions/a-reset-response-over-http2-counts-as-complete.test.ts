import assert from 'node:assert/strict'
import { test } from 'node:test'
import { flags, frame, types } from '../support/http2-frames.ts'
import { until } from '../support/until.ts'
import { get, send, transportTo } from '../transport/http2/exchanges.ts'
import { block, frameServer, resetStream } from '../transport/http2/frames.ts'

const { endStream, endHeaders } = flags
const part = (flag: number) => (stream: number) => frame(types.data, flag, stream, 'part')
const empty = (stream: number) => frame(types.data, endStream, stream)
const trailers = (stream: number) => frame(types.headers, endHeaders | endStream, stream, block([['x-sum', '7']]))
const isLate = 'the stream was reset with NO_ERROR before the end of the content (END_STREAM)'

for (const [what, content, message] of [
  ['a head', [], isLate],
  ['content without an end', [part(0)], isLate],
  ['content', [part(endStream)], ''],
  ['content with an empty frame at its end', [part(0), empty], ''],
  ['content with trailers', [part(0), trailers], ''],
] as const)
  for (const isPaused of [false, true])
    test(`A response of ${what} is ${message === '' ? 'complete' : 'incomplete'} when RST_STREAM with NO_ERROR follows${isPaused ? ' while it waits' : ''}`, async (t) => {
      const { port, frames } = await frameServer(t, (socket, stream) => {
        socket.write(frame(types.headers, endHeaders, stream, block([[':status', '200']])))
        for (const each of content) socket.write(each(stream))
        socket.write(resetStream(stream, 0))
        socket.write(frame(types.ping, 0, 0, Buffer.alloc(8)))
      })
      const { outcome, over } = send(transportTo(t, port), get, {
        onResponse: () => void (isPaused && outcome.control?.pause()),
      })
      await until('all has arrived', () => frames.some(({ type }) => type === types.ping))
      outcome.control?.resume()

      const { body, message: found } = await over

      assert.deepEqual([body, found], [content.length === 0 ? '' : 'part', message])
    })
