import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import { type AddressInfo, isIP, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { Address } from '../config/addresses.ts'
import type { LimitsConfig, ListenConfig } from '../config/model/gateway.ts'
import { listenError } from '../core/connection-advice.ts'
import { OperatorError, reason } from '../core/errors.ts'
import { privatePartsLeftOut } from '../core/node-private-parts.ts'
import type { ClientMessage, ClientReply, SwitchingReply } from '../http/client-messages.ts'
import { type Response, writeToSocket } from '../http/response.ts'
import { type BeginRequest, limitConnections, type ConnectionLimitsParts } from '../limits/connection-limits.ts'
import { connectionBytes, type MemoryBudget, tlsConnectionBytes } from '../limits/memory-budget.ts'
import type { Log } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import { Certificates } from './certificate.ts'
import { serveHalfClosedConnections } from './half-closed.ts'
import { countHandshakes } from './handshakes.ts'
import type { Http2Connections } from './http2/connections.ts'
import { sessionOptions } from './http2/session-options.ts'
import { IdleConnections } from './idle-connections.ts'
import { NodeConnections } from './node-connections.ts'
import { Front } from './plain/plain-connection.ts'
import { type RequestBeginning, ListenerRefusals, type ParserError, requestTimeout } from './refusals.ts'
import { RequestOrder } from './request-order.ts'
import { UpgradeResponse } from './upgrade-response.ts'
import { isIgnoredUpgrade, upgradeOptions } from './upgrades.ts'

/** Clients that pipeline, for example apt, send about ten requests at once. */
const maxWaitingRequests = 64
/** How long a connection of a client is kept without a request, in ms. */
const keepAliveMs = 75_000
/**
 * A drain closes connections on which no byte arrives for this time, in ms. Browsers open some in
 * advance. On a newer one, the first request may be on its way.
 */
const unusedAfterMs = 1000
/** A longer head is read by Node's parser. */
const maxPlainHeadBytes = 16 * 1024

type Http2Module = typeof import('./http2/connections.ts')
type Handler = (req: IncomingMessage, res: ServerResponse) => void

export interface ListenerHandlers {
  request(req: ClientMessage, res: ClientReply): void
  /** A request with an `Expect` that is not supported. */
  expectation(req: ClientMessage, res: ClientReply): void
  upgrade(req: ClientMessage, socket: Duplex, head: Buffer, reply: SwitchingReply): void
  /** The response to a request whose header section is too large; it begins like this. */
  headersTooLarge(beginning: RequestBeginning | undefined): Response
  /** The protocols of `Upgrade` that at least one upstream lists, in lower case. */
  readonly upgradeProtocols: readonly string[]
  /** Closes tunnels and event streams. Called repeatedly while the listener drains. */
  closeEndlessStreams(): void
}

/** The sockets that clients connect to. */
export interface Listener {
  /** The address that it listens on. When port 0 is configured, it has the assigned port. */
  readonly address: Address
  /**
   * Accepts no new connections, and closes tunnels and event streams at once, so that their clients
   * connect to another replica. Other requests may take up to `drainTimeoutMs`; then all
   * connections are closed.
   */
  drain(drainTimeoutMs: number): Promise<void>
}

export interface ListenerParts extends ConnectionLimitsParts {
  readonly log: Log
  readonly memory: Pick<MemoryBudget, 'watch' | 'unwatch' | 'arrived' | 'isFull'>
  readonly metrics: Metrics
  /** The descriptor of a socket that listens already. Absent: the listener opens one. */
  readonly socket?: number | undefined
}

/**
 * @param handlers those that serve a request now
 * @throws {OperatorError} when the port cannot be used, or the certificate cannot be read
 */
export async function listen(
  config: ListenConfig,
  limits: LimitsConfig,
  handlers: () => ListenerHandlers,
  parts: ListenerParts,
): Promise<Listener> {
  // Loaded only where clients may use it, because it takes memory.
  const usesHttp2 = config.tls === undefined ? config.h2c : config.http2
  const http2 = usesHttp2 ? await import('./http2/connections.ts') : undefined
  const listener = new ClientListener(config, limits, handlers, { ...parts, http2 })
  await listener.bind()
  return listener
}

class ClientListener implements Listener {
  readonly #config: ListenConfig
  readonly #handlers: () => ListenerHandlers
  readonly #parts: ListenerParts
  readonly #server: Server | TlsServer
  readonly #front: Front | undefined
  /** `undefined`: clients cannot use HTTP/2. */
  readonly #http2: Http2Connections | undefined
  /** Of the connections that Node's server reads. */
  readonly #order = new RequestOrder(maxWaitingRequests)
  readonly #byNode: NodeConnections
  readonly #idle: IdleConnections
  readonly #refusals: ListenerRefusals
  readonly #certificates: Certificates | undefined
  readonly #upgraded = new Set<Duplex>()
  /** Connections that end after the response to the request with an ignored `Upgrade`. */
  readonly #ending = new WeakSet<Socket>()
  /** Closes the connections whose TLS handshake is not complete. Node's server does not. */
  readonly #closeHandshakes: (() => void) | undefined
  #isDraining = false

  constructor(
    config: ListenConfig,
    limits: LimitsConfig,
    handlers: () => ListenerHandlers,
    parts: ListenerParts & { readonly http2: Http2Module | undefined },
  ) {
    const { tls } = config
    this.#config = config
    this.#handlers = handlers
    this.#parts = parts
    this.#byNode = new NodeConnections((bytes) => parts.memory.arrived(bytes))
    this.#certificates = tls && new Certificates(tls, parts.log)
    this.#describeCertificates()
    const listed = () => handlers().upgradeProtocols
    this.#server = createHttpServer(config.http2, this.#certificates, limits, listed)
    this.#refusals = new ListenerRefusals({
      ...parts,
      byNode: this.#byNode,
      order: this.#order,
      headersTooLarge: (beginning) => handlers().headersTooLarge(beginning),
    })
    this.#idle = new IdleConnections(this.#server)
    this.#front = this.#createFront(limits)
    if (this.#front === undefined) this.#server.on(readyEvent(config), this.#handedOver)
    const beginRequest = limitConnections(this.#server, limits, { ...parts, closeIdle: () => this.#closeIdle() })
    this.#http2 = parts.http2 && this.#createHttp2(parts.http2, limits, beginRequest)
    this.#certificates?.renewIn(this.#server as TlsServer)
    // Over TLS, the end of the client's data is the end of the connection (RFC 9112 §9.8).
    if (tls === undefined)
      serveHalfClosedConnections(
        this.#server,
        (socket) =>
          this.#front?.connectionOf(socket)?.response ?? this.#order.currentResponse(this.#nodeConnection(socket)),
      )
    else this.#closeHandshakes = countHandshakes(this.#server as TlsServer, parts.memory, this.#refusals)
    this.#countMemory()
    this.#serve()
  }

  get address(): Address {
    return { host: this.#config.host, port: (this.#server.address() as AddressInfo).port }
  }

  bind(): Promise<void> {
    const [server, { host, port }, { socket }] = [this.#server, this.#config, this.#parts]
    return new Promise((resolve, reject) => {
      server.once('error', (cause: NodeJS.ErrnoException) =>
        reject(new OperatorError(listenError(cause, { host, port }, 'listen'), { cause })),
      )
      // A worker accepts from a given socket itself. With `{ fd }`, the primary would accept, and
      // close what no worker has taken when all of them stop.
      const from = socket === undefined ? { host, port } : givenSocket(socket)
      server.listen(from, () => {
        server.removeAllListeners('error')
        const wrong = socket === undefined ? undefined : this.#otherAddress()
        if (wrong !== undefined) return reject(wrong)
        server.on('error', (error) => this.#parts.log.error('listener.failed', { reason: reason(error) }))
        resolve()
      })
    })
  }

  /**
   * The error of a given socket with another address than `listen`; `undefined` when it has none.
   */
  #otherAddress(): OperatorError | undefined {
    const { host, port } = this.#config
    const given = this.#server.address()
    const isTcp = typeof given === 'object' && given !== null
    if (isTcp && given.port === port && (isIP(host) === 0 || given.address === host)) return undefined
    const text = isTcp ? `${given.address}:${given.port}` : 'not one of TCP'
    return new OperatorError(`listen is ${host}:${port}, but the socket of systemd is ${text}: use the same in both`)
  }

  async drain(drainTimeoutMs: number): Promise<void> {
    this.#isDraining = true
    this.#idle.endAfterResponses()
    this.#http2?.drain()
    this.#certificates?.close()
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    const closeIdle = () => {
      this.#closeIdle()
      this.#idle.closeUnused(unusedAfterMs)
      this.#front?.closeUnused(unusedAfterMs)
      this.#handlers().closeEndlessStreams()
    }
    closeIdle()
    // No event shows that a connection has become idle, or that a response is an event stream.
    const closing = setInterval(closeIdle, 50)
    const limit = setTimeout(() => this.#closeAll(), drainTimeoutMs)
    await closed
    clearInterval(closing)
    clearTimeout(limit)
  }

  #closeIdle(): void {
    this.#idle.close()
    this.#front?.closeIdle()
    this.#http2?.closeIdle()
  }

  #closeAll(): void {
    this.#server.closeAllConnections()
    this.#front?.closeAll()
    this.#http2?.closeAll()
    this.#closeHandshakes?.()
    for (const socket of this.#upgraded) socket.destroy()
  }

  /** Reads plain requests, unless the configuration says that Node's parser reads all of them. */
  #createFront({ headerSizeBytes, headersTimeoutMs }: LimitsConfig): Front | undefined {
    const isTls = this.#config.tls !== undefined
    if (!this.#config.plainPath || !Front.fits(this.#server, isTls)) {
      const why = privatePartsLeftOut() ?? 'another module listens for connections'
      if (this.#config.h2c) throw new OperatorError(`listen.h2c needs private parts of Node.js: ${why}`)
      return undefined
    }
    return new Front(this.#server, isTls, {
      request: (req, res) => this.#handlers().request(req, res),
      isDraining: () => this.#isDraining,
      arrived: (bytes) => this.#parts.memory.arrived(bytes),
      handedOver: this.#handedOver,
      incomplete: (socket) => this.#refusals.incomplete(socket),
      maxHeadBytes: Math.min(headerSizeBytes, maxPlainHeadBytes),
      headersTimeoutMs,
      keepAliveMs,
      openHttp2: this.#config.h2c ? (socket) => this.#http2?.open(socket) : undefined,
    })
  }

  /** Serves the connections whose clients have chosen HTTP/2. */
  #createHttp2({ Http2Connections }: Http2Module, limits: LimitsConfig, beginRequest: BeginRequest): Http2Connections {
    const connections = new Http2Connections({
      request: (req, res) => this.#handlers().request(req, res),
      expectation: (req, res) => this.#handlers().expectation(req, res),
      upgrade: (req, socket, head, reply) => this.#handlers().upgrade(req, socket, head, reply),
      headersTooLarge: (beginning) => this.#handlers().headersTooLarge(beginning),
      isDraining: () => this.#isDraining,
      sessionOptions: sessionOptions(limits),
      beginRequest,
      limits,
      keepAliveMs,
      refusals: this.#refusals,
    })
    if (this.#config.tls === undefined) return connections
    // HTTP/1.1 is served by the listeners up to now.
    const serve = this.#server.listeners('secureConnection')
    this.#server.removeAllListeners('secureConnection')
    this.#server.on('secureConnection', (socket: TLSSocket) => {
      if (socket.alpnProtocol === 'h2') connections.open(socket)
      else for (const each of serve) each.call(this.#server, socket)
    })
    return connections
  }

  /** Node's server has begun to serve a connection. */
  readonly #handedOver = (connection: Duplex): void => {
    this.#byNode.serve(connection)
    if (connection instanceof Socket) this.#idle.serve(connection)
  }

  /** The connection from which Node's server reads the requests of a client. */
  #nodeConnection(socket: Socket): Duplex {
    return this.#front?.connectionOf(socket)?.rest ?? socket
  }

  #describeCertificates(): void {
    const certificates = this.#certificates
    if (certificates === undefined) return
    this.#parts.metrics.gauge({
      name: 'gatehouse_certificate_end_timestamp_seconds',
      help: 'When the first certificate of listen.tls ends, in seconds since 1970.',
      merge: 'min',
      read: () => certificates.firstEnd / 1000,
    })
  }

  /** Counts what connections hold, and closes them when they hold too much. */
  #countMemory(): void {
    const { memory } = this.#parts
    const bytes = this.#config.tls === undefined ? connectionBytes : tlsConnectionBytes
    this.#server.on(readyEvent(this.#config), (socket: Socket) => {
      const plain = () => this.#front?.connectionOf(socket)
      memory.watch(socket, bytes, {
        heldBytes: () =>
          (plain()?.heldBytes ?? 0) +
          this.#byNode.heldBytes(this.#nodeConnection(socket)) +
          (this.#http2?.connectionOf(socket)?.heldBytes ?? 0),
        unreadBytes: () => this.#http2?.connectionOf(socket)?.unreadBytes ?? socket.writableLength,
        close: () => {
          if (plain()?.awaitsHead === true) plain()?.timeOut()
          else if (this.#byNode.awaitsHead(socket)) writeToSocket(socket, requestTimeout)
          else (this.#http2?.connectionOf(socket) ?? socket).destroy()
        },
        isClosing: () => this.#http2?.connectionOf(socket)?.isClosing === true,
      })
    })
    // Before TLS and the parser take memory for it.
    this.#server.prependListener('connection', (socket) => {
      if (memory.isFull) socket.destroy()
    })
  }

  /** Serves the requests that Node's server has read. */
  #serve(): void {
    const request = this.#inOrder((req, res) => this.#handlers().request(req, res))
    this.#server.on('request', request)
    // The proxy sends 100 (Continue) itself, once the request has been admitted.
    this.#server.on('checkContinue', request)
    this.#server.on(
      'checkExpectation',
      this.#inOrder((req, res) => this.#handlers().expectation(req, res)),
    )
    this.#server.on('upgrade', this.#upgrade)
    // Without a listener, Node's server destroys the connection, with all earlier responses.
    this.#server.on('connect', this.#upgrade)
    this.#server.on('clientError', (error: ParserError, socket) => this.#refusals.unreadable(error, socket))
  }

  /**
   * One more request is refused, because too many wait, or after the last response (RFC 9112 §9.6).
   */
  #isOverrun(socket: Duplex): boolean {
    return socket.writableEnded || this.#byNode.hasStopped(socket) || this.#order.isFull(socket)
  }

  #inOrder(handle: Handler): Handler {
    return (req, res) => {
      const { socket } = req
      if (this.#isOverrun(socket)) return this.#refusals.overrun(req)
      this.#byNode.begin(req, res)
      this.#order.await(req, res, () => this.#refuseAfterIgnoredUpgrade(req, res, handle))
    }
  }

  /**
   * Destroys requests that follow an ignored `Upgrade` on the same connection: their bytes may be
   * the content of that request. Such a connection ends after the response, and during a drain
   * each does.
   */
  #refuseAfterIgnoredUpgrade(req: IncomingMessage, res: ServerResponse, handle: Handler): void {
    if (this.#ending.has(req.socket)) return void res.destroy()
    this.#idle.keepFor(res)
    if (isIgnoredUpgrade(req)) this.#ending.add(req.socket)
    // Setting a `Connection` field instead would merge it with the fields of the upstream.
    if (this.#isDraining || this.#ending.has(req.socket)) res.shouldKeepAlive = false
    handle(req, res)
  }

  readonly #upgrade = (req: IncomingMessage, socket: Duplex, head: Buffer): void => {
    socket.on('error', () => {})
    // Node's server stops reading while content waits, and the stream does not notice. Without this
    // call, it would wait for a read under way, and read nothing more.
    socket.push('')
    if (this.#isOverrun(socket)) return this.#refusals.overrun(req)
    this.#byNode.leave(req)
    this.#upgraded.add(socket.once('close', () => this.#upgraded.delete(socket)))
    this.#order.afterResponses(socket, () =>
      this.#handlers().upgrade(req, socket, head, new UpgradeResponse(socket, req)),
    )
  }
}

