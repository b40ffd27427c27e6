import type { Server as HttpServer, ServerResponse } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import { Socket } from 'node:net'
import { lingerAfterLast } from '../http/lingering-close.ts'

/**
 * Closes the connections of Node's server on which no response is being sent.
 *
 * `closeIdleConnections` also closes a connection whose last response has ended but waits for a
 * client that reads slowly, so that the client gets only a part of it (tested with Node.js 20 to 24
 * by test/regressions/a-drain-truncates-the-response-to-a-slow-reader.test.ts). Node's server calls
 * it too when it closes.
 */
export class IdleConnections {
  readonly #unsent = new Set<ServerResponse>()
  /** Connections that stay open for a while after their last response. */
  readonly #lingering = new Set<Socket>()
  readonly #closeAll: () => void

  constructor(server: HttpServer | HttpsServer) {
    this.#closeAll = server.closeIdleConnections.bind(server)
    server.closeIdleConnections = () => this.close()
  }

  /** Keeps the connection of this response, which comes next on it, open until it has been sent. */
  keepFor(res: ServerResponse): void {
    this.#unsent.add(res)
    res.once('close', () => this.#unsent.delete(res))
  }

  /** Each connection is closed after the response that is not sent yet. */
  endAfterResponses(): void {
    for (const res of this.#unsent) if (!res.headersSent) this.endAfter(res)
  }

  /** The connection is closed after this response, also if its client did not ask for that. */
  endAfter(res: ServerResponse): void {
    const { socket } = res.req
    // The room `front` does the same for its connections.
    if (res.shouldKeepAlive && socket instanceof Socket) {
      lingerAfterLast(socket)
      this.#lingering.add(socket)
      socket.once('close', () => this.#lingering.delete(socket))
    }
    res.shouldKeepAlive = false
  }

  close(): void {
    // Node's method calls `destroy` of each connection that it closes. The busy ones ignore that.
    const busy = new Set([...this.#lingering, ...[...this.#unsent].map(({ req }) => req.socket)])
    for (const socket of busy) socket.destroy = () => socket
    this.#closeAll()
    // Each socket has the method of its class again.
    for (const socket of busy) Reflect.deleteProperty(socket, 'destroy')
  }
}
