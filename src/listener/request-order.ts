import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** The responses of one connection. */
interface Line {
  /** The latest response that was assigned to the connection. */
  latest: ServerResponse | undefined
  /** The newest response that waits for the ones before it, if any. */
  last: ServerResponse | undefined
  waiting: number
  /** What happens instead of the last request that waits. */
  refuse: (() => void) | undefined
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
  readonly #lines = new WeakMap<Duplex, Line>()
  readonly #maxWaiting: number

  /** @param maxWaiting how many requests may wait on one connection */
  constructor(maxWaiting: number) {
    this.#maxWaiting = maxWaiting
  }

  /** Whether one more request on the connection would have to wait although too many wait. */
  isFull(socket: Duplex): boolean {
    return this.currentResponse(socket) !== undefined && this.#lineOf(socket).waiting >= this.#maxWaiting
  }

  /** The response that is being written to a connection, or that comes next on it. */
  currentResponse(socket: Duplex): ServerResponse | undefined {
    const latest = this.#lines.get(socket)?.latest
    // Node.js detaches the socket from a response that is finished.
    return latest?.socket === socket ? latest : undefined
  }

  /** Calls `start` when all earlier requests of the connection have their responses. */
  await({ socket }: IncomingMessage, res: ServerResponse, start: () => void): void {
    const line = this.#lineOf(socket)
    if (res.socket !== null) {
      line.latest = res
      start()
      return
    }
    const before = this.#newest(socket)
    line.last = res
    line.waiting += 1
    before?.once('close', () => {
      // Without a socket, the response before it was the last one of the connection.
      if (res.socket === null || socket.destroyed) return
      line.latest = res
      line.waiting -= 1
      if (res === line.last && line.refuse !== undefined) line.refuse()
      else start()
    })
  }

  #lineOf(socket: Duplex): Line {
    let line = this.#lines.get(socket)
    if (line === undefined) {
      line = { latest: undefined, last: undefined, waiting: 0, refuse: undefined }
      this.#lines.set(socket, line)
    }
    return line
  }

  /** The response that comes last on a connection, of those that have not ended. */
  #newest(socket: Duplex): ServerResponse | undefined {
    const { last, waiting } = this.#lineOf(socket)
    return waiting > 0 && !socket.destroyed ? last : this.currentResponse(socket)
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
    else if (newest.socket === null) this.#lineOf(socket).refuse = refuse
    else if (newest.headersSent) socket.destroy()
    else refuse()
  }
}
