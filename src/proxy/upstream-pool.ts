import { isIP } from 'node:net'
import { buildConnector, type Dispatcher, Pool } from 'undici'
import type { UpstreamConfig } from '../config/model.ts'
import { reservedNames } from '../identity/reserved-names.ts'
import { forgiving } from './upstream-socket.ts'

/** So many requests may wait for a connection; the next one is turned away. */
const maxWaiting = 4096
const maxHeaderBytes = 64 * 1024

/** The connections to one upstream, and what is worked out once for all of its requests. */
export class UpstreamPool {
  readonly upstream: UpstreamConfig
  readonly reserved: ReadonlySet<string>
  readonly #pool: Pool
  readonly #base: string
  readonly #servername: string
  #waiting = 0

  constructor(upstream: UpstreamConfig) {
    this.upstream = upstream
    this.reserved = reservedNames(upstream)
    this.#base = upstream.url.pathname.replace(/\/$/, '')
    this.#servername = upstream.url.hostname
    this.#pool = new Pool(upstream.url.origin, {
      connections: upstream.maxConnections,
      // Never two requests on the way on one connection: an answer can be taken for another's, and one failure fails both.
      pipelining: 1,
      connect: connector(upstream),
      // The exchange keeps its own time: undici's run in steps of half a second, and cannot let an event stream pause.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: 4_000,
      keepAliveMaxTimeout: 60_000,
      maxHeaderSize: maxHeaderBytes,
      // No interceptor: "retry" would send a POST twice, "redirect" would follow what is meant for the browser.
    })
  }

  get isFull(): boolean {
    return this.#waiting >= maxWaiting
  }

  /** Where a canonical path lies at the upstream. It has no dot segment, so it cannot leave the base path. */
  path(path: string, query: string): string {
    return this.#base + path + query
  }

  /** `handler` calls `started` when its turn has come or it has failed before. */
  dispatch(options: Omit<Dispatcher.DispatchOptions, 'origin'>, handler: Dispatcher.DispatchHandler): void {
    this.#waiting += 1
    // undici takes the name for SNI and for checking the certificate from the Host header, which is the client's.
    const named: Dispatcher.DispatchOptions & { servername: string } = { ...options, servername: this.#servername }
    this.#pool.dispatch(named, handler)
  }

  started(): void {
    this.#waiting -= 1
  }

  /** Lets running exchanges end; `destroy` does not. */
  close(): Promise<void> {
    return this.#pool.close()
  }

  destroy(): Promise<void> {
    return this.#pool.destroy()
  }
}

function connector(upstream: UpstreamConfig): buildConnector.connector {
  const connect = buildConnector({
    timeout: upstream.connectTimeoutMs,
    allowH2: false,
    ...(upstream.ca === undefined ? {} : { ca: upstream.ca }),
  })
  const { hostname } = upstream.url
  const isAddress = isIP(hostname.replace(/^\[|\]$/g, '')) !== 0
  return (options, callback) => {
    // An IP address is no name for SNI (RFC 6066 §3); the certificate is then checked against the address.
    const { servername: _, ...others } = options
    const target = isAddress ? others : { ...others, servername: hostname }
    connect(target, (...[error, socket]) => {
      if (error) callback(error, null)
      else callback(null, forgiving(socket))
    })
  }
}

/** The pools of all upstreams of one configuration. */
export class UpstreamPools {
  readonly #pools: ReadonlyMap<UpstreamConfig, UpstreamPool>

  constructor(upstreams: readonly UpstreamConfig[]) {
    this.#pools = new Map(upstreams.map((upstream) => [upstream, new UpstreamPool(upstream)]))
  }

  /** @throws {RangeError} when the upstream belongs to another configuration */
  of(upstream: UpstreamConfig): UpstreamPool {
    const pool = this.#pools.get(upstream)
    if (!pool) throw new RangeError(`upstream "${upstream.name}" has no connections here`)
    return pool
  }

  /** Lets running exchanges end, and takes no new ones. */
  async close(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.close()))
  }

  /** Breaks running exchanges off. */
  async destroy(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.destroy()))
  }
}
