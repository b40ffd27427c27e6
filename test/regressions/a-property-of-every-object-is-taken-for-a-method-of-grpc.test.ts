import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { emptyMessage, startGrpc, statusOf } from '../support/grpc-peer.ts'
import { inTime } from '../support/in-time.ts'

test('A method that the gRPC server does not have is unknown, also "constructor" and "toString"', async (t) => {
  const { session, request } = await startGrpc(t, async () => new Uint8Array())
  await once(session, 'connect')

  for (const path of ['constructor', 'toString']) {
    // Node.js requires "/" at the begin of a path only for the schemes of HTTP.
    const stream = request(path, 'other').end(emptyMessage)
    assert.equal(await inTime(2000, () => statusOf(stream)), '12', path)
  }
})