function givenSocket(descriptor: number): Socket {
  try {
    return new Socket({ fd: descriptor, readable: false, writable: false })
  } catch (cause) {
    const text = `descriptor ${descriptor} of systemd is not a stream socket: write ListenStream in the socket unit`
    throw new OperatorError(text, { cause })
  }
}

/** The event of a new connection whose data can be read. */
function readyEvent({ tls }: ListenConfig): 'connection' | 'secureConnection' {
  return tls === undefined ? 'connection' : 'secureConnection'
}

function createHttpServer(
  http2: boolean,
  certificates: Certificates | undefined,
  limits: LimitsConfig,
  upgradeProtocols: () => readonly string[],
): Server {
  const options = {
    maxHeaderSize: limits.headerSizeBytes,
    headersTimeout: limits.headersTimeoutMs,
    // An upload may take any time while it progresses. The proxy closes it when it does not.
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(limits.headersTimeoutMs / 2, 30_000),
    keepAliveTimeout: keepAliveMs,
    insecureHTTPParser: false,
    // The request handler refuses these requests, because Node would read the next one.
    requireHostHeader: false,
    noDelay: true,
    ...upgradeOptions(upgradeProtocols),
  }
  const server =
    certificates === undefined
      ? createServer(options)
      : createTlsServer({
          ...options,
          ...certificates.options,
          ALPNProtocols: http2 ? ['h2', 'http/1.1'] : ['http/1.1'],
          handshakeTimeout: limits.headersTimeoutMs,
        })
  // Node would drop header fields beyond its limit. The request handler refuses such a request.
  server.maxHeadersCount = 0
  return server
}
