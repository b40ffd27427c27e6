import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fetchWhole, startGateway } from '../proxy/support.ts'
import { flags, frame, types } from '../support/http2-frames.ts'
import { block, frameServer, goaway } from '../transport/http2/frames.ts'

for (const [what, last] of [
  ['closes its connection', () => Buffer.alloc(0)],
  ['closes its connection after GOAWAY', goaway],
] as const)
  test(`A response without a length is incomplete when the application ${what}`, async (t) => {
    const { port } = await frameServer(t, (socket, stream) => {
      socket.write(frame(types.headers, flags.endHeaders, stream, block([[':status', '200']])))
      socket.write(frame(types.data, 0, stream, 'part'))
      socket.end(last(stream))
    })
    const { origin } = await startGateway(t, port, { upstream: { protocol: 'h2c' } })

    await assert.rejects(fetchWhole(origin), { code: 'ECONNRESET' })
  })
