import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { RequestRecord } from '../observe/request-record.ts'

/**
 * A response on a socket that Node's server has released. Closes the connection afterwards.
 *
 * Node does not document `assignSocket` and `detachSocket` (tested with Node.js 20 to 24 by
 * test/proxy/upgrade.test.ts). In a version without them, the gateway refuses upgrades.
 * @returns `undefined` in such a version
 */
export function responseOn(socket: Socket, req: IncomingMessage, record: RequestRecord): ServerResponse | undefined {
  const res = new ServerResponse(req)
  if (typeof res.assignSocket !== 'function' || typeof res.detachSocket !== 'function') return undefined
  res.shouldKeepAlive = false
  res.assignSocket(socket)
  // Node's server does the same for its own sockets.
  socket.on('drain', () => res.emit('drain'))
  // A client that ends its side before the response has begun is gone.
  socket.once('end', () => {
    if (res.socket === socket && !res.headersSent) socket.destroy()
  })
  res.once('finish', () => {
    record.end(res.statusCode, true)
    socket.destroySoon()
    socket.resume()
  })
  return res
}
