import { GatewayError } from '../../core/errors.ts'
import { type Connect, createConnect } from '../connect.ts'
import type { ResponseHandler, Transport, TransportTarget, UpstreamRequest } from '../transport.ts'
import { closedByGateway, failUnsent, upstreamError } from '../upstream-error.ts'
import { requestFields } from './request-fields.ts'
import type { Http2Request } from './stream-exchange.ts'
import { Http2Connection, type Http2ConnectionOwner } from './upstream-http2-connection.ts'

/** How often connections are examined, in ms. */
const examineEveryMs = 1_000

const noUpgrade = new GatewayError(
  'ERR_UPSTREAM_RESPONSE',
  'WebSockets and other upgrades need protocol: http1, because the gateway does not open them over HTTP/2',
)

/** A target that speaks HTTP/2. */
export interface Http2Target extends TransportTarget {
  /** How many requests a connection carries at the same time, if the target allows as many. */
  readonly streamsPerConnection: number
}

/** A client for HTTP/2: connections to one target, and requests that wait for one. */
export class Http2Transport implements Transport, Http2ConnectionOwner {
  readonly #target: Http2Target
  readonly #connect: Connect
  readonly #connections = new Set<Http2Connection>()
  readonly #queue: Http2Request[] = []
  #examiner: NodeJS.Timeout | undefined
  #isFlushDue = false
  #isClosing = false
  #isDestroyed = false
  readonly #closed = Promise.withResolvers<void>()

  constructor(target: Http2Target) {
    this.#target = target
    this.#connect = createConnect(target, 'h2')
  }

  dispatch(request: UpstreamRequest, handler: ResponseHandler): void {
    if (this.#isClosing) return failUnsent(handler, closedByGateway)
    if (request.upgrade !== undefined) return failUnsent(handler, noUpgrade)
    try {
      const fields = requestFields(request, this.#target.tls === undefined ? 'http' : 'https')
      this.#queue.push({ request, fields, handler })
      this.hasRoom()
    } catch (error) {
      failUnsent(handler, upstreamError(error))
    }
  }

  close(): Promise<void> {
    this.#isClosing = true
    this.#closeUnneeded()
    this.#resolveWhenClosed()
    return this.#closed.promise
  }

  destroy(): Promise<void> {
    this.#isDestroyed = true
    const isClosed = this.close()
    for (const { handler } of this.#queue.splice(0)) failUnsent(handler, closedByGateway)
    for (const connection of [...this.#connections]) connection.destroy(closedByGateway)
    this.#resolveWhenClosed()
    return isClosed
  }

  resend(sent: Http2Request): void {
    if (this.#isDestroyed) return failUnsent(sent.handler, closedByGateway)
    this.#queue.unshift(sent)
    this.hasRoom()
  }

  /** Requests are sent after the data that has arrived on all sockets was read. */
  hasRoom(): void {
    if (this.#isFlushDue) return
    this.#isFlushDue = true
    setImmediate(this.#flush)
  }

  gone(connection: Http2Connection): void {
    this.#connections.delete(connection)
    this.hasRoom()
  }

  readonly #flush = (): void => {
    this.#isFlushDue = false
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      const connection = this.#take(next.request)
      if (connection === undefined) return
      this.#queue.shift()
      connection.send(next)
    }
    this.#closeUnneeded()
    this.#resolveWhenClosed()
  }

  #take({ client }: UpstreamRequest): Http2Connection | undefined {
    const { tellsClient, maxConnections, connectTimeoutMs, keepAliveMs, lifetimeMs, streamsPerConnection } =
      this.#target
    const isShared = tellsClient !== true
    for (const connection of [...this.#connections])
      if ((isShared || connection.client === client) && connection.isFree) return connection
    if (this.#connections.size >= maxConnections) [...this.#connections].find(({ isIdle }) => isIdle)?.close()
    if (this.#connections.size >= maxConnections) return undefined
    const options = { connect: this.#connect, isTls: this.#target.tls !== undefined, client }
    const bounds = { connectTimeoutMs, keepAliveMs, lifetimeMs, streams: streamsPerConnection }
    const connection = new Http2Connection({ ...options, ...bounds }, this)
    this.#connections.add(connection)
    this.#examiner ??= setInterval(this.#examine, examineEveryMs).unref()
    return connection
  }

  readonly #examine = (): void => {
    const now = performance.now()
    for (const connection of [...this.#connections]) connection.examine(now)
    if (this.#connections.size > 0) return
    clearInterval(this.#examiner)
    this.#examiner = undefined
  }

  #closeUnneeded(): void {
    if (this.#isClosing && this.#queue.length === 0) for (const connection of [...this.#connections]) connection.close()
  }

  #resolveWhenClosed(): void {
    if (!this.#isClosing || this.#connections.size > 0 || this.#queue.length > 0) return
    clearInterval(this.#examiner)
    this.#closed.resolve()
  }
}
