import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** How often a half-closed connection is probed, in ms. */
const probeEveryMs = 1000

/**
 * After this many probes without data, the connection of a response that has begun is closed,
 * because an event stream may send nothing for hours.
 */
const maxSilentProbes = 5

/** The part of a response that interim responses need. */
interface InterimResponse {
  readonly headersSent: boolean
  readonly req: { readonly httpVersionMinor: number }
  writeProcessing(): void
}

/**
 * Sends the response to a client that half-closes its connection after the request, then closes the
 * connection (RFC 9112 §9.6).
 *
 * A client that has closed its connection completely sends the same FIN. To distinguish the two,
 * the gateway sends an interim response each second (102, RFC 2518 §10.1). The operating system of
 * a client that has closed replies with a reset. A response that has begun is a probe itself while
 * it sends data. HTTP/1.0 has no interim responses, so the gateway waits for the response.
 *
 * `httpAllowHalfOpen` is a property of Node's HTTP server that is not documented (tested with
 * Node.js 20 to 24 by test/regressions/a-client-that-half-closes-gets-no-response.test.ts). A
 * version of Node without it ends the connection when the client half-closes it.
 */
export function serveHalfClosedConnections(
  server: Server,
  currentResponse: (socket: Socket) => InterimResponse | undefined,
): void {
  ;(server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true
  server.on('connection', (socket: Socket) => {
    socket.once('end', () => {
      let written = socket.bytesWritten
      let silentProbes = 0
      const probe = () => {
        const res = currentResponse(socket)
        silentProbes = socket.bytesWritten === written && socket.writableLength === 0 ? silentProbes + 1 : 0
        written = socket.bytesWritten
        if (res === undefined) return
        if (!res.headersSent) {
          silentProbes = 0
          if (res.req.httpVersionMinor > 0) res.writeProcessing()
        } else if (silentProbes >= maxSilentProbes) socket.destroy()
      }
      const probing = setInterval(probe, probeEveryMs).unref()
      socket.once('close', () => clearInterval(probing))
    })
  })
}
