import { type Connect, createConnect } from '../connect.ts'
import type { ResponseHandler, Transport, TransportTarget, UpstreamRequest } from '../transport.ts'
import { closedByGateway, failUnsent, upstreamError } from '../upstream-error.ts'
import { type WrittenRequest, writtenRequest } from './upstream-exchange.ts'
import { type ConnectionOwner, UpstreamConnection } from './upstream-http1-connection.ts'

interface Waiting {
  readonly request: WrittenRequest
  readonly handler: ResponseHandler
}

interface Idle {
  readonly connection: UpstreamConnection
  /** In ms, on the clock of `performance.now`. */
  readonly until: number
}

/** How often idle connections are examined, in ms. */
const sweepMs = 1_000

/** Our own HTTP/1.1 client: connections to one target, and requests that wait for one. */
export class Http1Transport implements Transport, ConnectionOwner {
  readonly #target: TransportTarget
  readonly #connectSocket: Connect
  readonly #open = new Set<UpstreamConnection>()
  /** The connection that was used last is used next, so that unneeded connections expire. */
  readonly #idle: Idle[] = []
  readonly #queue: Waiting[] = []
  #isFlushDue = false
  #sweeper: NodeJS.Timeout | undefined
  #isClosing = false
  readonly #closed = Promise.withResolvers<void>()

  constructor(target: TransportTarget) {
    this.#target = target
    this.#connectSocket = createConnect(target, 'http/1.1')
  }

  /**
   * Sends the request after the data that has arrived on all sockets was read. So an idle
   * connection is not used when it was closed or has received unexpected data.
   */
  dispatch(request: UpstreamRequest, handler: ResponseHandler): void {
    if (this.#isClosing) {
      failUnsent(handler, closedByGateway)
      return
    }
    try {
      this.#queue.push({ request: writtenRequest(request), handler })
      this.#flushSoon()
    } catch (error) {
      failUnsent(handler, upstreamError(error))
    }
  }

  close(): Promise<void> {
    this.#isClosing = true
    this.#closeIdle()
    this.#resolveWhenClosed()
    return this.#closed.promise
  }

  destroy(): Promise<void> {
    const isClosed = this.close()
    for (const { handler } of this.#queue.splice(0)) failUnsent(handler, closedByGateway)
    for (const connection of [...this.#open]) connection.destroy(closedByGateway)
    this.#resolveWhenClosed()
    return isClosed
  }

  free(connection: UpstreamConnection, keepAliveMs: number): void {
    if (this.#isClosing && this.#queue.length === 0) {
      connection.destroy(closedByGateway)
      return
    }
    const now = performance.now()
    const { keepAliveMs: ownKeepAliveMs, lifetimeMs } = this.#target
    if (ownKeepAliveMs === 0 || now - connection.createdAt >= lifetimeMs) {
      connection.destroy(closedByGateway)
      return
    }
    this.#idle.push({ connection, until: now + Math.min(keepAliveMs, ownKeepAliveMs) })
    this.#sweeper ??= setTimeout(this.#sweep, sweepMs).unref()
    if (this.#queue.length > 0) this.#flushSoon()
  }

  gone(connection: UpstreamConnection): void {
    this.#open.delete(connection)
    const at = this.#idle.findIndex((idle) => idle.connection === connection)
    if (at >= 0) this.#idle.splice(at, 1)
    if (this.#queue.length > 0) this.#flushSoon()
    else this.#resolveWhenClosed()
  }

  /** Always on a new connection, because another idle connection may be closed too. */
  resend(request: WrittenRequest, handler: ResponseHandler): void {
    this.#connect(request).send(request, handler)
  }

  #flushSoon(): void {
    if (this.#isFlushDue) return
    this.#isFlushDue = true
    setImmediate(this.#flush)
  }

  readonly #flush = (): void => {
    this.#isFlushDue = false
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      const connection = this.#take(next.request)
      if (connection === undefined) return
      this.#queue.shift()
      connection.send(next.request, next.handler)
    }
    if (!this.#isClosing) return
    // Connections became idle while requests waited.
    this.#closeIdle()
    this.#resolveWhenClosed()
  }

  /** An upgrade always gets a new connection. */
  #take(request: WrittenRequest): UpstreamConnection | undefined {
    const now = performance.now()
    if (!request.isUpgrade)
      for (let idle = this.#takeIdle(request); idle !== undefined; idle = this.#takeIdle(request)) {
        if (idle.until > now) return idle.connection
        idle.connection.destroy(closedByGateway)
      }
    // The oldest idle connection gives way to one for an upgrade, or for another client.
    if (this.#open.size >= this.#target.maxConnections) this.#idle.shift()?.connection.destroy(closedByGateway)
    return this.#open.size < this.#target.maxConnections ? this.#connect(request) : undefined
  }

  /** The latest idle connection on which the request may be sent. */
  #takeIdle({ client }: WrittenRequest): Idle | undefined {
    if (this.#target.tellsClient !== true) return this.#idle.pop()
    const at = this.#idle.findLastIndex(({ connection }) => connection.client === client)
    return at < 0 ? undefined : this.#idle.splice(at, 1)[0]
  }

  #connect({ client }: WrittenRequest): UpstreamConnection {
    const { connectTimeoutMs } = this.#target
    const connection = new UpstreamConnection({ connect: this.#connectSocket, connectTimeoutMs, client }, this)
    this.#open.add(connection)
    return connection
  }

  readonly #sweep = (): void => {
    const now = performance.now()
    for (const { connection, until } of [...this.#idle]) if (until <= now) connection.destroy(closedByGateway)
    this.#sweeper = this.#idle.length > 0 ? setTimeout(this.#sweep, sweepMs).unref() : undefined
  }

  #closeIdle(): void {
    for (const { connection } of this.#idle.splice(0)) connection.destroy(closedByGateway)
  }

  #resolveWhenClosed(): void {
    if (!this.#isClosing || this.#open.size > 0 || this.#queue.length > 0) return
    clearTimeout(this.#sweeper)
    this.#closed.resolve()
  }
}
