import type { Duplex } from 'node:stream'
import type { ClientMessage, ClientReply } from './client-messages.ts'
import { hasBody } from './request-body.ts'

/** How long a client may continue to send after the response that closes its connection, in ms. */
const lingerMs = 2_000

/**
 * Keeps a connection open for a while after its last response, because its client may still be
 * sending. If it were closed at once, the kernel would reset the connection and the client could
 * lose the response (RFC 9112 §9.6). What still arrives must be dropped: of a request that has not
 * arrived completely, by `resume`.
 *
 * Node's HTTP server calls `destroySoon` of the socket after the last response (tested with Node.js
 * 20 to 24 by test/http/lingering-close.test.ts). With a version that calls another method, the
 * connection closes at once.
 */
export function lingerOnClose(socket: ClientMessage['socket']): void {
  socket.destroySoon = () => closeLater(socket)
}

/** Ends a connection, and closes it later: see {@link lingerOnClose}. */
export function closeLater(socket: Duplex): void {
  socket.end()
  const closing = setTimeout(() => socket.destroy(), lingerMs).unref()
  socket.once('close', () => clearTimeout(closing))
}

/**
 * Closes the connection with the response when the content of the request was not read to its end.
 * Call it before the head of the response is written.
 */
export function closeWhenUnread(req: ClientMessage, res: ClientReply): void {
  if (req.complete || !hasBody(req)) return
  res.setHeader('Connection', 'close')
  req.resume()
}
