import type { IncomingMessage, ServerResponse } from 'node:http'
import { hasBody } from './request-body.ts'

/** How long a client may go on sending after the response that closes its connection, in ms. */
export const lingerMs = 2_000

/**
 * Has the connection close after the response although the client is still sending. Closed at once,
 * the kernel would reset the connection and the answer could be lost with it, so what still arrives
 * is thrown away for a while (RFC 9112 §9.6).
 */
export function lingerOnClose(req: IncomingMessage): void {
  const { socket } = req
  // Node calls this when the response has gone out, and it would destroy the socket with bytes
  // unread.
  socket.destroySoon = () => {
    socket.end()
    setTimeout(() => socket.destroy(), lingerMs).unref()
  }
  req.resume()
}

/**
 * Before a response to a request whose content is not read to its end: the connection closes with
 * it.
 */
export function closeWhenUnread(req: IncomingMessage, res: ServerResponse): void {
  if (req.complete || !hasBody(req)) return
  res.setHeader('Connection', 'close')
  // A request that was destroyed has no socket, and sends nothing any more.
  if (!req.destroyed) lingerOnClose(req)
}
