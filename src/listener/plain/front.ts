import type { Server as HttpServer } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { ClientConnection, type ConnectionOwner } from './connection.ts'
import type { PlainRequest } from './plain-request.ts'
import type { PlainResponse } from './plain-response.ts'

export interface FrontOptions {
  /** Serves a plain request. */
  readonly request: (req: PlainRequest, res: PlainResponse) => void
  readonly isDraining: () => boolean
  readonly maxHeadBytes: number
  /** How long a head may take to arrive, in ms. */
  readonly headersTimeoutMs: number
  /** Bytes have arrived. */
  readonly arrived: (bytes: number) => void
  /** A request is rejected because it has not arrived completely. */
  readonly incomplete: (socket: Socket) => void
  /** Node's server has begun to serve a connection. */
  readonly handedOver: (connection: Duplex) => void
  /** How long a connection is kept without a request, in ms. */
  readonly keepAliveMs: number
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
  readonly #options: FrontOptions
  readonly #connections = new Set<ClientConnection>()
  readonly #bySocket = new WeakMap<object, ClientConnection>()
  readonly keepAliveFields: string
  readonly maxHeadBytes: number

  /** Whether a new server serves its connections in the one listener that this class replaces. */
  static fits(server: HttpServer | HttpsServer, isTls: boolean): boolean {
    return server.listenerCount(eventOf(isTls)) === 1
  }

  /** The server must be new: nothing else listens for its connections. */
  constructor(server: HttpServer | HttpsServer, isTls: boolean, options: FrontOptions) {
    this.#server = server
    this.#options = options
    this.maxHeadBytes = options.maxHeadBytes
    this.keepAliveFields = `\r\nConnection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(options.keepAliveMs / 1000)}`
    const event = eventOf(isTls)
    this.#serveWithNode = server.listeners(event)[0] as ServeSocket
    server.removeAllListeners(event)
    server.on(event, (socket: Socket) => this.#open(socket))
    const sweeping = setInterval(() => this.#sweep(), Math.min(options.headersTimeoutMs / 2, 30_000)).unref()
    server.once('close', () => clearInterval(sweeping))
  }

  get isDraining(): boolean {
    return this.#options.isDraining()
  }

  request(req: PlainRequest, res: PlainResponse): void {
    this.#options.request(req, res)
  }

  handOver(connection: Duplex): void {
    this.#serveWithNode.call(this.#server, connection)
    this.#options.handedOver(connection)
  }

  /** The response that is being written to a connection. */
  currentResponse(socket: object): PlainResponse | undefined {
    return this.#bySocket.get(socket)?.response
  }

  /** The connection from which Node's server reads the requests of a client. */
  nodeConnection(socket: Socket): Duplex {
    return this.#bySocket.get(socket)?.rest ?? socket
  }

  arrived(bytes: number): void {
    this.#options.arrived(bytes)
  }

  incomplete(socket: Socket): void {
    this.#options.incomplete(socket)
  }

  /** The connection that reads a socket; `undefined` when Node's server does. */
  connectionOf(socket: object): ClientConnection | undefined {
    return this.#bySocket.get(socket)
  }

  closed(connection: ClientConnection): void {
    this.#connections.delete(connection)
    this.#bySocket.delete(connection.socket)
  }

  /** Closes the connections on which no request is served. */
  closeIdle(): void {
    for (const connection of this.#connections) if (connection.isIdle) connection.socket.destroy()
  }

  closeAll(): void {
    for (const connection of this.#connections) connection.socket.destroy()
  }

  #open(socket: Socket): void {
    // The connection was refused.
    if (socket.destroyed) return
    const connection = new ClientConnection(socket, this)
    this.#connections.add(connection)
    this.#bySocket.set(socket, connection)
  }

  #sweep(): void {
    const now = performance.now()
    const { headersTimeoutMs, keepAliveMs } = this.#options
    for (const connection of this.#connections) {
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
