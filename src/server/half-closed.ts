import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** How often a client that sends no more is asked whether it is still there, in ms. */
const probeEveryMs = 1000

/**
 * After this many probes without a byte for it, a client whose response has begun is taken for
 * gone: event streams may be quiet for hours.
 */
const mostQuietProbes = 5

/**
 * Lets a client that half-closes its connection after a request have the response. The connection
 * is closed after it (RFC 9112 §9.6).
 *
 * A client that is gone has sent the same FIN, and nobody waits for its response. So it is asked
 * each second, by an interim response (102, RFC 2518 §10.1), whether it is still there: a system
 * whose connection is closed answers with a reset. A response that has begun asks by itself, unless
 * it is quiet. In HTTP/1.0, which has no interim responses, the response is awaited.
 *
 * `httpAllowHalfOpen` is a property of Node's HTTP server that is not documented (tested with
 * Node.js 20 to 24 by test/regressions/a-client-that-half-closes-gets-no-response.test.ts). A
 * version without it ends the connection when the client half-closes it.
 */
export function serveHalfClosedConnections(
  server: Server,
  currentResponse: (socket: Socket) => ServerResponse | undefined,
): void {
  ;(server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true
  server.on('connection', (socket: Socket) => {
    socket.once('end', () => {
      let written = socket.bytesWritten
      let quiet = 0
      const probe = () => {
        const res = currentResponse(socket)
        quiet = socket.bytesWritten === written && socket.writableLength === 0 ? quiet + 1 : 0
        written = socket.bytesWritten
        if (res === undefined) return
        if (!res.headersSent) {
          quiet = 0
          if (res.req.httpVersionMinor > 0) res.writeProcessing()
        } else if (quiet >= mostQuietProbes) socket.destroy()
      }
      const probing = setInterval(probe, probeEveryMs).unref()
      socket.once('close', () => clearInterval(probing))
    })
  })
}
