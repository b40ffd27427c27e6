import type { ClientHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { GatewayError, reason } from '../../core/errors.ts'
import { errorCodes } from '../../wire/http2-codes.ts'
import type { Connect } from '../connect.ts'
import { closedByUpstream, connectTimeout, failUnsent, upstreamError } from '../upstream-error.ts'
import { sessionOptions } from './session-options.ts'
import { type ExchangeConnection, type Http2Request, StreamExchange } from './stream-exchange.ts'

/**
 * After this many cancelled requests a connection is replaced: upstreams close connections with
 * many of them, together with the other requests on it (CVE-2023-44487).
 */
const mostCancelled = 200

export interface Http2ConnectionOwner {
  /** The request has to be sent on another connection. */
  resend(sent: Http2Request): void
  /** The connection has room for another request. */
  hasRoom(): void
  /** The connection is closed. Called once. */
  gone(connection: Http2Connection): void
}

export interface Http2ConnectionOptions {
  readonly connect: Connect
  readonly isTls: boolean
  readonly connectTimeoutMs: number
  readonly keepAliveMs: number
  readonly lifetimeMs: number
  readonly streams: number
  /** The address of the client, which the PROXY header contains where the target gets one. */
  readonly client: string | undefined
}

/**
 * One connection to an upstream, for several requests at a time. No request is sent before both
 * sides have their SETTINGS (RFC 9113 §3.4). So a server that does not speak HTTP/2 gets nothing of
 * a request, the number of streams that the upstream allows is known, and responses are bounded:
 * Node.js limits a head only after the upstream has acknowledged the bound (§6.5.3).
 */
export class Http2Connection implements ExchangeConnection {
  readonly client: string | undefined
  readonly #options: Http2ConnectionOptions
  readonly #owner: Http2ConnectionOwner
  readonly #socket: Socket
  readonly #connectTimer: NodeJS.Timeout
  /** In ms, on the clock of `performance.now`. */
  readonly #createdAt = performance.now()
  #session: ClientHttp2Session | undefined
  #hasSettings = false
  #hasBounds = false
  #isReady = false
  #isRetired = false
  #streams: number
  #waiting: Http2Request[] = []
  readonly #open = new Set<StreamExchange>()
  #idleSince = performance.now()
  #cancelled = 0
  hasServed = false
  lost: GatewayError | undefined
  lastStreamId = Infinity

  constructor(options: Http2ConnectionOptions, owner: Http2ConnectionOwner) {
    this.#options = options
    this.#owner = owner
    this.client = options.client
    this.#streams = options.keepAliveMs === 0 ? 1 : options.streams
    const { socket, readyEvent } = options.connect(undefined, options.client)
    this.#socket = socket
    this.#connectTimer = setTimeout(() => this.#lose(connectTimeout), options.connectTimeoutMs)
    socket
      .once(readyEvent, this.#onReady)
      .on('error', (error) => this.#lose(this.#explained(error)))
      .once('close', () => this.#lose(closedByUpstream))
  }

  /** Another request may be sent on it. */
  get isFree(): boolean {
    const isUsable = !this.#isRetired && this.lost === undefined && !this.#isTooOld
    return isUsable && this.#open.size + this.#waiting.length < this.#streams
  }

  get isIdle(): boolean {
    return this.#open.size === 0 && this.#waiting.length === 0
  }

  get #isTooOld(): boolean {
    return performance.now() - this.#createdAt >= this.#options.lifetimeMs
  }

  /** Sends a request, or keeps it until the connection is ready. */
  send(sent: Http2Request): void {
    const session = this.#session
    if (!this.#isReady || session === undefined) {
      this.#waiting.push(sent)
      return
    }
    const exchange = new StreamExchange(this, sent)
    this.#open.add(exchange)
    if (!exchange.start(session)) this.released(exchange)
  }

  /** Closes the connection when it is idle for too long, or too old. */
  examine(now: number): void {
    if (this.isIdle && (now - this.#idleSince >= this.#options.keepAliveMs || this.#isTooOld)) this.close()
  }

  /** Closes the connection. Its exchanges fail. */
  destroy(error: GatewayError): void {
    // Otherwise exchanges would send lost requests again, on another connection.
    this.hasServed = false
    this.#lose(error)
  }

  /** It takes no further request, and is closed when its exchanges have ended. */
  close(): void {
    this.#isRetired = true
    if (this.isIdle) this.#lose(closedByUpstream)
  }

  resend(sent: Http2Request): void {
    this.#owner.resend(sent)
  }

  /**
   * A connection whose upstream does not respond is not used again, because it may be dead without
   * a sign.
   */
  cancelled({ code }: GatewayError): void {
    this.#cancelled += 1
    if (code === 'ERR_UPSTREAM_TIMEOUT' || this.#cancelled >= mostCancelled) this.close()
  }

  released(exchange: StreamExchange): void {
    if (!this.#open.delete(exchange)) return
    this.#idleSince = performance.now()
    if (this.#isRetired || this.#isTooOld || this.#options.keepAliveMs === 0) this.close()
    else this.#owner.hasRoom()
  }

  readonly #onReady = (): void => {
    const { isTls, streams } = this.#options
    if (isTls && (!('alpnProtocol' in this.#socket) || this.#socket.alpnProtocol !== 'h2'))
      return this.#lose(noHttp2('the server does not offer h2 (ALPN)'))
    // Not with `import`, because only a gateway with such an upstream needs it: it takes memory.
    const session = process.getBuiltinModule('node:http2').connect(isTls ? 'https://upstream' : 'http://upstream', {
      ...sessionOptions,
      createConnection: () => this.#socket,
    })
    this.#session = session
    session.on('error', (error) => this.#lose(this.#explained(error)))
    session.once('close', () => this.#lose(closedByUpstream))
    session.on('goaway', (_code, lastStreamId) => {
      this.lastStreamId = lastStreamId
      this.close()
    })
    session.on('remoteSettings', ({ maxConcurrentStreams = Infinity }) => {
      if (maxConcurrentStreams === 0 && !this.#isReady) return this.#lose(noStreams)
      this.#streams = Math.min(this.#options.keepAliveMs === 0 ? 1 : streams, maxConcurrentStreams)
      this.#hasSettings = true
      this.#beginWhenReady()
    })
    session.once('localSettings', () => {
      this.#hasBounds = true
      this.#beginWhenReady()
    })
  }

  /** Sends the requests that have waited. Those that exceed the bound go elsewhere. */
  #beginWhenReady(): void {
    if (this.#isReady || !this.#hasSettings || !this.#hasBounds) return
    clearTimeout(this.#connectTimer)
    this.#isReady = true
    this.#idleSince = performance.now()
    const waiting = this.#waiting
    this.#waiting = []
    for (const sent of waiting)
      if (this.#open.size < this.#streams) this.send(sent)
      else this.#owner.resend(sent)
    if (this.#isRetired) this.close()
  }

  #lose(error: GatewayError): void {
    if (this.lost !== undefined) return
    this.lost = error
    clearTimeout(this.#connectTimer)
    // The streams close with the session, and each one tells its exchange. Without the error, the
    // content of an open one would end as if it were complete.
    if (this.#session === undefined) this.#socket.destroy()
    else if (this.isIdle) this.#session.destroy()
    else this.#session.destroy(error, errorCodes.cancel)
    for (const { handler } of this.#waiting.splice(0)) failUnsent(handler, error)
    this.#owner.gone(this)
  }

  #explained(error: Error): GatewayError {
    const isAlert = 'code' in error && error.code === 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL'
    if (isAlert || (this.#session !== undefined && !this.#isReady)) return noHttp2(reason(error))
    return upstreamError(error)
  }
}

const noStreams = new GatewayError('ERR_UPSTREAM_UNREACHABLE', 'the upstream allows no request on its connection')

function noHttp2(why: string): GatewayError {
  return new GatewayError(
    'ERR_UPSTREAM_UNREACHABLE',
    `the upstream does not speak HTTP/2, which protocol of the upstream requires: ${why}`,
  )
}
