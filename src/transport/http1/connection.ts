import { connect, type Socket } from 'node:net'
import type { Dispatcher } from 'undici'
import { GatewayError } from '../../core/errors.ts'
import type { RequestBody } from '../../http/request-body.ts'
import { type AnswerHandler, shortBytes } from '../response-handler.ts'
import { handOver, type HandedOver } from '../undici/handed-over.ts'
import { PlainChunks } from './chunks.ts'
import { ReadBuffer } from './read-buffers.ts'
import { type AnswerHead, mayBecomePlain, plainAnswerHead } from './response-head.ts'

/** A request as it is written. */
export interface WrittenRequest {
  readonly method: string
  /** Request line and fields with the empty line; a character is a byte. */
  readonly head: string
  readonly body: RequestBody | undefined
  /** The body has no Content-Length and goes in chunks. */
  readonly isChunked: boolean
}

export interface ConnectionOwner {
  /** It can take another request. The upstream keeps it for `keepAliveMs` from now on. */
  free(connection: UpstreamConnection, keepAliveMs: number): void
  /** It is closed, or will take no other request. Called once. */
  gone(connection: UpstreamConnection): void
  /**
   * The connection was closed when it was used again, before a byte of the response: the request
   * has to be sent on a new one.
   */
  resend(request: WrittenRequest, handler: AnswerHandler): void
}

export interface ConnectionTarget {
  readonly host: string
  readonly port: number
  readonly connectTimeoutMs: number
  /** How long a connection is kept without a request, in ms; 0: not at all. */
  readonly keepAliveMs: number
  /** After so many ms a connection takes no other request, so that the host is resolved again. */
  readonly lifetimeMs: number
}

/**
 * A part of an answer that takes less of the buffer is copied; a larger one is lent with it, and
 * the connection gets another buffer.
 */
const copiedShare = 1 / 4
const headEnd = Buffer.from('\r\n\r\n')
const chunkedHead = Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
const noHeaders = {}
const connectTimeout = new GatewayError('ERR_UPSTREAM_TIMEOUT', 'no connection within connect_timeout')

/**
 * One connection to an upstream, for one request at a time: it writes requests and reads plain
 * answers. An answer that is not plain is handed over with all of its bytes to undici, which reads
 * on from there, and the connection is not used again.
 *
 * That no answer reaches another's request comes before everything else: a connection takes the
 * next request only when the last one was written to its end and answered to the byte; anything
 * that arrives unasked closes it; and what belonged to an exchange ({@link Turn}) can do nothing to
 * the connection any more once that is over.
 */
export class UpstreamConnection {
  readonly #socket: Socket
  readonly #owner: ConnectionOwner
  /** In ms, on the clock of `performance.now`. */
  readonly createdAt = performance.now()
  #hasServed = false
  #turn: Turn | undefined
  /** The beginning of a head whose end has not arrived. */
  #head: Buffer | undefined
  #buffer: ReadBuffer | undefined
  #wasFull = false
  #isGone = false

