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
  /** What happens instead of a request that waits. */
  readonly #refusals = new WeakMap<ServerResponse, () => void>()
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
      const begin = this.#refusals.get(res) ?? start
      begin()
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
   * Calls `next` when the responses to all requests of the connection have ended. It is not called
   * when they close the connection: no other response may follow (RFC 9112 §9.6). Node's HTTP
   * server must read no further request from the connection.
   */
  afterResponses(socket: Duplex, next: () => void): void {
    const nextUnlessClosing = () => {
      if (socket.destroyed) return
      if (socket.writableEnded) socket.resume()
      else next()
    }
    const newest = this.#newest(socket)
    if (newest === undefined) {
      nextUnlessClosing()
      return
    }
    // After an upgrade, Node's server has detached from the socket, so that the response would not
    // get its `drain`.
    const drained = () => this.currentResponse(socket)?.emit('drain')
    socket.on('drain', drained)
    newest.once('close', () => {
      socket.off('drain', drained)
      nextUnlessClosing()
    })
  }

  /**
   * Calls `refuse` in place of the response to a request that Node's parser has rejected: after the
   * responses to all earlier requests of the connection. If its response has already begun, the
   * connection is closed, because the client would read the refusal as a part of it.
   */
  refuseLast(socket: Duplex, refuse: () => void): void {
    const newest = this.#newest(socket)
    if (newest === undefined || newest.req.complete) this.afterResponses(socket, refuse)
    // The content of the newest request is malformed or incomplete.
    else if (newest.socket === null) this.#refusals.set(newest, refuse)
    else if (newest.headersSent) socket.destroy()
    else refuse()
  }
}
