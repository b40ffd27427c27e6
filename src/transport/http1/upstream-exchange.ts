import type { ExchangeControl, ResponseHandler } from '../transport.ts'
import type { UnusualResponse } from '../undici/unusual-response.ts'
import type { PlainChunks } from './chunks.ts'
import type { WrittenRequest } from './request-head.ts'
import type { ResponseHead } from './response-head.ts'

/** What an exchange may do to its connection. */
export interface ExchangeConnection {
  pause(): void
  resume(): void
  /** Ends the exchange, and the connection with it. */
  abandon(exchange: UpstreamExchange, reason: Error): void
}

/**
 * One request and its response on a connection. The exchange loses its connection when it is over,
 * so a late call has no effect on the next exchange.
 */
export class UpstreamExchange implements ExchangeControl {
  readonly request: WrittenRequest
  readonly handler: ResponseHandler
  #head: string
  /** The request has been written to its end. */
  isSent = true
  /** A byte of the response has arrived. */
  hasResponse = false
  head: ResponseHead | undefined
  /** How many bytes of the content are still to come, if its length is known. */
  left = 0
  chunks: PlainChunks | undefined
  /** undici reads the rest of the response. */
  unusual: UnusualResponse | undefined
  isPaused = false
  #connection: ExchangeConnection | undefined

  constructor(connection: ExchangeConnection, request: WrittenRequest, handler: ResponseHandler) {
    this.#connection = connection
    this.request = request
    this.#head = request.head
    this.handler = handler
  }

  pause(): void {
    this.isPaused = true
    if (this.unusual !== undefined) this.unusual.pause()
    else this.#connection?.pause()
  }

  resume(): void {
    this.isPaused = false
    // The stream that undici reads resumes the connection when it has room for more data.
    if (this.unusual !== undefined) this.unusual.resume()
    else this.#connection?.resume()
  }

  abort(reason: Error): void {
    this.#connection?.abandon(this, reason)
  }

  /** The head of the request, for its write; empty afterwards. */
  takeHead(): string {
    const head = this.#head
    this.#head = ''
    return head
  }

  /** The exchange is over. */
  detach(): void {
    this.#connection = undefined
  }
}
