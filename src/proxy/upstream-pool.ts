import { isIP } from 'node:net'
import type { Dispatcher } from 'undici'
import type { UpstreamConfig } from '../config/model.ts'
import { GatewayError } from '../core/errors.ts'
import { randomToken } from '../core/random.ts'
import { buildConnector, Client, type Connector, Pool } from '../core/undici.ts'
import type { RequestBody } from '../http/request-body.ts'
import { reservedNames } from '../identity/reserved-names.ts'
import type { ConnectionTarget, WrittenRequest } from '../transport/http1/connection.ts'
import { PlainPool } from '../transport/http1/pool.ts'
import { keepAliveMarginMs, maxHeadBytes } from '../transport/http1/response-head.ts'
import type { AnswerHandler } from '../transport/response-handler.ts'
import { Resending } from '../transport/undici/resending.ts'
import { ResponsesWithoutContent } from '../transport/undici/responses-without-content.ts'
import { forgiving } from '../transport/undici/socket.ts'
import { type ConnectionSlot, ConnectionSlots } from './connection-slots.ts'
import { RequestFields } from './upstream-headers.ts'

/** So many requests may wait for a connection; the next one is turned away. */
const maxWaiting = 4096
const reportWaitEveryMs = 10_000
/**
 * After so many ms a connection takes no other request, so that a change of the host's addresses is
 * noticed.
 */
const lifetimeMs = 60_000

export interface UpstreamRequest {
  readonly method: string
  readonly path: string
  /** Name and value in turn. */
  readonly headers: readonly string[]
  /**
   * What follows them: about whom the request is. The same list for as long as that is the same.
   */
  readonly identity: readonly string[]
  readonly body: RequestBody | undefined
  /** The protocols that the upstream may switch to. */
  readonly upgrade: string | undefined
}

/** How many exchanges there are with an upstream in this process. */
export interface UpstreamLoad {
  /** Requests that wait for a connection. */
  readonly waiting: number
  /** Requests that use a connection. */
  readonly requests: number
  /** Event streams, tunnels, and exchanges that have taken longer than some seconds. */
  readonly streams: number
}

export interface UpstreamPoolsOptions {
  /** The gateway takes part in traces. */
  readonly isTracing: boolean
}

/** The connections to one upstream, and what is worked out once for all of its requests. */
export class UpstreamPool {
  readonly upstream: UpstreamConfig
  readonly reserved: ReadonlySet<string>
  /** Whether the upstream has answered a request, with another status than 400. */
  hasAnswered = false
  readonly fields: RequestFields
  /** Marks requests that were sent to this upstream by this process. */
  readonly loopMarker = randomToken(9)
  /** For what is not plain: TLS, and requests to switch to another protocol. */
  readonly #pool: Pool
  readonly #options: NonNullable<ConstructorParameters<typeof Client>[1]>
  readonly #plain: PlainPool | undefined
  readonly #base: string
  readonly #servername: string
  readonly #slots: ConnectionSlots
  #waitReportedAt = -Infinity

