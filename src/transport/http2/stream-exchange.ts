import type { ClientHttp2Session, ClientHttp2Stream, OutgoingHttpHeaders } from 'node:http2'
import { GatewayError, reason } from '../../core/errors.ts'
import { endStreamFlag, errorCodes } from '../../wire/http2-codes.ts'
import { shortBytes } from '../../wire/read-buffers.ts'
import type { ExchangeControl, Progress, RawFields, ResponseHandler, UpstreamRequest } from '../transport.ts'
import { upstreamError } from '../upstream-error.ts'

/** A request, and what receives its response. */
export interface Http2Request {
  readonly request: UpstreamRequest
  readonly fields: OutgoingHttpHeaders
  readonly handler: ResponseHandler
  /** It was sent before, and is not sent a third time. */
  readonly isSecond?: boolean
}

/** What an exchange needs of its connection. */
export interface ExchangeConnection {
  /** Why the connection has ended. Absent: it is open. */
  readonly lost: GatewayError | undefined
  /** The last stream that the upstream has begun to process (RFC 9113 §6.8). */
  readonly lastStreamId: number
  /** A response was received on it. */
  hasServed: boolean
  /** The request has to be sent on another connection. */
  resend(sent: Http2Request): void
  /** The exchange was aborted. */
  cancelled(why: GatewayError): void
  /** The stream is closed. */
  released(exchange: StreamExchange): void
}

const noFields: RawFields = []
const tooShort = new GatewayError('ERR_UPSTREAM_RESPONSE', 'the content is shorter than its Content-Length')
const resetInContent = new GatewayError(
  'ERR_UPSTREAM_RESPONSE',
  'the stream was reset with NO_ERROR before the end of the content (END_STREAM)',
)
const statusField = ':status'

/** Codes with which an upstream, or nghttp2 in its place, says that its frames are invalid. */
const invalid: ReadonlySet<number> = new Set([
  errorCodes.protocolError,
  errorCodes.flowControlError,
  errorCodes.frameSizeError,
  errorCodes.compressionError,
  errorCodes.enhanceYourCalm,
])

/** One request and its response on a stream. */
export class StreamExchange implements ExchangeControl {
  readonly #connection: ExchangeConnection
  readonly #sent: Http2Request
  #stream: ClientHttp2Stream | undefined
  #hasBegunBody = false
  #hasResponse = false
  #isPaused = false
  #isOver = false
  /** How many bytes of the content are still to come, if its length is known. */
  #left: number | undefined
  /** The stream was reset before the end of the content. */
  #isReset = false
  #trailers: RawFields = noFields
  /** Why the connection failed. Node.js tells its streams before the connection itself. */
  #cause: GatewayError | undefined

  constructor(connection: ExchangeConnection, sent: Http2Request) {
    this.#connection = connection
    this.#sent = sent
  }

