import { METHODS } from 'node:http'
import { constants, type ServerHttp2Session, type ServerHttp2Stream, type ServerOptions } from 'node:http2'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { LimitsConfig } from '../../config/model/gateway.ts'
import type { ClientMessage, ClientReply, SwitchingReply } from '../../http/client-messages.ts'
import { type Response, writeResponse } from '../../http/response.ts'
import type { BeginRequest } from '../../limits/connection-limits.ts'
import { contentInUseBytes, requestMemory } from '../../limits/memory-budget.ts'
import { replaceAfterCancellations } from '../../wire/http2-cancellations.ts'
import type { ListenerRefusals, RequestBeginning } from '../refusals.ts'
import { FrameBudget } from './frame-budget.ts'
import { type RequestHead, requestHead } from './request-fields.ts'
import { initialWindowBytes } from './session-options.ts'
import { StreamRequest } from './stream-request.ts'
import { StreamResponse } from './stream-response.ts'
import { TunnelStream } from './tunnel-stream.ts'

export interface Http2Options {
  readonly sessionOptions: ServerOptions
  readonly limits: Pick<LimitsConfig, 'headerSizeBytes' | 'headersTimeoutMs'>
  /** How long a connection is kept without a request, and a response unread, in ms. */
  readonly keepAliveMs: number
  request(req: ClientMessage, res: ClientReply): void
  /** A request with an `Expect` that is not supported. */
  expectation(req: ClientMessage, res: ClientReply): void
  upgrade(req: ClientMessage, socket: Duplex, head: Buffer, reply: SwitchingReply): void
  headersTooLarge(beginning: RequestBeginning): Response
  readonly beginRequest: BeginRequest
  readonly refusals: Pick<ListenerRefusals, 'http2' | 'tooLarge'>
}

interface OpenStream {
  readonly head: RequestHead
  readonly req: StreamRequest
  readonly stream: ServerHttp2Stream
}

/** One connection of HTTP/2, with its requests. */
export class Http2Connection {
  readonly #session: ServerHttp2Session
  readonly #socket: Socket
  readonly #options: Http2Options
  readonly #open = new Set<OpenStream>()
  readonly #frames: FrameBudget
  /** The bytes that the heads and the content of ended requests have taken at most. */
  #usefulBytes = 0
  #hasServed = false
  /** It is about to be destroyed. */
  isClosing = false
  /** Since when no request is open, in ms, monotonic. */
  #idleSince = performance.now()

