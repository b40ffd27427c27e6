import type { Socket } from 'node:net'
import { GatewayError } from '../../core/errors.ts'
import { headEndBytes, headEndOf, incomplete } from '../../wire/fields.ts'
import { type GiveBack, ReadBuffer, shortBytes, usualBytes } from '../../wire/read-buffers.ts'
import { chunk, writeLent, writeWrapped } from '../../wire/writes.ts'
import type { Connect } from '../connect.ts'
import { type RawFields, type RequestContent, type ResponseHandler, SwitchedConnection } from '../transport.ts'
import { UnusualResponse } from '../undici/unusual-response.ts'
import { closedByUpstream, connectTimeout, upstreamError } from '../upstream-error.ts'
import { mayBecomePlain, PlainChunks, plainResponseHead, type ResponseHead } from './response-head.ts'
import { type ExchangeConnection, UpstreamExchange, type WrittenRequest } from './upstream-exchange.ts'

export interface ConnectionOwner {
  /** The connection can take another request. The upstream keeps it open for `keepAliveMs`. */
  free(connection: UpstreamConnection, keepAliveMs: number): void
  /** The connection is closed, or takes no further request. Called once. */
  gone(connection: UpstreamConnection): void
  /**
   * A connection was closed when it was used again, before a byte of the response. The request has
   * to be sent on a new connection (RFC 9110 §9.2.2).
   */
  resend(request: WrittenRequest, handler: ResponseHandler): void
}

export interface ConnectionOptions {
  readonly connect: Connect
  readonly connectTimeoutMs: number
  /** The address of the client, which the PROXY header contains where the target gets one. */
  readonly client: string | undefined
}

/**
 * A part that takes less than this share of its buffer is copied. A larger part is lent to the
 * handler, and the connection takes another buffer. This applies to large buffers only: in a usual
 * one, such a part is short.
 */
const copiedShare = 1 / 4
const chunkedHead = Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
const noFields: RawFields = []

/**
 * One connection to an upstream, for one request at a time. It writes requests and reads plain
 * responses. It passes all bytes of any other response to undici, and is not used again afterwards.
 *
 * The most important rule: a response never reaches the request of another client. So a connection
 * takes the next request only after the previous request was written completely and its response
 * was read to the last byte. Unexpected data closes the connection. An exchange that is over has no
 * access to the connection any more ({@link UpstreamExchange}).
 */
export class UpstreamConnection implements ExchangeConnection {
  readonly #socket: Socket
  readonly #owner: ConnectionOwner
  readonly #connectTimer: NodeJS.Timeout
  /** It carries requests of this client only. */
  readonly client: string | undefined
  /** In ms, on the clock of `performance.now`. */
  readonly createdAt = performance.now()
  /**
   * Requests may be written: the connection is open and, over TLS, the certificate is verified. So
   * the content of a request that is not read was not sent.
   */
  #isReady = false
  #hasServed = false
  #exchange: UpstreamExchange | undefined
  /** The beginning of a response head that has not arrived completely. */
  #head: Buffer | undefined
  #buffer: ReadBuffer | undefined
  #wasFull = false
  /** It receives all data from now on. */
  #switched: SwitchedConnection | undefined
  #isGone = false