  constructor(target: ConnectionTarget, owner: ConnectionOwner) {
    this.#owner = owner
    this.#socket = connect({
      host: target.host,
      port: target.port,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 60_000,
      onread: { buffer: this.#nextBuffer, callback: this.#read },
    })
    const timer = setTimeout(() => this.#fail(connectTimeout), target.connectTimeoutMs)
    this.#socket
      .once('connect', () => clearTimeout(timer))
      .once('close', () => {
        clearTimeout(timer)
        this.#closed()
        // Nothing is read any more.
        this.#buffer?.giveBack()
        this.#buffer = undefined
      })
      .once('end', () => this.#closed())
      .on('error', (error) => this.#fail(error))
      .on('drain', () => this.#turn?.request.body?.resume())
  }

  /**
   * Sends a request. Only a connection that is new or was reported free may take one.
   * @throws what `onRequestStart` throws; nothing has been sent then
   */
  send(request: WrittenRequest, handler: AnswerHandler): void {
    const turn = new Turn(this, request, handler)
    handler.onRequestStart?.(turn, {})
    this.#turn = turn
    this.#socket.write(request.head, 'latin1')
    if (request.body !== undefined) this.#sendBody(turn, request.body)
  }

  /** Closes it, whatever it is doing. Its exchange is told. */
  destroy(error: Error): void {
    this.#hasServed = false
    this.#fail(error)
  }

  /** @internal of {@link Turn}: what is not over is broken off. */
  abandon(turn: Turn, reason: Error): void {
    this.#failTurn(turn, reason)
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  #sendBody(turn: Turn, body: RequestBody): void {
    const { isChunked } = turn.request
    turn.isSent = false
    body.on('data', (chunk: Buffer) => {
      if (this.#turn !== turn || chunk.length === 0) return
      if (!isChunked) {
        if (!this.#socket.write(chunk)) body.pause()
        return
      }
      this.#socket.cork()
      this.#socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1')
      this.#socket.write(chunk)
      if (!this.#socket.write('\r\n', 'latin1')) body.pause()
      this.#socket.uncork()
    })
    body.once('end', () => {
      if (this.#turn !== turn) return
      if (isChunked) this.#socket.write('0\r\n\r\n', 'latin1')
      turn.isSent = true
    })
  }

  readonly #nextBuffer = (): Buffer => (this.#buffer ??= ReadBuffer.take(this.#wasFull)).memory

  /** What has arrived. The next is read into the same buffer, unless a part of it was lent. */
  readonly #read = (length: number): boolean => {
    const turn = this.#turn
    const buffer = this.#buffer as ReadBuffer
    const bytes = buffer.memory.subarray(0, length)
    this.#wasFull = length === buffer.memory.length
    if (turn === undefined) this.#close()
    else if (turn.handedOver !== undefined) turn.handedOver.arrive(Buffer.from(bytes))
    else if (turn.head === undefined) this.#readHead(turn, bytes)
    else this.#readContent(turn, turn.head, bytes)
    if (buffer.isLent) {
      this.#buffer = undefined
      buffer.giveBack()
    }
    return true
  }

  #readHead(turn: Turn, bytes: Buffer): void {
    const input = this.#head === undefined ? bytes : Buffer.concat([this.#head, bytes])
    this.#head = undefined
    const end = input.indexOf(headEnd)
    if (end < 0) {
      if (mayBecomePlain(input.toString('latin1'))) this.#head = Buffer.from(input)
      else this.#handOver(turn, input)
      return
    }
    const head = plainAnswerHead(input.toString('latin1', 0, end), turn.request.method)
    if (head === undefined) {
      this.#handOver(turn, input)
      return
    }
    turn.head = head
    turn.rawHeaders = head.lines as string[]
    if (head.content === 'chunked') turn.chunks = new PlainChunks()
    else turn.left = head.content
    if (!turn.tell(() => turn.handler.onResponseStart?.(turn, head.status, noHeaders, head.statusMessage))) return
    this.#readContent(turn, head, input.subarray(end + 4))
  }

  #readContent(turn: Turn, head: AnswerHead, bytes: Buffer): void {
    if (turn.chunks !== undefined) {
      this.#readChunks(turn, head, turn.chunks, bytes)
      return
    }
    const part = bytes.length > turn.left ? bytes.subarray(0, turn.left) : bytes
    turn.left -= part.length
    if (part.length > 0) this.#deliver(turn, part)
    if (turn.left === 0 && this.#turn === turn) this.#complete(turn, head, bytes.length > part.length)
  }

  #readChunks(turn: Turn, head: AnswerHead, chunks: PlainChunks, bytes: Buffer): void {
    const { event, rest } = chunks.read(bytes, (part) => {
      if (this.#turn === turn) this.#deliver(turn, part)
    })
    if (this.#turn !== turn || event === 'more') return
    if (event === 'end') this.#complete(turn, head, rest.length > 0)
    else if (event === 'unusual') this.#handOver(turn, rest)
    else this.#fail(new GatewayError('ERR_UPSTREAM_ANSWER', 'a chunk of the answer is longer than it says'))
  }

  /** Whoever gets a part may keep it, so it must not be in the buffer that is read into next. */
  #deliver(turn: Turn, part: Buffer): void {
    const { handler } = turn
    const buffer = this.#buffer as ReadBuffer
    turn.tell(() => {
      if (part.length <= shortBytes) handler.onResponseText(turn, part.toString('latin1'))
      else if (part.buffer !== buffer.memory.buffer) handler.onResponseData?.(turn, part)
      else if (part.length < buffer.memory.length * copiedShare) handler.onResponseData?.(turn, Buffer.from(part))
      else handler.onResponseLoan(turn, part, buffer.lend())
    })
  }

  #complete(turn: Turn, head: AnswerHead, hasSurplus: boolean): void {
    const isReusable = turn.isSent && !hasSurplus && head.keepAliveMs > 0 && this.#socket.writable
    if (!isReusable) {
      this.#end(turn)
    } else {
      this.#hasServed = true
      this.#turn = undefined
      turn.detach()
      // It may have been paused by a client that takes its time; nobody would hear when it is
      // closed, or anything of the next answer.
      if (turn.paused) this.#socket.resume()
      this.#owner.free(this, head.keepAliveMs)
    }
    turn.handler.onResponseEnd?.(turn, noHeaders)
  }

  #handOver(turn: Turn, bytes: Buffer): void {
    const { handler } = turn
    // Where the head has been read already, undici is told one that says how the rest is to be
    // read; it is not passed on.
    const isBegun = turn.head !== undefined
    const first = isBegun ? Buffer.concat([chunkedHead, bytes]) : Buffer.from(bytes)
    turn.handedOver = handOver(
      { method: turn.request.method, bytes: first, socket: this.#socket },
      {
        onRequestStart: (reader) => turn.readBy(reader),
        onResponseStart: (reader, ...head) => {
          if (!isBegun) handler.onResponseStart?.(reader, ...head)
        },
        onResponseData: (reader, part) => handler.onResponseData?.(reader, part),
        onResponseEnd: (reader, trailers) => {
          this.#end(turn)
          handler.onResponseEnd?.(reader, trailers)
        },
        onResponseError: (_, error) => this.#failTurn(turn, error),
      },
    )
  }

  /** The upstream will send no more. */
  #closed(): void {
    const { handedOver } = this.#turn ?? {}
    if (handedOver === undefined)
      this.#fail(new GatewayError('ERR_UPSTREAM_UNREACHABLE', 'the upstream closed the connection'))
    else handedOver.noMore()
  }

  #fail(error: Error): void {
    const turn = this.#turn
    if (turn !== undefined && this.#mayResend(turn)) {
      this.#end(turn)
      this.#owner.resend(turn.request, turn.handler)
      return
    }
    // Whoever reads the answer knows what a failure means for it, and tells.
    if (turn?.handedOver !== undefined) turn.handedOver.destroy(error)
    else if (turn !== undefined) this.#failTurn(turn, error)
    this.#close()
  }

  /**
   * Upstreams close connections that are idle, and may do so while a request is on its way. It is
   * sent once more when it is safe and has no content, and when no byte of a response has arrived
   * (RFC 9110 §9.2.2).
   */
  #mayResend({ request, head, handedOver }: Turn): boolean {
    const { method, body } = request
    const isSafe = body === undefined && (method === 'GET' || method === 'HEAD')
    return this.#hasServed && isSafe && head === undefined && handedOver === undefined && this.#head === undefined
  }

  #failTurn(turn: Turn, error: Error): void {
    if (!this.#end(turn)) return
    turn.handler.onResponseError?.(turn, error)
  }

  /** The exchange is over, and the connection with it. */
  #end(turn: Turn): boolean {
    if (this.#turn !== turn) return false
    this.#turn = undefined
    turn.detach()
    // An answer that came before the request was complete is an answer; the rest of the request
    // goes nowhere.
    if (!turn.isSent) turn.request.body?.destroy()
    this.#close()
    return true
  }

  #close(): void {
    this.#socket.destroy()
    if (this.#isGone) return
    this.#isGone = true
    this.#owner.gone(this)
  }
}

/**
 * One exchange on a connection. Once it is over it has no connection any more, and nothing that is
 * asked of it has any effect.
 */
class Turn implements Dispatcher.DispatchController {
  readonly request: WrittenRequest
  readonly handler: AnswerHandler
  isSent = true
  head: AnswerHead | undefined
  /** Of content whose length is known: what is still to come, in bytes. */
  left = 0
  chunks: PlainChunks | undefined
  handedOver: HandedOver | undefined
  rawHeaders: string[] | null = null
  readonly rawTrailers = null
  aborted = false
  paused = false
  reason: Error | null = null
  #reader: Dispatcher.DispatchController | undefined
  #connection: UpstreamConnection | undefined

  constructor(connection: UpstreamConnection, request: WrittenRequest, handler: AnswerHandler) {
    this.#connection = connection
    this.request = request
    this.handler = handler
  }

  pause(): void {
    this.paused = true
    if (this.#reader) this.#reader.pause()
    else this.#connection?.pause()
  }

  resume(): void {
    this.paused = false
    if (this.#reader) this.#reader.resume()
    // Also where somebody else reads by now: it was paused here.
    this.#connection?.resume()
  }

  abort(reason: Error): void {
    this.aborted = true
    this.reason = reason
    this.#reader?.abort(reason)
    this.#connection?.abandon(this, reason)
  }

  readBy(reader: Dispatcher.DispatchController): void {
    this.#reader = reader
    if (this.paused) reader.pause()
  }

  detach(): void {
    this.#connection = undefined
  }

  /** Calls the handler; when it throws, the exchange has failed. Answers whether it goes on. */
  tell(call: () => void): boolean {
    try {
      call()
    } catch (error) {
      this.#connection?.abandon(this, error as Error)
    }
    return this.#connection !== undefined
  }
}
