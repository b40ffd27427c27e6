import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { startGrpc, statusOf } from '../support/grpc-peer.ts'
import { inTime } from '../support/in-time.ts'

test('A gRPC message has to arrive within ten seconds, also when a byte of it arrives now and then', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { session, request } = await startGrpc(t, async () => new Uint8Array())
  await once(session, 'connect')
  const stream = request()
  const status = statusOf(stream)
  const sendByte = async () => {
    stream.write(Buffer.alloc(1))
    await new Promise((resolve) => session.ping(resolve))
  }

  for (let byte = 0; byte < 3; byte += 1) {
    await sendByte()
    t.mock.timers.tick(4000)
  }

  assert.equal(await inTime(2000, () => status), undefined)
})
