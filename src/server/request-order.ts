import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** A socket of Node's HTTP server: `_httpMessage` is the response that is under way on it. */
type ServerSocket = Duplex & { readonly _httpMessage?: ServerResponse | null }

interface Line {
  /** The newest response that waits on the connection. */
  last: ServerResponse
  waiting: number
}

/**
 * Carries out the requests of one connection one after the other (RFC 9112 §9.3.2). Node emits all requests that a client pipelines
 * at once, and keeps what the later responses write in memory without limit until the first one has been read.
 *
 * A pipelined response gets its socket when the response before it has finished: until then `res.socket` is null, and the `socket`
 * event tells when it has changed.
 */
export class RequestOrder {
  readonly #lines = new WeakMap<Duplex, Line>()
  readonly #mostWaiting: number

  /** @param mostWaiting how many requests may wait on one connection behind the one that is carried out */
  constructor(mostWaiting: number) {
    this.#mostWaiting = mostWaiting
  }

  /** Calls `start` when all earlier requests of the connection have their responses. Answers false when too many wait already. */
  await(req: IncomingMessage, res: ServerResponse, start: () => void): boolean {
    if (res.socket !== null) {
      start()
      return true
    }
    const { socket } = req
    const line = this.#lines.get(socket) ?? { last: res, waiting: 0 }
    if (line.waiting >= this.#mostWaiting) return false
    this.#lines.set(socket, line)
    line.last = res
    line.waiting += 1
    res.once('socket', () => {
      line.waiting -= 1
      if (line.waiting === 0) this.#lines.delete(socket)
      // Node is in the middle of finishing the response before.
      process.nextTick(() => {
        if (!socket.destroyed) start()
      })
    })
    return true
  }

  /** Calls `start` when all earlier requests of a connection have their responses. No more are read from it by Node's HTTP server. */
  awaitUpgrade(socket: ServerSocket, start: () => void): void {
    // A response that closes the connection is the last one on it (RFC 9112 §9.6).
    const startUnlessClosed = () => {
      if (socket.destroyed || socket.writableEnded) socket.destroy()
      else start()
    }
    const before = this.#lines.get(socket)?.last ?? socket._httpMessage
    if (before === undefined || before === null) {
      startUnlessClosed()
      return
    }
    // Node's server has let go of the socket, and does not tell the response any more that it may write again.
    const drained = () => socket._httpMessage?.emit('drain')
    socket.on('drain', drained)
    before.once('close', () => {
      socket.off('drain', drained)
      startUnlessClosed()
    })
  }

  /**
   * Whether something else than the request that is arriving has to be written to the connection first. What is wrong with that
   * request may be its response, unless that has begun.
   */
  isAnswering(socket: ServerSocket): boolean {
    if (this.#lines.has(socket)) return true
    const { _httpMessage: res } = socket
    return res !== undefined && res !== null && (res.headersSent || res.req.complete)
  }
}
