import { EventEmitter } from 'node:events'
import type { ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { ClientMessage } from '../../http/client-messages.ts'
import { errorCodes } from '../../wire/http2-codes.ts'
import type { RequestHead } from './request-fields.ts'

/**
 * A request of HTTP/2. Its content is that of the stream, with its flow control (RFC 9113 §5.2).
 */
export class StreamRequest extends EventEmitter implements ClientMessage {
  readonly method: string
  readonly url: string
  readonly scheme: string
  readonly httpVersion = '2.0'
  /** HTTP/2 has all that HTTP/1.1 has beyond HTTP/1.0. */
  readonly httpVersionMinor = 1
  readonly headers: ClientMessage['headers']
  readonly rawHeaders: string[]
  readonly socket: Socket
  readonly #stream: ServerHttp2Stream
  #isDelivering = false
  #hasArrived = false
  /** How much content was read, in bytes. */
  readBytes = 0
  readableEnded = false

  constructor(stream: ServerHttp2Stream, socket: Socket, head: RequestHead) {
    super()
    this.#stream = stream
    this.socket = socket
    this.method = head.method
    this.url = head.url
    this.scheme = head.scheme
    this.headers = head.headers
    this.rawHeaders = head.rawHeaders
    stream.once('end', this.#onEnd).once('close', () => this.emit('close'))
  }

  get complete(): boolean {
    return this.#stream.endAfterHeaders || this.#hasArrived
  }

  get destroyed(): boolean {
    return this.#stream.destroyed
  }

  override on(event: string, listener: Parameters<EventEmitter['on']>[1]): this {
    super.on(event, listener)
    if (event === 'data') this.#deliver()
    return this
  }

  pause(): this {
    this.#stream.pause()
    return this
  }

  /** Without a listener for `data`, the content is dropped. */
  resume(): this {
    this.#deliver()
    this.#stream.resume()
    return this
  }

  isPaused(): boolean {
    return this.#stream.isPaused()
  }

  /** For Node.js, content also ends when the client resets the stream or the connection is lost. */
  readonly #onEnd = (): void => {
    if (this.#stream.aborted || this.#stream.rstCode !== errorCodes.noError) return
    this.#hasArrived = true
    if (this.#isDelivering) this.#end()
  }

  #end(): void {
    this.readableEnded = true
    this.emit('end')
  }

  #deliver(): void {
    if (this.#isDelivering) return
    this.#isDelivering = true
    this.#stream.on('data', (part: Buffer) => {
      this.readBytes += part.length
      this.emit('data', part)
    })
    // The end of empty content does not wait for a reader. This one has not listened for it yet.
    if (this.#hasArrived) process.nextTick(() => this.#end())
  }
}