  constructor({ connect, connectTimeoutMs, client }: ConnectionOptions, owner: ConnectionOwner) {
    this.#owner = owner
    this.client = client
    const { socket, readyEvent } = connect({ buffer: this.#nextBuffer, callback: this.#onRead }, client)
    this.#socket = socket
    this.#connectTimer = setTimeout(() => this.#fail(connectTimeout), connectTimeoutMs)
    socket
      .once(readyEvent, this.#onReady)
      .once('close', this.#onClose)
      .once('end', this.#onEnd)
      .on('error', this.#onError)
      .on('drain', this.#onDrain)
  }

  /** Sends a request. The connection must be new, or reported free. */
  send(request: WrittenRequest, handler: ResponseHandler): void {
    const exchange = new UpstreamExchange(this, request, handler)
    if (!handler.onSend(exchange)) {
      exchange.detach()
      handler.onDone()
      if (request.isUpgrade) this.#close()
      else this.#owner.free(this, Infinity)
      return
    }
    this.#exchange = exchange
    exchange.isSent = request.body === undefined
    if (this.#isReady) this.#write(exchange)
  }

  /** Closes the connection. Its exchange fails. */
  destroy(error: GatewayError): void {
    // The request is not sent again.
    this.#hasServed = false
    this.#fail(error)
  }

  /** @internal of {@link UpstreamExchange} */
  abandon(exchange: UpstreamExchange, reason: Error): void {
    this.#failExchange(exchange, upstreamError(reason))
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  readonly #onReady = (): void => {
    clearTimeout(this.#connectTimer)
    this.#isReady = true
    if (this.#exchange !== undefined) this.#write(this.#exchange)
  }

  readonly #onEnd = (): void => {
    const { unusual } = this.#exchange ?? {}
    if (unusual !== undefined) unusual.end()
    else this.#fail(closedByUpstream)
  }

  readonly #onClose = (): void => {
    clearTimeout(this.#connectTimer)
    this.#onEnd()
    // Nothing is read into the buffer any more.
    this.#buffer?.giveBack()
    this.#buffer = undefined
  }

  readonly #onError = (error: Error): void => this.#fail(upstreamError(error))

  readonly #onDrain = (): void => void this.#exchange?.request.body?.resume()

  #write(exchange: UpstreamExchange): void {
    const { body } = exchange.request
    // The head leaves together with the content that has arrived until now.
    if (body !== undefined) this.#writeBody(exchange, body)
    const head = exchange.takeHead()
    if (head !== '') this.#socket.write(head, 'latin1')
  }

  #writeBody(exchange: UpstreamExchange, body: RequestContent): void {
    body.begin({
      onPart: (part, giveBack) => {
        if (this.#exchange !== exchange || part.length === 0) return giveBack()
        this.#writePart(exchange, part, giveBack)
        // Node.js asks to wait even if the operating system has taken everything.
        if (this.#socket.writableNeedDrain && this.#socket.writableLength > 0) body.pause()
      },
      onEnd: () => {
        if (this.#exchange !== exchange) return
        if (exchange.request.isChunked) this.#socket.write(`${exchange.takeHead()}0\r\n\r\n`, 'latin1')
        exchange.isSent = true
      },
    })
  }

  #writePart(exchange: UpstreamExchange, part: Uint8Array, giveBack: GiveBack): void {
    const head = exchange.takeHead()
    const wrapped = exchange.request.isChunked ? chunk(head, part) : { before: head, bytes: part, after: '' }
    if (part.length <= shortBytes) {
      writeWrapped(this.#socket, wrapped)
      giveBack()
      return
    }
    writeLent(this.#socket, wrapped, giveBack)
  }

  readonly #nextBuffer = (): Buffer =>
    this.#switched?.memory ?? (this.#buffer ??= ReadBuffer.take(this.#wasFull)).memory

  /** Data has arrived. More is read into the same buffer, unless a part of it was lent. */
  readonly #onRead = (length: number): boolean => {
    const buffer = this.#buffer
    if (buffer === undefined) {
      this.#switched?.arrive(length)
      return true
    }
    this.#wasFull = length === buffer.memory.length
    this.#receive(buffer.memory.subarray(0, length))
    // A connection that is idle must not keep a large buffer.
    const isTooLarge = !this.#wasFull && buffer.memory.length > usualBytes
    if (buffer.isLent || isTooLarge || this.#switched !== undefined) {
      this.#buffer = undefined
      buffer.giveBack()
    }
    return true
  }

  readonly #receive = (bytes: Buffer): void => {
    const exchange = this.#exchange
    if (exchange === undefined) {
      this.#close()
      return
    }
    exchange.hasResponse = true
    if (exchange.unusual !== undefined) exchange.unusual.arrive(Buffer.from(bytes))
    else if (exchange.head === undefined) this.#readHead(exchange, bytes)
    else this.#readContent(exchange, exchange.head, bytes)
  }

  #readHead(exchange: UpstreamExchange, bytes: Buffer): void {
    let input = this.#head === undefined ? bytes : Buffer.concat([this.#head, bytes])
    this.#head = undefined
    let head: ResponseHead | undefined
    let rest = input
    // A client has to ignore a "100 Continue" that it did not ask for (RFC 9110 §15.2).
    do {
      input = rest
      const end = headEndOf(input)
      if (end < 0) {
        if (end === incomplete && mayBecomePlain(input)) this.#head = Buffer.from(input)
        else this.#readUnusual(exchange, input)
        return
      }
      head = plainResponseHead(input, end, exchange.request.method)
      rest = input.subarray(end + headEndBytes)
    } while (head?.status === 100)
    if (head === undefined) {
      this.#readUnusual(exchange, input)
      return
    }
    if (head.status === 101) {
      this.#switch(exchange, head, rest)
      return
    }
    exchange.head = head
    if (head.content === 'chunked') exchange.chunks = new PlainChunks()
    else exchange.left = head.content
    try {
      exchange.handler.onResponse(head.status, head.statusMessage, head.fields)
    } catch (error) {
      this.abandon(exchange, error as Error)
    }
    if (this.#exchange === exchange) this.#readContent(exchange, head, rest)
  }

  #readContent(exchange: UpstreamExchange, head: ResponseHead, bytes: Buffer): void {
    if (exchange.chunks !== undefined) {
      this.#readChunks(exchange, head, exchange.chunks, bytes)
      return
    }
    const part = bytes.length > exchange.left ? bytes.subarray(0, exchange.left) : bytes
    exchange.left -= part.length
    if (part.length > 0) this.#deliver(exchange, part, exchange.left === 0)
    if (exchange.left === 0 && this.#exchange === exchange) this.#complete(exchange, head, bytes.length > part.length)
  }

  #readChunks(exchange: UpstreamExchange, head: ResponseHead, chunks: PlainChunks, bytes: Buffer): void {
    const { event, rest } = chunks.read(bytes, (part) => {
      if (this.#exchange === exchange) this.#deliver(exchange, part, false)
    })
    if (this.#exchange !== exchange || event === 'more') return
    if (event === 'end') this.#complete(exchange, head, rest.length > 0)
    else if (event === 'unusual') this.#readUnusual(exchange, rest)
    else this.#fail(new GatewayError('ERR_UPSTREAM_RESPONSE', 'a chunk of the response is longer than its size'))
  }

  /**
   * The receiver may keep a part, so the part must not be in the buffer that is read into next.
   * Only the last part of a response may be, if it is short: nothing is read before `onEnd`.
   */
  #deliver(exchange: UpstreamExchange, part: Buffer, isLast: boolean): void {
    const { handler } = exchange
    const buffer = this.#buffer
    try {
      if (part.length <= shortBytes) handler.onShortPart(isLast ? part : Buffer.from(part))
      else if (buffer === undefined || part.buffer !== buffer.memory.buffer) handler.onContent(part, nothing)
      else if (part.length < buffer.memory.length * copiedShare) handler.onContent(Buffer.from(part), nothing)
      else handler.onContent(part, buffer.lend())
    } catch (error) {
      this.abandon(exchange, error as Error)
    }
  }

  #complete(exchange: UpstreamExchange, head: ResponseHead, hasSurplus: boolean): void {
    const { request, handler } = exchange
    // An upstream that responds early may not read the rest of the request, which still waits here.
    const isWritten = exchange.isSent && this.#socket.writable && this.#socket.writableLength === 0
    const isReusable = isWritten && !hasSurplus && head.keepAliveMs > 0 && !request.isUpgrade
    if (!isReusable) {
      this.#end(exchange)
    } else {
      this.#hasServed = true
      this.#exchange = undefined
      exchange.detach()
      // A slow client may have paused the socket. A paused socket does not detect its end.
      if (exchange.isPaused) this.#socket.resume()
      this.#owner.free(this, head.keepAliveMs)
    }
    handler.onDone()
    handler.onEnd(noFields)
  }

  /** The connection belongs to the handler from now on. */
  #switch(exchange: UpstreamExchange, { fields }: ResponseHead, rest: Buffer): void {
    const { request, handler } = exchange
    if (!request.isUpgrade) {
      this.#fail(
        new GatewayError('ERR_UPSTREAM_RESPONSE', 'the upstream switched to another protocol without a request for it'),
      )
      return
    }
    const socket = this.#socket
    this.#exchange = undefined
    exchange.detach()
    socket.pause()
    socket.off('close', this.#onClose).off('end', this.#onEnd).off('error', this.#onError).off('drain', this.#onDrain)
    // An error without a listener ends the process.
    socket.on('error', nothing).once('close', () => handler.onDone())
    this.#switched = new SwitchedConnection(socket, rest)
    this.#leave()
    handler.onSwitch(this.#switched, fields)
  }

  #readUnusual(exchange: UpstreamExchange, bytes: Buffer): void {
    const { request, handler } = exchange
    // When the head has been read, undici gets a replacement that announces chunks. The handler
    // does not get the replacement.
    const hasHead = exchange.head !== undefined
    const begun = hasHead ? Buffer.concat([chunkedHead, bytes]) : Buffer.from(bytes)
    const unusual = new UnusualResponse(
      { method: request.method, bytes: begun, socket: this.#socket },
      {
        onHead: (status, statusMessage, fields) => {
          if (!hasHead && this.#exchange === exchange) handler.onResponse(status, statusMessage, fields)
        },
        onPart: (part) => {
          if (this.#exchange !== exchange) return
          if (part.length <= shortBytes) handler.onShortPart(part)
          else handler.onContent(part, nothing)
        },
        onEnd: (trailers) => {
          if (!this.#end(exchange)) return
          handler.onDone()
          handler.onEnd(trailers)
        },
        onError: (error) => this.#failExchange(exchange, upstreamError(error)),
      },
    )
    exchange.unusual = unusual
    if (exchange.isPaused) unusual.pause()
  }

  #fail(error: GatewayError): void {
    const exchange = this.#exchange
    if (exchange !== undefined && this.#mayResend(exchange)) {
      // In this order, because the owner counts as closed when its last connection is gone.
      this.#owner.resend(exchange.request, exchange.handler)
      this.#end(exchange)
      return
    }
    // undici knows what the failure means for the response that it reads, and reports it.
    if (exchange?.unusual !== undefined) exchange.unusual.fail(error)
    else if (exchange !== undefined) this.#failExchange(exchange, error)
    else this.#close()
  }

  /**
   * A safe request without content may be sent again when its connection was used before and closed
   * before a byte of the response (RFC 9110 §9.2.2).
   */
  #mayResend({ request: { method, body, isUpgrade, isRepetition }, hasResponse }: UpstreamExchange): boolean {
    const isSafe = body === undefined && !isUpgrade && (method === 'GET' || method === 'HEAD')
    return this.#hasServed && isSafe && !hasResponse && !isRepetition
  }

  #failExchange(exchange: UpstreamExchange, error: GatewayError): void {
    if (!this.#end(exchange)) return
    exchange.handler.onDone()
    exchange.handler.onError(error, exchange.progress)
  }

  /** Ends an exchange together with the connection. Returns `false` if it was over already. */
  #end(exchange: UpstreamExchange): boolean {
    if (this.#exchange !== exchange) return false
    this.#exchange = undefined
    exchange.detach()
    exchange.unusual?.close()
    // The exchange may end before the request is sent completely. The rest of the request is
    // dropped.
    if (!exchange.isSent && exchange.progress !== 'unsent') exchange.request.body?.destroy()
    this.#close()
    return true
  }

  #close(): void {
    this.#socket.destroy()
    this.#leave()
  }

  #leave(): void {
    if (this.#isGone) return
    this.#isGone = true
    this.#owner.gone(this)
  }
}

function nothing(): void {}
