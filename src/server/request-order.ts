import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** A socket of Node's HTTP server: `_httpMessage` is the response that is being sent on it. */
type ServerSocket = Duplex & { readonly _httpMessage?: ServerResponse | null }

/** The limits on pipelined requests that wait for earlier responses. */
export interface WaitingLimits {
  /** Requests that wait on one connection. */
  readonly perConnection: number
  /** The memory that the waiting requests of all connections take, in bytes. */
  readonly bytesAltogether: number
}

/** The memory that a waiting request takes in addition to its head, in bytes. */
const requestBytes = 4096

interface Queue {
  /** The response to the last request that waits on the connection. */
  last: ServerResponse
  waiting: number
  /** The memory that the waiting requests take. */
  bytes: number
}

/**
 * Handles the requests of one connection one after the other (RFC 9112 §9.3.2). Node emits all
 * pipelined requests at once, and buffers the later responses without limit until the client has
 * read the first one.
 *
 * A pipelined response gets its socket when the response before it has finished. Until then
 * `res.socket` is null; then the response emits `socket`.
 */
export class RequestOrder {
  readonly #queues = new WeakMap<Duplex, Queue>()
  readonly #limits: WaitingLimits
  #bytes = 0

  constructor(limits: WaitingLimits) {
    this.#limits = limits
  }

  /**
   * Whether one more request on the connection would have to wait although too many wait already.
   */
  isFull(socket: ServerSocket): boolean {
    if (socket._httpMessage === undefined || socket._httpMessage === null) return false
    const { perConnection, bytesAltogether } = this.#limits
    return this.#bytes >= bytesAltogether || (this.#queues.get(socket)?.waiting ?? 0) >= perConnection
  }

  /** Calls `start` when the responses to all earlier requests of the connection have ended. */
  await(req: IncomingMessage, res: ServerResponse, start: () => void): void {
    if (res.socket !== null) {
      start()
      return
    }
    const { socket } = req
    const queue = this.#queueOf(socket, res)
    queue.last = res
    const bytes = bytesOf(req)
    queue.waiting += 1
    this.#take(queue, bytes)
    res.once('socket', () => {
      queue.waiting -= 1
      this.#take(queue, -bytes)
      // Node has not finished the previous response yet.
      process.nextTick(() => {
        if (!socket.destroyed) start()
      })
    })
  }

  #take(queue: Queue, bytes: number): void {
    queue.bytes += bytes
    this.#bytes += bytes
  }

  #queueOf(socket: Duplex, last: ServerResponse): Queue {
    const known = this.#queues.get(socket)
    if (known !== undefined) return known
    const queue = { last, waiting: 0, bytes: 0 }
    this.#queues.set(socket, queue)
    socket.once('close', () => {
      this.#take(queue, -queue.bytes)
      queue.waiting = 0
      this.#queues.delete(socket)
    })
    return queue
  }

  /**
   * Calls `start` when the responses to all earlier requests of the connection have ended. Node's
   * HTTP server reads no further request from it.
   */
  awaitUpgrade(socket: ServerSocket, start: () => void): void {
    // After a response with `Connection: close` no other follows (RFC 9112 §9.6).
    const startUnlessClosed = () => {
      if (socket.destroyed || socket.writableEnded) socket.destroy()
      else start()
    }
    const queue = this.#queues.get(socket)
    const before = queue !== undefined && queue.waiting > 0 ? queue.last : socket._httpMessage
    if (before === undefined || before === null) {
      startUnlessClosed()
      return
    }
    // Node's server has detached from the socket, so the response no longer gets its `drain`.
    const drained = () => socket._httpMessage?.emit('drain')
    socket.on('drain', drained)
    before.once('close', () => {
      socket.off('drain', drained)
      startUnlessClosed()
    })
  }

  /**
   * Whether the response to an earlier request is being sent or waits, or the response to the
   * request that is being received has begun. Otherwise an error response can be written.
   */
  isResponding(socket: ServerSocket): boolean {
    if ((this.#queues.get(socket)?.waiting ?? 0) > 0) return true
    const { _httpMessage: res } = socket
    return res !== undefined && res !== null && (res.headersSent || res.req.complete)
  }
}

function bytesOf({ url = '', rawHeaders }: IncomingMessage): number {
  return rawHeaders.reduce((bytes, text) => bytes + text.length, requestBytes + url.length)
}