  /** Sends the request. @returns whether there is a stream now */
  start(session: ClientHttp2Session): boolean {
    const { request, fields, handler } = this.#sent
    if (!handler.onSend(this)) {
      this.#isOver = true
      handler.onDone()
      return false
    }
    if (this.#isOver) return false
    try {
      this.#stream = session.request(fields, { endStream: request.body === undefined })
    } catch (error) {
      this.#fail(requestError(error), 'unsent')
      return false
    }
    this.#noteReset(this.#stream)
    this.#stream
      .on('headers', (fields, flags, raw) => this.#onHead(fields[statusField], flags, raw as unknown as string[]))
      .on('response', (fields, flags, raw) => this.#onHead(fields[statusField], flags, raw as unknown as string[]))
      .on('trailers', (_fields, _flags, raw) => (this.#trailers = rawFields(raw as unknown as string[])))
      .on('error', (error) => (this.#cause = isReset(error) ? undefined : upstreamError(error)))
      .once('end', this.#onEnd)
      .once('close', this.#onClose)
    if (request.body !== undefined) this.#writeBody(this.#stream, request.body)
    return true
  }

  pause(): void {
    this.#isPaused = true
    this.#stream?.pause()
  }

  resume(): void {
    this.#isPaused = false
    // Without a receiver, data would be lost.
    if (this.#left !== undefined) this.#stream?.resume()
  }

  abort(why: Error): void {
    if (this.#isOver) return
    const error = upstreamError(why)
    this.#connection.cancelled(error)
    this.#fail(error, this.#progress)
  }

  get #progress(): Progress {
    return this.#hasResponse ? 'responding' : 'sent'
  }

  /**
   * A stream that is reset with NO_ERROR has the events of a complete one. But Node.js pushes the
   * end of the content before it closes the stream only when a frame had END_STREAM.
   */
  #noteReset(stream: ClientHttp2Stream): void {
    const push = stream.push.bind(stream)
    let hasEnded = false
    stream.push = (part, encoding) => {
      if (part === null && !hasEnded) {
        hasEnded = true
        this.#isReset = stream.closed
      }
      return push(part, encoding)
    }
  }

  #writeBody(stream: ClientHttp2Stream, body: NonNullable<UpstreamRequest['body']>): void {
    this.#hasBegunBody = true
    stream.on('drain', () => body.resume())
    body.begin({
      onPart: (part, giveBack) => {
        if (this.#isOver || part.length === 0) return giveBack()
        if (!stream.write(part, giveBack)) body.pause()
      },
      onEnd: () => void stream.end(),
    })
  }

  /** An interim response, or the head of the final one. */
  #onHead(status = 0, flags: number, raw: readonly string[]): void {
    const { handler, request } = this.#sent
    if (this.#isOver || this.#left !== undefined) return
    this.#hasResponse = true
    this.#connection.hasServed = true
    const fields = rawFields(raw)
    this.#try(() => handler.onResponse(status, '', fields))
    if (status < 200) return
    this.#left = contentLength(status, request.method, fields)
    // Without waiting for `end`, so that the head that a gRPC client gets ends its response too.
    if ((flags & endStreamFlag) !== 0 && !this.#isShort) return this.#complete()
    // Only now, because a listener for `data` makes Node.js emit data at once.
    const stream = this.#stream?.on('data', this.#onData)
    if (this.#isPaused) stream?.pause()
  }

  readonly #onData = (part: Buffer): void => {
    const { handler } = this.#sent
    if (this.#isOver) return
    this.#left = (this.#left ?? 0) - part.length
    this.#try(() => (part.length <= shortBytes ? handler.onShortPart(part) : handler.onContent(part, ignore)))
  }

  /** An error of the receiver ends the exchange. */
  #try(deliver: () => void): void {
    try {
      deliver()
    } catch (error) {
      this.abort(error as Error)
    }
  }

  readonly #onEnd = (): void => {
    const stream = this.#stream
    if (this.#isOver || stream === undefined || stream.rstCode !== errorCodes.noError) return
    if (this.#left === undefined) return
    // nghttp2 verifies the length, but not when RST_STREAM ends the response.
    if (this.#isShort) return this.#fail(tooShort, 'responding')
    if (this.#isReset && this.#left === Infinity) return this.#fail(resetInContent, 'responding')
    this.#complete()
  }

  /** Content is still missing. */
  get #isShort(): boolean {
    return this.#left !== undefined && this.#left > 0 && this.#left !== Infinity
  }

  #complete(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#dropRest()
    this.#sent.handler.onDone()
    this.#sent.handler.onEnd(this.#trailers)
  }

  readonly #onClose = (): void => {
    this.#connection.released(this)
    const stream = this.#stream
    if (this.#isOver || stream === undefined) return
    const { lastStreamId } = this.#connection
    // It was not processed, and may be sent again (RFC 9113 §6.8, §8.7).
    const isRefused = stream.rstCode === errorCodes.refusedStream || (stream.id ?? Infinity) > lastStreamId
    const error = this.#lost ?? resetError(stream.rstCode)
    if (this.#hasResponse) return this.#fail(error, 'responding')
    if (this.#mayResend(isRefused)) {
      this.#isOver = true
      return this.#connection.resend({ ...this.#sent, isSecond: true })
    }
    this.#fail(error, isRefused && !this.#hasBegunBody ? 'unsent' : 'sent')
  }

  /** A safe request may be lost when its connection was idle and is closed (RFC 9110 §9.2.2). */
  #mayResend(isRefused: boolean): boolean {
    const { request, isSecond = request.isRepetition } = this.#sent
    if (isSecond === true || this.#hasBegunBody) return false
    const isSafe = request.method === 'GET' || request.method === 'HEAD'
    const isLost = this.#lost?.code === 'ERR_UPSTREAM_UNREACHABLE' && this.#connection.hasServed
    return isRefused || (isLost && isSafe)
  }

  get #lost(): GatewayError | undefined {
    return this.#cause ?? this.#connection.lost
  }

  #fail(error: GatewayError, progress: Progress): void {
    this.#isOver = true
    this.#dropRest()
    this.#sent.handler.onDone()
    this.#sent.handler.onError(error, progress)
  }

  /** Drops what has not arrived yet of the request and the response. */
  #dropRest(): void {
    if (this.#hasBegunBody) this.#sent.request.body?.destroy()
    if (this.#stream?.closed === false) this.#stream.close(errorCodes.cancel)
    // Data that waits would keep the stream open.
    this.#stream?.resume()
  }
}

/** @returns `Infinity` when the length is unknown */
function contentLength(status: number, method: string, fields: RawFields): number {
  if (method === 'HEAD' || status === 204 || status === 304) return 0
  const at = fields.findIndex((text, at) => at % 2 === 0 && text === 'content-length')
  return at < 0 ? Infinity : Number(fields[at + 1])
}

/** Without pseudo-header fields. */
function rawFields(raw: readonly string[]): RawFields {
  return raw.filter((_, at) => raw[at - (at % 2)]?.startsWith(':') !== true)
}

function isReset(error: Error): boolean {
  return 'code' in error && error.code === 'ERR_HTTP2_STREAM_ERROR'
}

function requestError(error: unknown): GatewayError {
  const isRepeated = error instanceof Error && 'code' in error && error.code === 'ERR_HTTP2_HEADER_SINGLE_VALUE'
  return isRepeated ? new GatewayError('ERR_REQUEST_MALFORMED', reason(error), { cause: error }) : upstreamError(error)
}

function resetError(code: number | undefined): GatewayError {
  const name = resetNames.get(code ?? 0) ?? String(code)
  if (code === errorCodes.noError)
    return new GatewayError('ERR_UPSTREAM_RESPONSE', 'the upstream ended the stream without a response')
  return new GatewayError(
    code !== undefined && invalid.has(code) ? 'ERR_UPSTREAM_RESPONSE' : 'ERR_UPSTREAM_UNREACHABLE',
    `the stream was reset: ${name}`,
  )
}

/** RFC 9113 §7. */
const resetNames: ReadonlyMap<number, string> = new Map(
  [
    ...['NO_ERROR', 'PROTOCOL_ERROR', 'INTERNAL_ERROR', 'FLOW_CONTROL_ERROR', 'SETTINGS_TIMEOUT', 'STREAM_CLOSED'],
    ...['FRAME_SIZE_ERROR', 'REFUSED_STREAM', 'CANCEL', 'COMPRESSION_ERROR', 'CONNECT_ERROR', 'ENHANCE_YOUR_CALM'],
    ...['INADEQUATE_SECURITY', 'HTTP_1_1_REQUIRED'],
  ].map((name, code) => [code, name]),
)

function ignore(): void {}
