import type { Duplex } from 'node:stream'

/**
 * Makes Node's HTTP server, which has begun to serve the connection, read from the stream of the
 * socket. Otherwise its parser reads from TLS itself. It then reads later bytes before those that
 * wait in the stream, and rejects bytes that TLS has decrypted while the server does not read.
 *
 * A listener for `data` has this effect. Node does not document that (tested with Node.js 20 and 24
 * by test/regressions/an-upload-is-garbled-over-tls.test.ts and by
 * test/regressions/pipelining-over-tls-truncates-a-response.test.ts).
 */
export function parseFromStream(socket: Duplex): void {
  socket.on('data', ignore).off('data', ignore)
}

function ignore(): void {}
