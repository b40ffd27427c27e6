import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  request,
  type RequestOptions,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import {
  type AddressInfo,
  connect,
  createServer as createNetServer,
  type Server as NetServer,
  type Socket,
} from 'node:net'
import type { TestContext } from 'node:test'
import type { UpstreamConfig, UpstreamTlsConfig } from '../../src/config/model/upstream.ts'
import type { SessionKey } from '../../src/core/names.ts'
import type { Pass } from '../../src/gate/admission.ts'
import type { RequestFacts } from '../../src/http/request-facts.ts'
import { RequestOrder } from '../../src/listener/request-order.ts'
import { UpgradeResponse } from '../../src/listener/upgrade-response.ts'
import type { Log, LogFields } from '../../src/observe/log.ts'
import { Metrics } from '../../src/observe/metrics.ts'
import { RequestRecord } from '../../src/observe/request-record.ts'
import { carry, carryUpgrade } from '../../src/proxy/carry.ts'
import { LiveStreams } from '../../src/proxy/live-streams.ts'
import type { ProxyParts } from '../../src/proxy/proxy-parts.ts'
import { TargetPool } from '../../src/proxy/targets/target.ts'
import { Upstreams } from '../../src/proxy/upstream.ts'
import { pagesWith } from '../support/pages.ts'
import { loadedUpstream } from '../support/upstream-config.ts'

export const jane = 'tag:jane' as SessionKey
const cookieName = '__Host-gatehouse'
export const isGatewayCookie = (name: string): boolean => name === cookieName || name.startsWith(`${cookieName}-`)

/** TLS to an upstream whose certificate has this authority (PEM). */
export function trusting(ca: string | undefined): UpstreamTlsConfig {
  return { ca, serverName: undefined, clientCertificate: undefined, pinnedKeys: [] }
}

const usual = loadedUpstream(`{ url: http://127.0.0.1:1, max_connections: 16,
  connect_timeout: 2s, response_timeout: 10s, idle_timeout: 10s, headers: { X-Remote-User: sub, X-Email: sub } }`)

export function upstreamConfig(overrides: Partial<UpstreamConfig> = {}): UpstreamConfig {
  const targets = usual.targets.map((target) => ({ ...target, url: overrides.url ?? usual.url }))
  return {
    ...usual,
    eject: undefined,
    keepAliveMs: 4_000,
    maxStreams: 64,
    maxStreamsPerClient: 64,
    targets,
    ...overrides,
  }
}

export interface GatewayOptions {
  readonly upstream?: Partial<UpstreamConfig>
  readonly pass?: Partial<Pass>
  readonly isPage?: boolean
  readonly bodyIdleTimeoutMs?: number
  readonly bodyRateBytesPerSecond?: number
  readonly keepCookies?: ProxyParts['keepCookies']
  readonly tls?: { readonly cert: string; readonly key: string }
}

export interface Gateway {
  readonly port: number
  readonly origin: string
  readonly live: LiveStreams
  readonly logged: { message: string; fields: LogFields }[]
  /** The finished exchanges. */
  readonly records: RequestRecord[]
  readonly server: Server
  readonly upstreams: Upstreams
  readonly metrics: Metrics
}

