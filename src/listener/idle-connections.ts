import type { Server as HttpServer, ServerResponse } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import type { Socket } from 'node:net'
import { privatePartsLeftOut } from '../core/node-private-parts.ts'
import { lingerOnClose } from '../http/response.ts'

/**
 * Closes the connections of Node's server on which no response is being sent.
 *
 * `closeIdleConnections` also closes a connection whose last response has ended but waits for a
 * client that reads slowly, so that the client gets only a part of it (tested by
 * test/regressions/a-drain-truncates-the-response-to-a-slow-reader.test.ts). Node's server calls it
 * too when it closes.
 */
export class IdleConnections {
  readonly #unsent = new Set<ServerResponse>()
  /** When Node's server began to serve them, in ms, monotonic. */
  readonly #sockets = new Map<Socket, number>()
  readonly #closeAll: () => void

  constructor(server: HttpServer | HttpsServer) {
    this.#closeAll = server.closeIdleConnections.bind(server)
    if (privatePartsLeftOut() === undefined) server.closeIdleConnections = () => this.close()
  }

  /** The connection stays open for a while after its last response: see {@link lingerOnClose}. */
  serve(socket: Socket): void {
    lingerOnClose(socket)
    this.#sockets.set(socket, performance.now())
    socket.once('close', () => this.#sockets.delete(socket))
  }

  /** Keeps the connection of this response, which comes next on it, open until it has been sent. */
  keepFor(res: ServerResponse): void {
    this.#unsent.add(res)
    res.once('close', () => this.#unsent.delete(res))
  }

  /** Each connection is closed after the response that is not sent yet. */
  endAfterResponses(): void {
    for (const res of this.#unsent) if (!res.headersSent) res.shouldKeepAlive = false
  }

  /**
   * Closes the connections on which no byte has arrived for this time, in ms. For Node's server,
   * they are waiting for the rest of a request.
   */
  closeUnused(afterMs: number): void {
    const before = performance.now() - afterMs
    for (const [socket, since] of this.#sockets) if (since < before && socket.bytesRead === 0) socket.destroy()
  }

  close(): void {
    if (privatePartsLeftOut() !== undefined) return this.#closeAll()
    // Node's method calls `destroy` of each connection that it closes. The busy ones ignore that.
    const lingering = [...this.#sockets.keys()].filter(({ writableEnded }) => writableEnded)
    const busy = new Set([...lingering, ...[...this.#unsent].map(({ req }) => req.socket)])
    for (const socket of busy) socket.destroy = () => socket
    this.#closeAll()
    // Each socket has the method of its class again.
    for (const socket of busy) Reflect.deleteProperty(socket, 'destroy')
  }
}
