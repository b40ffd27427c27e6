import { performServerHandshake } from 'node:http2'
import type { Socket } from 'node:net'
import { Http2Connection, type Http2Options } from './http2-connection.ts'

/** How often the connections are examined, in ms. */
const examineEveryMs = 1000

/** What the listener gives to HTTP/2. */
export interface Http2Parts extends Http2Options {
  readonly isDraining: () => boolean
}

/** The connections of a listener that speak HTTP/2. */
export class Http2Connections {
  readonly #parts: Http2Parts
  readonly #connections = new Map<Socket, Http2Connection>()
  #examining: NodeJS.Timeout | undefined

  constructor(parts: Http2Parts) {
    this.#parts = parts
  }

  /** Serves a connection on which no byte was read, or whose bytes were put back. */
  open(socket: Socket): void {
    if (socket.destroyed) return
    const connection = new Http2Connection(
      performServerHandshake(socket, this.#parts.sessionOptions),
      socket,
      this.#parts,
    )
    this.#connections.set(socket, connection)
    socket.once('close', () => this.#connections.delete(socket))
    if (this.#parts.isDraining()) connection.drain()
    this.#examining ??= this.#examineLater()
  }

  /** `undefined` for a connection of HTTP/1.1. */
  connectionOf(socket: Socket): Http2Connection | undefined {
    return this.#connections.get(socket)
  }

  closeIdle(): void {
    for (const connection of this.#connections.values()) if (connection.isIdle) connection.drain()
  }

  /** Sends GOAWAY: requests that have arrived are served, and no further ones. */
  drain(): void {
    for (const connection of this.#connections.values()) connection.drain()
  }

  closeAll(): void {
    for (const connection of [...this.#connections.values()]) connection.destroy()
  }

  #examineLater(): NodeJS.Timeout {
    return setTimeout(() => {
      for (const connection of this.#connections.values()) connection.examine()
      this.#examining = this.#connections.size > 0 ? this.#examineLater() : undefined
    }, examineEveryMs).unref()
  }
}
