import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { privatePartsLeftOut } from '../core/node-private-parts.ts'

/**
 * The time until the second probe of a half-closed connection, in ms. Each further time is twice as
 * long, up to `slowProbeMs`. The first probe of a client that is gone returns a reset, and the
 * second one fails.
 */
const quickProbeMs = 20
const slowProbeMs = 240

/**
 * After this time without data, the connection of a response that has begun is closed, in ms,
 * because an event stream may send nothing for hours.
 */
const maxSilentMs = 700

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
 * the gateway sends interim responses (102, RFC 2518 §10.1): the first at once, then less and less
 * often. The operating system of a client that has closed replies with a reset. A response that has
 * begun is a probe itself while it sends data. HTTP/1.0 has no interim responses, so the FIN ends a
 * request without a response.
 *
 * `httpAllowHalfOpen` is a property of Node's HTTP server that is not documented (tested by
 * test/regressions/a-client-that-half-closes-gets-no-response.test.ts). A version of Node without
 * it ends the connection when the client half-closes it.
 */
export function serveHalfClosedConnections(
  server: Server,
  currentResponse: (socket: Socket) => InterimResponse | undefined,
): void {
  if (privatePartsLeftOut() !== undefined) return
  ;(server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true
  server.on('connection', (socket: Socket) => {
    socket.once('end', () => {
      // The gateway has ended its side first.
      if (socket.writableEnded) return
      let written = socket.bytesWritten
      let silentMs = 0
      let delayMs = quickProbeMs
      let probing: NodeJS.Timeout | undefined
      const probe = () => {
        const res = currentResponse(socket)
        if (res?.headersSent === false) {
          silentMs = 0
          if (res.req.httpVersionMinor === 0) return void socket.destroy()
          res.writeProcessing()
        } else if (res !== undefined && silentMs >= maxSilentMs) return void socket.destroy()
        probing = setTimeout(() => {
          silentMs = socket.bytesWritten === written && socket.writableLength === 0 ? silentMs + delayMs : 0
          written = socket.bytesWritten
          delayMs = Math.min(delayMs * 2, slowProbeMs)
          probe()
        }, delayMs).unref()
      }
      socket.once('close', () => clearTimeout(probing))
      probe()
    })
  })
}
