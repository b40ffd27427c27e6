import type { Server as HttpServer } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { ClientConnection, type ConnectionOptions, type ConnectionOwner } from './connection.ts'

export interface FrontOptions extends ConnectionOptions {
  /** How long a head may take to arrive, in ms. */
  readonly headersTimeoutMs: number
  /** How long a connection is kept without a request, in ms. */
  readonly keepAliveMs: number
  /** Node's server has begun to serve a connection. */
  readonly handedOver: (connection: Duplex) => void
}

/** Node's server emits this event for a connection that it serves. */
type ServeSocket = (this: HttpServer | HttpsServer, connection: Duplex) => void

/**
 * Reads plain requests from the connections of a server, before Node's own parser. A connection
 * with any other request is passed to Node's server with its bytes unchanged.
 *
 * Node's server serves a connection in a listener of `connection`, or over TLS of
 * `secureConnection`, that its constructor adds. This class takes its place.
 */
export class Front implements ConnectionOwner {
  readonly #server: HttpServer | HttpsServer
  readonly #serveWithNode: ServeSocket
  readonly options: FrontOptions
  /** By their sockets. */
  readonly #connections = new Map<object, ClientConnection>()
  readonly keepAliveFields: string

  /** Whether a new server serves its connections in the one listener that this class replaces. */
  static fits(server: HttpServer | HttpsServer, isTls: boolean): boolean {
    return server.listenerCount(eventOf(isTls)) === 1
  }

  /** The server must be new: nothing else listens for its connections. */
  constructor(server: HttpServer | HttpsServer, isTls: boolean, options: FrontOptions) {
    this.#server = server
    this.options = options
    this.keepAliveFields = `\r\nConnection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(options.keepAliveMs / 1000)}`
    const event = eventOf(isTls)
    this.#serveWithNode = server.listeners(event)[0] as ServeSocket
    server.removeAllListeners(event)
    server.on(event, (socket: Socket) => this.#open(socket))
    const sweeping = setInterval(() => this.#sweep(), Math.min(options.headersTimeoutMs / 2, 30_000)).unref()
    server.once('close', () => clearInterval(sweeping))
  }

  handOver(connection: Duplex): void {
    this.#serveWithNode.call(this.#server, connection)
    this.options.handedOver(connection)
  }

  /** The connection that reads a socket; `undefined` when Node's server does. */
  connectionOf(socket: object): ClientConnection | undefined {
    return this.#connections.get(socket)
  }

  closed(connection: ClientConnection): void {
    this.#connections.delete(connection.socket)
  }

  /** Closes the connections on which no request is served. */
  closeIdle(): void {
    for (const connection of this.#connections.values()) if (connection.isIdle) connection.socket.destroy()
  }

  closeAll(): void {
    for (const connection of this.#connections.values()) connection.socket.destroy()
  }

  #open(socket: Socket): void {
    // The connection was refused.
    if (socket.destroyed) return
    this.#connections.set(socket, new ClientConnection(socket, this))
  }

  #sweep(): void {
    const now = performance.now()
    const { headersTimeoutMs, keepAliveMs } = this.options
    for (const connection of this.#connections.values()) {
      const waitedMs = now - connection.waitingSince
      if (connection.isIdle) {
        if (waitedMs > keepAliveMs) connection.socket.destroy()
      } else if (connection.awaitsHead && waitedMs > headersTimeoutMs) connection.timeOut()
    }
  }
}

/** The event of a server for a new connection whose data can be read. */
function eventOf(isTls: boolean): 'secureConnection' | 'connection' {
  return isTls ? 'secureConnection' : 'connection'
}
