import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientHttp2Session, constants } from 'node:http2'
import { test } from 'node:test'
import { emptyMessage, startGrpc, statusOf } from '../support/grpc-peer.ts'

/** Resolves when the client has what the server sent about the frames before. */
async function settled(session: ClientHttp2Session): Promise<void> {
  // A stream that the client opens after a GOAWAY, and cancels, is a protocol error of Node.js.
  for (let round = 0; round < 2 && !session.closed; round += 1) await new Promise((resolve) => session.ping(resolve))
}

// Envoy cancels the check of a client that leaves, and its connection is the one of all clients.
test('A client whose checks are cancelled by the thousand does not fail the check of somebody else', async (t) => {
  const { session, request } = await startGrpc(t, async (message) =>
    // The check of a client that has left is never complete.
    message.length === 0 ? new Promise<never>(() => {}) : new Uint8Array(),
  )
  await once(session, 'connect')
  const other = request()
  const status = statusOf(other)

  for (let sent = 0; sent < 1500 && !session.closed && !session.destroyed; sent += 1) {
    const stream = request()
    stream.end(emptyMessage).close(sent % 2 === 0 ? constants.NGHTTP2_CANCEL : constants.NGHTTP2_NO_ERROR)
    if (sent % 50 === 49) await settled(session)
  }
  other.end(Uint8Array.from([0, 0, 0, 0, 1, 0]))

  assert.equal(await status, '0')
  assert.equal(session.closed, true, 'the client opens another connection for the next calls')
})
