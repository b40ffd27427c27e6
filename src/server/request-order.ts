import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** The waiting requests of one connection. */
interface Queue {
  /** The newest response that waits on the connection. */
  last: ServerResponse
  waiting: number
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
  readonly #maxWaiting: number

  /** @param maxWaiting how many requests may wait on one connection */
  constructor(maxWaiting: number) {
    this.#maxWaiting = maxWaiting
  }

  /** Whether one more request on the connection would have to wait although too many wait. */
  isFull(socket: Duplex): boolean {
    if (this.currentResponse(socket) === undefined) return false
    return (this.#queues.get(socket)?.waiting ?? 0) >= this.#maxWaiting
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
    queue.waiting += 1
    before?.once('close', () => {
      // Without a socket, the response before it was the last one of the connection.
      if (res.socket === null || socket.destroyed) return
      this.#latest.set(socket, res)
      queue.waiting -= 1
      start()
    })
  }

  /** The response that comes last on a connection, of those that have not ended. */
  #newest(socket: Duplex): ServerResponse | undefined {
    const queue = this.#queues.get(socket)
    return queue !== undefined && queue.waiting > 0 ? queue.last : this.currentResponse(socket)
  }

  #queueOf(socket: Duplex, last: ServerResponse): Queue {
    const existing = this.#queues.get(socket)
    if (existing !== undefined) return existing
    const queue = { last, waiting: 0 }
    this.#queues.set(socket, queue)
    socket.once('close', () => {
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
