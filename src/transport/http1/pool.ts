import type { Dispatcher } from 'undici'
import { GatewayError } from '../../core/errors.ts'
import type { AnswerHandler } from '../response-handler.ts'
import { type ConnectionOwner, type ConnectionTarget, UpstreamConnection, type WrittenRequest } from './connection.ts'

interface Waiting {
  readonly request: WrittenRequest
  readonly handler: AnswerHandler
}

interface Idle {
  readonly connection: UpstreamConnection
  /** In ms, on the clock of `performance.now`. */
  readonly until: number
}

/** How often idle connections are looked through, in ms. */
const sweepMs = 1_000

/** Connections to an upstream over plain TCP, and who waits for one. */
export class PlainPool implements ConnectionOwner {
  readonly #target: ConnectionTarget
  readonly #maxConnections: number
  readonly #open = new Set<UpstreamConnection>()
  /** The one that was used last is used next: what is too many grows old. */
  readonly #idle: Idle[] = []
  readonly #queue: Waiting[] = []
  #flushIsDue = false
  #sweeper: NodeJS.Timeout | undefined
  #isClosing = false
  readonly #whenClosed: (() => void)[] = []

  constructor(target: ConnectionTarget, maxConnections: number) {
    this.#target = target
    this.#maxConnections = maxConnections
  }

  /**
   * The request leaves when all that had arrived by now has been read: an idle connection that was
   * closed meanwhile, or on which something came unasked, has been found out by then.
   */
  dispatch(request: WrittenRequest, handler: AnswerHandler): void {
    if (this.#isClosing) {
      handler.onResponseError?.(nothing, closed)
      return
    }
    this.#queue.push({ request, handler })
    this.#flushSoon()
  }

  /** Lets running exchanges end, and takes no new ones. */
  close(): Promise<void> {
    this.#isClosing = true
    for (const { connection } of this.#idle.splice(0)) connection.destroy(closed)
    return new Promise((resolve) => {
      this.#whenClosed.push(resolve)
      this.#resolveWhenClosed()
    })
  }

  /** Breaks running exchanges off. */
  destroy(): Promise<void> {
    const isClosed = this.close()
    for (const { handler } of this.#queue.splice(0)) handler.onResponseError?.(nothing, closed)
    for (const connection of [...this.#open]) connection.destroy(closed)
    this.#resolveWhenClosed()
    return isClosed
  }

  free(connection: UpstreamConnection, keepAliveMs: number): void {
    if (this.#isClosing && this.#queue.length === 0) {
      connection.destroy(closed)
      return
    }
    const now = performance.now()
    const { keepAliveMs: ownKeepAliveMs, lifetimeMs } = this.#target
    if (ownKeepAliveMs === 0 || now - connection.createdAt >= lifetimeMs) {
      connection.destroy(closed)
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

  #flushSoon(): void {
    if (this.#flushIsDue) return
    this.#flushIsDue = true
    setImmediate(this.#flush)
  }

  readonly #flush = (): void => {
    this.#flushIsDue = false
    while (this.#queue.length > 0) {
      const connection = this.#take()
      if (connection === undefined) return
      const { request, handler } = this.#queue.shift() as Waiting
      try {
        connection.send(request, handler)
      } catch {
        // Nobody wants it any more, and nothing has been sent.
        this.free(connection, Infinity)
      }
    }
    this.#resolveWhenClosed()
  }

  /** On a new connection, whatever is idle: another idle one may have been closed, too. */
  resend(request: WrittenRequest, handler: AnswerHandler): void {
    const connection = this.#connect()
    try {
      connection.send(request, handler)
    } catch {
      this.free(connection, Infinity)
    }
  }

  #take(): UpstreamConnection | undefined {
    const now = performance.now()
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (idle.until > now) return idle.connection
      idle.connection.destroy(closed)
    }
    if (this.#open.size >= this.#maxConnections) return undefined
    return this.#connect()
  }

  #connect(): UpstreamConnection {
    const connection = new UpstreamConnection(this.#target, this)
    this.#open.add(connection)
    return connection
  }

  readonly #sweep = (): void => {
    const now = performance.now()
    for (const { connection, until } of [...this.#idle]) if (until <= now) connection.destroy(closed)
    this.#sweeper = this.#idle.length > 0 ? setTimeout(this.#sweep, sweepMs).unref() : undefined
  }

  #resolveWhenClosed(): void {
    if (!this.#isClosing || this.#open.size > 0 || this.#queue.length > 0) return
    clearTimeout(this.#sweeper)
    for (const resolve of this.#whenClosed.splice(0)) resolve()
  }
}

const closed = new GatewayError('ERR_UPSTREAM_UNREACHABLE', 'the gateway shuts down')
/** Of an exchange that never had a connection. */
const nothing: Dispatcher.DispatchController = {
  aborted: false,
  paused: false,
  reason: null,
  abort() {},
  pause() {},
  resume() {},
}