  constructor(session: ServerHttp2Session, socket: Socket, options: Http2Options) {
    this.#session = session
    this.#socket = socket
    this.#options = options
    this.#frames = new FrameBudget(performance.now())
    session.on('error', (error) => this.#failed(error))
    session.on('stream', (stream, _headers, flags, rawHeaders) => {
      stream.on('error', ignore)
      this.#serve(stream, rawHeaders as unknown as string[], (flags & constants.NGHTTP2_FLAG_END_STREAM) === 0)
    })
    replaceAfterCancellations(session)
    // Also without TLS: the client can neither cancel requests nor open windows any more.
    socket.once('end', () => socket.destroy())
  }

  /** All its requests have their responses. */
  get isIdle(): boolean {
    return this.#hasServed && this.#open.size === 0
  }

  /** An estimate of the memory of its requests, and of their responses, in bytes. */
  get heldBytes(): number {
    let bytes = 0
    for (const { head, req, stream } of this.#open) {
      const content = req.complete ? 0 : contentInUseBytes
      bytes += requestMemory(head.bytes) + content + stream.readableLength
    }
    return bytes
  }

  /** What waits for the client to open its windows, in bytes. */
  get unreadBytes(): number {
    let bytes = this.#socket.writableLength
    for (const { stream } of this.#open) bytes += stream.writableLength
    return bytes
  }

  /** Sends GOAWAY. The connection is closed when its requests have their responses. */
  drain(): void {
    if (!this.#session.closed) this.#session.close()
  }

  /** Closes the connection when it is idle for too long, or when its frames carry too little. */
  examine(): void {
    const now = performance.now()
    const useful = [...this.#open].reduce((sum, each) => sum + usefulBytes(each), this.#usefulBytes)
    const { bytesRead, bytesWritten } = this.#socket
    if (!this.#frames.allows({ bytesRead, bytesWritten, useful }, now))
      return this.#session.destroy(new Error('too many frames carry nothing'), constants.NGHTTP2_ENHANCE_YOUR_CALM)
    if (this.#open.size > 0) return
    const { keepAliveMs, limits } = this.#options
    const idleMs = now - this.#idleSince
    const limitMs = this.#hasServed ? keepAliveMs : limits.headersTimeoutMs
    if (idleMs > limitMs) this.drain()
    // The client does not react to the GOAWAY.
    if (idleMs > limitMs + lingerMs) this.#socket.destroy()
  }

  /**
   * Closes the connection as soon as its last frames are written. With them, its client sees that
   * responses are incomplete. Without, one that runs on Node.js would take them for complete.
   */
  destroy(): void {
    this.isClosing = true
    for (const { stream } of [...this.#open])
      if (!stream.writableFinished) stream.close(constants.NGHTTP2_INTERNAL_ERROR)
    setImmediate(() => this.#socket.destroy())
  }

  #serve(stream: ServerHttp2Stream, rawHeaders: readonly string[], hasContent: boolean): void {
    const head = requestHead(rawHeaders, hasContent)
    // The client has cancelled the request before it was served.
    if (stream.closed || stream.destroyed) return void (this.#usefulBytes += head.bytes)
    const req = new StreamRequest(stream, this.#socket, head)
    const opened = { head, req, stream }
    const release = this.#open.size === 0 ? ignore : this.#options.beginRequest(this.#socket)
    // The client may send the request again (RFC 9113 §8.7).
    if (release === undefined) return stream.close(constants.NGHTTP2_REFUSED_STREAM)
    this.#open.add(opened)
    this.#hasServed = true
    stream.once('close', () => {
      release()
      this.#usefulBytes += usefulBytes(opened) + (req.complete ? 0 : initialWindowBytes)
      this.#open.delete(opened)
      this.#idleSince = performance.now()
      forget(stream)
    })
    this.#pass(opened, new StreamResponse(stream, req, this.#options.keepAliveMs))
  }

  #pass({ req, stream, head }: OpenStream, res: StreamResponse): void {
    const { limits, request, expectation, headersTooLarge, upgrade } = this.#options
    if (head.bytes > limits.headerSizeBytes) {
      this.#options.refusals.tooLarge(this.#socket)
      writeResponse({ req, res }, headersTooLarge(beginningOf(head)))
    } else if (!methods.has(head.method)) {
      // As in HTTP/1.1. An application may read `post` as POST, and the rules do not.
      writeResponse({ req, res }, { status: 400, headers: {}, body: '' })
    } else if (head.protocol !== undefined) {
      if (head.protocol.toLowerCase() === 'websocket') upgrade(req, new TunnelStream(stream, req), noBytes, res)
      // WebSockets are the only protocol here. RFC 9220 §3 has this status for HTTP/3.
      else writeResponse({ req, res }, { status: 501, headers: {}, body: '' })
    } else if (req.headers.expect === undefined || /^100-continue$/i.test(req.headers.expect)) request(req, res)
    else expectation(req, res)
  }

  #failed(error: NodeJS.ErrnoException): void {
    // The client has closed the connection, or has sent a GOAWAY with an error.
    if (['ECONNRESET', 'EPIPE', 'ERR_HTTP2_SESSION_ERROR'].includes(error.code ?? '')) return
    this.#options.refusals.http2(this.#socket, error.message)
  }
}

function beginningOf({ method, url, headers }: RequestHead): RequestBeginning {
  const texts = Object.entries(headers).flatMap(([name, value]) =>
    typeof value === 'string' ? [[name, value] as const] : [],
  )
  return { method, path: url.replace(/\?.*$/, ''), headers: Object.fromEntries(texts) }
}

/**
 * Removes the listeners of a closed stream. Node.js keeps the stream until V8 collects old objects,
 * and the listeners would keep what served the request.
 */
function forget(stream: ServerHttp2Stream): void {
  stream.removeAllListeners().on('error', ignore)
}

/** How long a client may take to read the last frames, in ms. */
const lingerMs = 2000

function usefulBytes({ head, req, stream }: OpenStream): number {
  return head.bytes + req.readBytes + stream.readableLength
}

/** The methods that Node.js reads in HTTP/1.1. */
const methods: ReadonlySet<string> = new Set(METHODS)

const noBytes = Buffer.alloc(0)

function ignore(): void {}
