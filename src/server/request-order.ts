import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** The limits of requests that wait for earlier requests on their connection. */
export interface WaitingLimits {
  /** The maximum number of waiting requests on one connection. */
  readonly perConnection: number
  /** The maximum memory of the waiting requests on all connections together, in bytes. */
  readonly bytesAltogether: number
}

/** The memory of a waiting request beside its head, in bytes. */
const requestBytes = 4096

/** The waiting requests of one connection. */
interface Queue {
  /** The newest response that waits on the connection. */
  last: ServerResponse
  waiting: number
  /** The memory of the waiting requests, in bytes. */
  bytes: number
}

/**
 * Handles the requests of one connection one after the other (RFC 9112 §9.3.2). Node emits all
 * pipelined requests at once, and buffers the later responses without limit until the client has
 * read the first one.
 *
 * Node assigns the socket to a pipelined response when the response before it has finished. Until
 * then `res.socket` is null.
 */
export class RequestOrder {
  readonly #queues = new WeakMap<Duplex, Queue>()
  /** The latest response that was assigned to a connection. */
  readonly #latest = new WeakMap<Duplex, ServerResponse>()
  readonly #limits: WaitingLimits
  #bytes = 0

  constructor(limits: WaitingLimits) {
    this.#limits = limits
  }

  /** Whether one more request on the connection would have to wait although too many wait. */
  isFull(socket: Duplex): boolean {
    if (this.currentResponse(socket) === undefined) return false
    const { perConnection, bytesAltogether } = this.#limits
    return this.#bytes >= bytesAltogether || (this.#queues.get(socket)?.waiting ?? 0) >= perConnection
  }

  /** The response that is being written to a connection, or that comes next on it. */
  currentResponse(socket: Duplex): ServerResponse | undefined {
    const latest = this.#latest.get(socket)
    // Node.js detaches the socket from a response that is finished.
    return latest?.socket === socket ? latest : undefined
  }

  /** Calls `start` when all earlier requests of the connection have their responses. */
  await(req: IncomingMessage, res: ServerResponse, start: () => void): void {
    const { socket } = req
    if (res.socket !== null) {
      this.#latest.set(socket, res)
      start()
      return
    }
    const before = this.#newest(socket)
    const queue = this.#queueOf(socket, res)
    queue.last = res
    const bytes = bytesOf(req)
    queue.waiting += 1
    this.#addBytes(queue, bytes)
    before?.once('close', () => {
      // Without a socket, the response before it was the last one of the connection.
      if (res.socket === null || socket.destroyed) return
      this.#latest.set(socket, res)
      queue.waiting -= 1
      this.#addBytes(queue, -bytes)
      start()
    })
  }

  /** The response that comes last on a connection, of those that have not ended. */
  #newest(socket: Duplex): ServerResponse | undefined {
    const queue = this.#queues.get(socket)
    return queue !== undefined && queue.waiting > 0 ? queue.last : this.currentResponse(socket)
  }

  #addBytes(queue: Queue, bytes: number): void {
    queue.bytes += bytes
    this.#bytes += bytes
  }

  #queueOf(socket: Duplex, last: ServerResponse): Queue {
    const existing = this.#queues.get(socket)
    if (existing !== undefined) return existing
    const queue = { last, waiting: 0, bytes: 0 }
    this.#queues.set(socket, queue)
    socket.once('close', () => {
      this.#addBytes(queue, -queue.bytes)
      queue.waiting = 0
      this.#queues.delete(socket)
    })
    return queue
  }

  /**
   * Calls `start` for an upgrade when the responses to all earlier requests of the connection have
   * ended. Node's HTTP server reads no further request from the connection.
   */
  awaitUpgrade(socket: Duplex, start: () => void): void {
    // After `Connection: close`, no other response may follow (RFC 9112 §9.6).
    const startUnlessClosed = () => {
      if (socket.destroyed || socket.writableEnded) socket.destroy()
      else start()
    }
    const before = this.#newest(socket)
    if (before === undefined) {
      startUnlessClosed()
      return
    }
    // Node's server has detached from the socket, so the response no longer gets its `drain`.
    const drained = () => this.currentResponse(socket)?.emit('drain')
    socket.on('drain', drained)
    before.once('close', () => {
      socket.off('drain', drained)
      startUnlessClosed()
    })
  }

  /**
   * Whether a response is being sent or waits on the connection. An error response can be written
   * only when this is `false`.
   */
  isResponding(socket: Duplex): boolean {
    if ((this.#queues.get(socket)?.waiting ?? 0) > 0) return true
    const res = this.currentResponse(socket)
    return res !== undefined && (res.headersSent || res.req.complete)
  }
}

function bytesOf({ url = '', rawHeaders }: IncomingMessage): number {
  return rawHeaders.reduce((bytes, text) => bytes + text.length, requestBytes + url.length)
}