  constructor(upstream: UpstreamConfig, upstreams: readonly UpstreamConfig[], { isTracing }: UpstreamPoolsOptions) {
    this.upstream = upstream
    this.reserved = reservedNames(upstream, upstreams)
    this.fields = new RequestFields(this.reserved, isTracing)
    this.#base = upstream.url.pathname.replace(/\/$/, '')
    this.#servername = upstream.url.hostname
    this.#slots = new ConnectionSlots(upstream, maxWaiting)
    const connections = upstream.maxConnections + upstream.maxStreams
    this.#options = {
      // Never two requests on the way on one connection: an answer can be taken for another's, and
      // one failure fails both. 0 is one, on a connection that is closed after it.
      pipelining: upstream.keepAliveMs === 0 ? 0 : 1,
      connect: connector(upstream),
      // The exchange keeps its own time: undici's run in steps of half a second, and cannot let an
      // event stream pause.
      headersTimeout: 0,
      bodyTimeout: 0,
      ...(upstream.keepAliveMs === 0
        ? {}
        : { keepAliveTimeout: upstream.keepAliveMs, keepAliveMaxTimeout: upstream.keepAliveMs }),
      keepAliveTimeoutThreshold: keepAliveMarginMs,
      maxHeaderSize: maxHeadBytes,
    }
    // No interceptor: "retry" would send a POST twice, "redirect" would follow what is meant for
    // the browser.
    this.#pool = new Pool(upstream.url.origin, { ...this.#options, connections, clientTtl: lifetimeMs })
    this.#plain = upstream.url.protocol === 'http:' ? new PlainPool(plainTarget(upstream), connections) : undefined
  }

  /** How many requests wait for a connection, have one, or have become streams. */
  get load(): UpstreamLoad {
    const { waiting, requests, streams } = this.#slots
    return { waiting, requests, streams }
  }

  /** Whether too many requests wait, of all or of this client. */
  isFullFor(client: string): boolean {
    return this.#slots.isFullFor(client)
  }

  /** Whether a long wait for a connection is to be logged. It is at most every ten seconds. */
  reportsWait(): boolean {
    const now = performance.now()
    if (now - this.#waitReportedAt < reportWaitEveryMs) return false
    this.#waitReportedAt = now
    return true
  }

  /**
   * Where a canonical path lies at the upstream. It has no dot segment, so it cannot leave the base
   * path.
   */
  path(path: string, query: string): string {
    return this.#base + path + query
  }

  /**
   * Sends a request as soon as its client may use a connection. The caller releases the slot when
   * it needs the connection no more.
   * @throws {GatewayError} ERR_REQUEST_MALFORMED when there is a control character in a field;
   * nothing has been sent then
   */
  dispatch(request: UpstreamRequest, handler: AnswerHandler, slot: ConnectionSlot): void {
    this.#slots.enter(slot, this.#sending(request, handler, slot))
  }

  /** The exchange lasts: it moves to the bounds of streams. `false`: there are too many of them. */
  keepAsStream(slot: ConnectionSlot): boolean {
    return this.#slots.keepAsStream(slot)
  }

  /** May be called again. */
  release(slot: ConnectionSlot): void {
    this.#slots.release(slot)
  }

  #sending(request: UpstreamRequest, handler: AnswerHandler, slot: ConnectionSlot): () => void {
    const { method, path, headers, identity, body, upgrade } = request
    const plain = this.#plain
    if (plain !== undefined && upgrade === undefined) {
      const text = written(request)
      return () => plain.dispatch(text, handler)
    }
    // undici takes the name for SNI and for checking the certificate from the Host header, which is
    // the client's.
    const named: Dispatcher.DispatchOptions & { servername: string } = {
      method: method as Dispatcher.HttpMethod,
      path,
      headers: [...headers, ...identity],
      body: body ?? null,
      upgrade: upgrade ?? null,
      servername: this.#servername,
    }
    const isSafe = body === undefined && (method === 'GET' || method === 'HEAD')
    const resending = isSafe ? new Resending(handler, (again) => this.#sendOnNew(named, again)) : handler
    const send = () => void this.#pool.dispatch(named, new ResponsesWithoutContent(resending))
    // A slot is released before undici has the connection back, two turns of the event loop later;
    // undici would open another one.
    return () => (slot.waitingSince > 0 ? setImmediate(setImmediate, send) : send())
  }

  /** Sends a request on a connection of its own, which is closed after the response. */
  #sendOnNew(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    const client = new Client(this.upstream.url.origin, { ...this.#options, pipelining: 0 })
    client.dispatch(request, new ResponsesWithoutContent(handler))
    // It takes effect when the response is complete.
    void client.close().catch(() => {})
  }

  /** Lets running exchanges end; `destroy` does not. */
  async close(): Promise<void> {
    this.#slots.startAll()
    // Those that waited are sent two turns of the event loop later.
    await new Promise((resolve) => setImmediate(setImmediate, resolve))
    await Promise.all([this.#pool.close(), this.#plain?.close()])
  }

  async destroy(): Promise<void> {
    this.#slots.startAll()
    await Promise.all([this.#pool.destroy(), this.#plain?.destroy()])
  }
}

function plainTarget({ url, connectTimeoutMs, keepAliveMs }: UpstreamConfig): ConnectionTarget {
  const port = url.port === '' ? 80 : Number(url.port)
  return { host: bareHost(url), port, connectTimeoutMs, keepAliveMs, lifetimeMs }
}

/** `[::1]` → `::1` */
function bareHost({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}

const expectsContent: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])

function written({ method, path, headers, identity, body }: UpstreamRequest): WrittenRequest {
  let head = `${method} ${path} HTTP/1.1\r\n`
  let hasLength = false
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] as string
    if (name.length === 14 && name.toLowerCase() === 'content-length') hasLength = true
    head += line(name, headers[at + 1] as string)
  }
  const isChunked = body !== undefined && !hasLength
  if (isChunked) head += 'Transfer-Encoding: chunked\r\n'
  // RFC 9110 §8.6: said even when there is none.
  else if (!hasLength && expectsContent.has(method)) head += 'Content-Length: 0\r\n'
  // The connection is not used again after HEAD, so the upstream is told to close it.
  const connection = method === 'HEAD' ? 'close' : 'keep-alive'
  return { method, head: `${head}${identityText(identity)}Connection: ${connection}\r\n\r\n`, body, isChunked }
}

const identityTexts = new WeakMap<readonly string[], string>()

/** Made once for a session, not for each of its requests. */
function identityText(lines: readonly string[]): string {
  let text = identityTexts.get(lines)
  if (text !== undefined) return text
  text = ''
  for (let at = 0; at + 1 < lines.length; at += 2) text += line(lines[at] as string, lines[at + 1] as string)
  identityTexts.set(lines, text)
  return text
}

const control = /[^\t\x20-\x7e\x80-\xff]/

/**
 * The parser and the configuration let no control character through. Should one ever come: it must
 * not become a line of its own.
 */
function line(name: string, value: string): string {
  if (control.test(value)) throw new GatewayError('ERR_REQUEST_MALFORMED', `a control character in "${name}"`)
  return `${name}: ${value}\r\n`
}

function connector(upstream: UpstreamConfig): Connector {
  const connect = buildConnector({
    timeout: upstream.connectTimeoutMs,
    allowH2: false,
    ...(upstream.ca === undefined ? {} : { ca: upstream.ca }),
  })
  const { hostname } = upstream.url
  const isAddress = isIP(bareHost(upstream.url)) !== 0
  return (options, callback) => {
    // An IP address is no name for SNI (RFC 6066 §3); the certificate is then checked against the
    // address.
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

  constructor(upstreams: readonly UpstreamConfig[], options: UpstreamPoolsOptions = { isTracing: false }) {
    this.#pools = new Map(upstreams.map((upstream) => [upstream, new UpstreamPool(upstream, upstreams, options)]))
  }

  /** @throws {RangeError} when the upstream belongs to another configuration */
  of(upstream: UpstreamConfig): UpstreamPool {
    const pool = this.#pools.get(upstream)
    if (!pool) throw new RangeError(`upstream "${upstream.name}" has no connections here`)
    return pool
  }

  /** How many exchanges there are with each upstream, by its name. */
  loads(): readonly (readonly [upstream: string, load: UpstreamLoad])[] {
    return [...this.#pools].map(([{ name }, pool]) => [name, pool.load] as const)
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