/** A gateway whose gate treats every client as the signed-in person Jane. */
export async function startGateway(
  t: TestContext,
  upstreamPort: number,
  options: GatewayOptions = {},
): Promise<Gateway> {
  const upstream = upstreamConfig({ url: new URL(`http://127.0.0.1:${upstreamPort}`), ...options.upstream })
  const logged: Gateway['logged'] = []
  const write = (message: string, fields: LogFields = {}): void => void logged.push({ message, fields })
  const log: Log = { debug: write, info: write, warn: write, error: write, announce: write }
  const records: RequestRecord[] = []
  const sink = { ended: (record: RequestRecord) => void records.push(record) }
  const recordOf = (req: IncomingMessage) => new RequestRecord(req.method ?? '', `id-${records.length}`, sink)
  const live = new LiveStreams()
  const metrics = new Metrics()
  const upstreams = new Upstreams([upstream], {
    isTracing: false,
    reservedPrefix: '/.gatehouse/',
    pool: new TargetPool(),
    metrics,
    log,
  })
  const parts: ProxyParts = {
    upstreams,
    live,
    log,
    pages: pagesWith(),
    isGatewayCookie,
    isNotedCookie: () => false,
    notesCookies: false,
    keepCookies: options.keepCookies ?? (() => Promise.resolve()),
    clock: { now: () => Date.now() },
    hasEnded: () => false,
    onActivity: () => {},
    bodyIdleTimeoutMs: options.bodyIdleTimeoutMs ?? 10_000,
    bodyRateBytesPerSecond: options.bodyRateBytesPerSecond ?? 0,
  }
  const pass: Pass = {
    kind: 'pass',
    upstream,
    identity: ['X-Remote-User', 'jane'],
    session: jane,
    caching: 'private',
    ...options.pass,
  }

  const facts = (req: IncomingMessage): RequestFacts => {
    const [path = '/', ...query] = (req.url ?? '/').split(/(?=\?)/)
    return {
      method: req.method ?? 'GET',
      target: { path, segments: path.slice(1).split('/'), query: query.join('') },
      host: 'orders.example.com',
      isPage: options.isPage ?? false,
      isFrame: false,
      isUpgrade: req.headers.upgrade !== undefined,
      secFetchSite: undefined,
      origin: undefined,
      cookie: req.headers.cookie,
      headers: req.headers,
      forwarded: {
        clientAddress: '192.0.2.7',
        proto: 'https',
        host: 'orders.example.com',
        forwardedFor: '192.0.2.7',
      },
    }
  }

  const { tls } = options
  const server = tls
    ? createTlsServer({ ...tls, requireHostHeader: false })
    : createServer({ requireHostHeader: false })
  const order = new RequestOrder(64)
  const inOrder = (req: IncomingMessage, res: ServerResponse) =>
    order.await(req, res, () => carry({ req, res, facts: facts(req), record: recordOf(req) }, pass, parts))
  server.on('request', inOrder)
  server.on('checkContinue', inOrder)
  server.on('upgrade', (req, socket, head) =>
    carryUpgrade(
      { req, socket, reply: new UpgradeResponse(socket, req), head, facts: facts(req), record: recordOf(req) },
      pass,
      parts,
    ),
  )
  const port = await listen(t, server)
  t.after(() => upstreams.destroy())
  const origin = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`
  return { port, origin, live, logged, records, server, upstreams, metrics }
}

async function listen(t: TestContext, server: Server | NetServer): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return (server.address() as AddressInfo).port
}

/** An HTTP upstream. */
export async function httpUpstream(
  t: TestContext,
  handler: (req: IncomingMessage, res: ServerResponse) => unknown,
): Promise<{ port: number; server: Server }> {
  const server = createServer((req, res) => void handler(req, res))
  return { port: await listen(t, server), server }
}

/** A raw upstream. The callback gets the head of each request. */
export async function rawUpstream(t: TestContext, onHead: (socket: Socket, head: string) => void): Promise<number> {
  const server = createNetServer((socket) => {
    let text = ''
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      // The gateway checks whether this is TLS, which is not a request.
      if (text.startsWith('\x16')) return void socket.destroy()
      const end = text.indexOf('\r\n\r\n')
      if (end < 0) return
      const head = text.slice(0, end + 4)
      text = ''
      onHead(socket, head)
    })
  })
  return listen(t, server)
}

/** An upstream that sends this text for each request. */
export function respondingUpstream(t: TestContext, text: string): Promise<number> {
  return rawUpstream(t, (socket) => socket.write(text, 'latin1'))
}

/** A raw client. */
export class RawClient {
  readonly socket: Socket
  #received = ''
  readonly #closed: Promise<unknown>

  constructor(t: TestContext, port: number) {
    this.socket = connect(port, '127.0.0.1')
    this.socket.on('error', () => {})
    this.socket.on('data', (chunk: Buffer) => (this.#received += chunk.toString('latin1')))
    // With `once` of node:events, an error would reject what perhaps nobody waits for.
    this.#closed = new Promise((resolve) => this.socket.once('close', resolve))
    t.after(() => this.socket.destroy())
  }

  get received(): string {
    return this.#received
  }

  send(text: string): this {
    this.socket.write(text, 'latin1')
    return this
  }

  /** Resolves as soon as the received bytes match. */
  async until(pattern: RegExp): Promise<string> {
    while (!pattern.test(this.#received)) {
      if (this.socket.closed) throw new Error(`closed before ${pattern} in: ${this.#received.slice(0, 2000)}`)
      await Promise.race([once(this.socket, 'data'), this.#closed])
    }
    return this.#received
  }

  /** All received bytes, once the connection is closed. */
  async untilClosed(): Promise<string> {
    await this.#closed
    return this.#received
  }
}

export interface Received {
  readonly status: number
  readonly statusMessage: string
  readonly rawHeaders: readonly string[]
  readonly headers: IncomingMessage['headers']
  readonly trailers: IncomingMessage['trailers']
  readonly body: string
}

/** A complete exchange. Rejects when the response is incomplete. */
export async function fetchWhole(
  origin: string,
  options: RequestOptions & { body?: string | Buffer } = {},
): Promise<Received> {
  const { body: content, ...others } = options
  const req = request(origin, { agent: false, ...others })
  req.end(content)
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  let body = ''
  for await (const chunk of res) body += (chunk as Buffer).toString('latin1')
  return {
    status: res.statusCode ?? 0,
    statusMessage: res.statusMessage ?? '',
    rawHeaders: res.rawHeaders,
    headers: res.headers,
    trailers: res.trailers,
    body,
  }
}

export function linesNamed(rawHeaders: readonly string[], name: string): string[] {
  return rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name.toLowerCase())
}
