import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { Dispatcher } from 'undici'
import { GatewayError } from '../../core/errors.ts'
import { Client } from '../../wire/undici.ts'
import { announcesContent, maxHeadBytes } from '../http1/response-head.ts'
import type { RawFields } from '../transport.ts'

/** What has arrived of a response, and where the rest comes from. */
export interface Arrived {
  readonly method: string
  /** All bytes of the response that have arrived, from its beginning. */
  readonly bytes: Buffer
  /** The source of further bytes. It is paused while undici is behind. */
  readonly socket: Socket
}

/** Receives what undici reads. Exactly one of `onEnd` and `onError` is called, once. */
export interface UnusualResponseHandler {
  onHead(status: number, statusMessage: string, fields: RawFields): void
  onPart(part: Buffer): void
  onEnd(trailers: RawFields): void
  onError(error: Error): void
}

/**
 * Lets undici read a response that our own client does not read. The request was written before.
 * undici never gets the socket: it reads from a stream of our own, which drops what undici writes.
 */
export class UnusualResponse {
  readonly #bytes: ResponseBytes
  readonly #client: Dispatcher
  readonly #reader: UndiciHandler

  constructor({ method, bytes, socket }: Arrived, handler: UnusualResponseHandler) {
    const stream = new ResponseBytes(socket, bytes)
    this.#bytes = stream
    this.#client = new Client('http://upstream', {
      connect: (_, connected) => queueMicrotask(() => connected(null, stream as unknown as Socket)),
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: maxHeadBytes,
    })
    this.#reader = new UndiciHandler(handler, () => this.close())
    this.#client.dispatch({ method: method as Dispatcher.HttpMethod, path: '/', reset: true }, this.#reader)
  }

  /** More of the response has arrived. */
  arrive(bytes: Buffer): void {
    this.#bytes.arrive(bytes)
  }

  /** The upstream sends no more. */
  end(): void {
    this.#bytes.endAfterReading()
  }

  /** The connection has failed. */
  fail(error: GatewayError): void {
    // The error does not go through the stream. undici treats ECONNRESET as the end of a response
    // without a length, so an incomplete response would look complete.
    this.#reader.fail(error)
  }

  pause(): void {
    this.#bytes.isHeld = true
    this.#reader.pause()
  }

  resume(): void {
    this.#bytes.isHeld = false
    this.#reader.resume()
  }

  /** Stops reading. No method of the handler is called any more. */
  close(): void {
    this.#reader.stop()
    void this.#client.destroy().catch(() => {})
  }
}

/** How much undici reads at once, and how much may wait for it, in bytes. */
const readAheadBytes = 64 * 1024

/** The bytes of a response as a stream, no faster than undici reads them. */
class ResponseBytes extends Duplex {
  readonly #socket: Socket
  #first: Buffer | undefined
  #hasEnded = false
  /** The reader is paused. */
  isHeld = false

  constructor(socket: Socket, first: Buffer) {
    super({ allowHalfOpen: true, readableHighWaterMark: readAheadBytes })
    this.#socket = socket
    this.#first = first
    // undici does not always listen, and an error without a listener ends the process.
    this.on('error', () => {})
  }

  arrive(bytes: Buffer): void {
    if (this.#first !== undefined) this.#first = Buffer.concat([this.#first, bytes])
    else if (!this.push(bytes)) this.#socket.pause()
  }

  override _read(): void {
    this.#socket.resume()
  }

  /** undici writes its request. It rejects data of the response that arrives earlier. */
  override _write(_: Buffer, __: BufferEncoding, written: () => void): void {
    const first = this.#first
    this.#first = undefined
    if (first !== undefined) this.push(first)
    written()
  }

  endAfterReading(): void {
    this.#hasEnded = true
    this.#endWhenRead()
  }

  /**
   * undici reads all that has arrived, and puts back the rest when its parser is paused. A stream
   * that was read to its end asks for more data, so each pause would add data. The limit for one
   * read leaves the data that undici cannot take yet in the stream.
   */
  override read(size = this.readableLength > readAheadBytes ? readAheadBytes : undefined): Buffer | null {
    const bytes = super.read(size) as Buffer | null
    if (bytes === null && this.#hasEnded) this.#endWhenRead()
    return bytes
  }

  /**
   * Delays the end until undici has read everything and is not paused. If a connection ends while
   * the parser is paused, undici passes the rest of the content in spite of the pause
   * (nodejs/undici#5360).
   */
  #endWhenRead(): void {
    const isRead = this.#first === undefined && this.readableLength === 0
    if (isRead && !this.isHeld && !this.readableEnded && !this.destroyed) this.push(null)
  }
}

/**
 * Translates between undici's handler and ours. A 204 or 304 is complete after its head. If it
 * announces content, undici would wait for that content, so this handler ends the response.
 */
class UndiciHandler implements Dispatcher.DispatchHandler {
  readonly #handler: UnusualResponseHandler
  readonly #onOver: () => void
  #controller: Dispatcher.DispatchController | undefined
  #isPaused = false
  #isOver = false

  /** @param onOver is called after the last method of the handler */
  constructor(handler: UnusualResponseHandler, onOver: () => void) {
    this.#handler = handler
    this.#onOver = onOver
  }

  pause(): void {
    this.#isPaused = true
    this.#controller?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#controller?.resume()
  }

  stop(): void {
    this.#isOver = true
  }

  fail(error: Error): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#handler.onError(error)
    this.#onOver()
  }

  #end(trailers: RawFields): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#handler.onEnd(trailers)
    this.#onOver()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#isPaused) controller.pause()
  }

  /** @throws {GatewayError} when an interim response announces content (RFC 9112 §6.3) */
  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[]>,
    statusMessage = '',
  ): void {
    const announces =
      (status < 200 || status === 204 || status === 304) &&
      announcesContent(headers['transfer-encoding'] !== undefined, headers['content-length']?.toString())
    if (announces && status < 200)
      throw new GatewayError('ERR_UPSTREAM_RESPONSE', `an interim response (${status}) announces content`)
    if (!this.#isOver) this.#handler.onHead(status, statusMessage, rawFields(controller.rawHeaders))
    if (announces) this.#end([])
  }

  /**
   * When undici resumes without data, it reports an empty part. The handler must not get that part,
   * because it could pause again, and the end of the connection would wait ({@link ResponseBytes}).
   */
  onResponseData(_: Dispatcher.DispatchController, part: Buffer): void {
    if (!this.#isOver && part.length > 0) this.#handler.onPart(part)
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    this.#end(rawFields(controller.rawTrailers))
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.fail(error)
  }
}

/** undici's type also allows the fields of its HTTP/2 client. Over HTTP/1.1 they are a list. */
function rawFields(fields: Dispatcher.DispatchController['rawHeaders']): RawFields {
  return Array.isArray(fields) ? fields.map((text) => (typeof text === 'string' ? text : text.toString('latin1'))) : []
}
