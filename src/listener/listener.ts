import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import { type AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Address } from '../config/model/address.ts'
import type { LimitsConfig, ListenConfig } from '../config/model/gateway.ts'
import { OperatorError, reason } from '../core/errors.ts'
import type { ClientMessage, ClientReply } from '../http/client-messages.ts'
import { listenError } from '../http/listen-error.ts'
import { type RequestBeginning, requestBeginning } from '../http/request-beginning.ts'
import { type Response, writeToSocket } from '../http/response.ts'
import { limitConnections, type ConnectionLimitsParts } from '../limits/connection-limits.ts'
import { connectionBytes, type MemoryBudget, tlsConnectionBytes } from '../limits/memory-budget.ts'
import type { Log } from '../observe/log.ts'
import { readCertificate, renewCertificate } from './certificate.ts'
import { serveHalfClosedConnections } from './half-closed.ts'
import { IdleConnections } from './idle-connections.ts'
import { NodeConnections } from './node-connections.ts'
import { Front } from './plain/front.ts'
import { RequestOrder } from './request-order.ts'
import { type Unreadable, type UnreadableRequests } from './unreadable-requests.ts'
import { isIgnoredUpgrade, isOverrun, upgradeOptions } from './upgrades.ts'

/** Clients that pipeline, for example apt, send about ten requests at once. */
const maxWaitingRequests = 64
/** How long a connection of a client is kept without a request, in ms. */
const keepAliveMs = 75_000
/** A longer head is read by Node's parser. */
const maxPlainHeadBytes = 16 * 1024
const pipeliningHint = 'The client sends requests without reading responses. It got 503, and its connection was closed.'

type Handler = (req: IncomingMessage, res: ServerResponse) => void

export interface ListenerHandlers {
  request(req: ClientMessage, res: ClientReply): void
  /** A request with an `Expect` that is not supported. */
  expectation(req: IncomingMessage, res: ServerResponse): void
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void
  /**
   * The response to a request whose header section is too large, of which this is the beginning.
   */
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
  readonly unreadable: UnreadableRequests
}

/** @throws {OperatorError} when the port cannot be used, or the certificate cannot be read */
export async function listen(
  config: ListenConfig,
  limits: LimitsConfig,
  handlers: ListenerHandlers,
  parts: ListenerParts,
): Promise<Listener> {
  const { log, memory } = parts
  const order = new RequestOrder(maxWaitingRequests)
  const arrived = (bytes: number) => memory.arrived(bytes)
  const byNode = new NodeConnections(arrived)
  const { tls } = config
  let isDraining = false
  const server = createHttpServer(
    config,
    limits,
    upgradeOptions({
      listed: () => handlers.upgradeProtocols,
      // Nothing is read after the last response either (RFC 9112 §9.6).
      isFull: (socket) => socket.writableEnded || order.isFull(socket),
    }),
  )
  const noteOverrun = ({ remoteAddress = 'unknown' }: Socket) =>
    parts.rejectedClients.note('pipelined requests', remoteAddress, pipeliningHint)
  const idle = new IdleConnections(server)
  const handedOver = (connection: Duplex) => {
    byNode.serve(connection)
    if (connection instanceof Socket) idle.serve(connection)
  }
  const incomplete = ({ remoteAddress }: Socket) =>
    parts.unreadable.note('incomplete', remoteAddress, 'the request has not arrived completely')
  const front = createFront(server, config, limits, {
    ...{ handlers, arrived, incomplete, isDraining: () => isDraining, handedOver },
  })
  const readyEvent = tls === undefined ? 'connection' : 'secureConnection'
  if (front === undefined) server.on(readyEvent, handedOver)
  const watcher = tls === undefined ? undefined : renewCertificate(server as TlsServer, tls, log)
  const closeIdle = () => {
    idle.close()
    front?.closeIdle()
  }
  limitConnections(server, limits, { ...parts, closeIdle })
  // Over TLS, the end of the client's data is the end of the connection (RFC 9112 §9.8).
  if (tls === undefined)
    serveHalfClosedConnections(
      server,
      (socket) => front?.currentResponse(socket) ?? order.currentResponse(front?.nodeConnection(socket) ?? socket),
    )
  if (tls !== undefined) countHandshakes(server as TlsServer, parts)
  server.on(readyEvent, (socket: Socket) =>
    memory.watch(socket, tls === undefined ? connectionBytes : tlsConnectionBytes, {
      heldBytes: () =>
        (front?.connectionOf(socket)?.heldBytes ?? 0) + byNode.heldBytes(front?.nodeConnection(socket) ?? socket),
      close: () => {
        const connection = front?.connectionOf(socket)
        if (connection?.awaitsHead === true) connection.timeOut()
        else if (byNode.awaitsHead(socket)) writeToSocket(socket, requestTimeout)
        else socket.destroy()
      },
    }),
  )
  // Before TLS and the parser take memory for it.
  server.prependListener('connection', (socket) => {
    if (memory.isFull) socket.destroy()
  })
  const upgraded = new Set<Duplex>()
  const ending = new WeakSet<Socket>()
  /**
   * Destroys requests that follow an ignored `Upgrade` on the same connection: their bytes may be
   * the content of that request. Such a connection ends after the response, and during a drain
   * each does.
   */
  const refuseAfterIgnoredUpgrade = (req: IncomingMessage, res: ServerResponse, handle: Handler) => {
    if (ending.has(req.socket)) return void res.destroy()
    idle.keepFor(res)
    if (isIgnoredUpgrade(req)) ending.add(req.socket)
    // Setting a `Connection` field instead would merge it with the fields of the upstream.
    if (isDraining || ending.has(req.socket)) res.shouldKeepAlive = false
    handle(req, res)
  }
  /** Reads nothing more from a connection, and sends this response as the last one. */
  const refuseLast = (socket: Duplex, response: Response) => {
    byNode.stop(socket)
    order.refuseLast(socket, () => void writeToSocket(socket, response))
  }
  const refuseOverrun = ({ socket }: IncomingMessage) => {
    if (byNode.hasStopped(socket)) return
    // Nothing is read after the last response (RFC 9112 §9.6).
    if (socket.writableEnded) return byNode.stop(socket)
    noteOverrun(socket)
    refuseLast(socket, tooManyRequests)
  }
  const inOrder = (handle: Handler) => (req: IncomingMessage, res: ServerResponse) => {
    if (req.socket.writableEnded || byNode.hasStopped(req.socket) || order.isFull(req.socket)) return refuseOverrun(req)
    byNode.begin(req, res)
    order.await(req, res, () => refuseAfterIgnoredUpgrade(req, res, handle))
  }
  const request = inOrder((req, res) => handlers.request(req, res))

  server.on('request', request)
  // The proxy sends 100 (Continue) itself, once the request has been admitted.
  server.on('checkContinue', request)
  server.on(
    'checkExpectation',
    inOrder((req, res) => handlers.expectation(req, res)),
  )
  const upgrade = (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => {})
    // Node's server stops reading while content waits, and the stream does not notice. Without this
    // call, it would wait for a read under way, and read nothing more.
    socket.push('')
    if (isOverrun(req)) return refuseOverrun(req)
    byNode.leave(req)
    upgraded.add(socket.once('close', () => upgraded.delete(socket)))
    order.afterResponses(socket, () => handlers.upgrade(req, socket, head))
  }
  server.on('upgrade', upgrade)
  // Without a listener, Node's server destroys the connection, with all earlier responses.
  server.on('connect', upgrade)
  server.on('clientError', (error: ParserError, socket) => {
    if (byNode.hasStopped(socket)) return
    if (error.code === 'ECONNRESET' || socket.destroyed) return void socket.destroy()
    // The client has sent more after its last request, or after the last response (RFC 9112 §9.6).
    if (error.code === 'HPE_CLOSED_CONNECTION' || socket.writableEnded) return byNode.stop(socket)
    const beginning = byNode.beginningOf(socket)
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
      if (beginning !== undefined) incomplete(socket as Socket)
      return refuseLast(socket, requestTimeout)
    }
    const bytes = beginning ?? error.rawPacket
    const reason = reasonOf(error, bytes)
    parts.unreadable.note(reason, (socket as Socket).remoteAddress, error.reason ?? error.message)
    if (reason === 'header_size') refuseLast(socket, handlers.headersTooLarge(requestBeginning(bytes)))
    else refuseLast(socket, reason === 'tls_on_http' ? wrongScheme('http') : malformed)
  })
  await bind(server, config)
  server.on('error', (error) => log.error('listener.failed', { reason: reason(error) }))

  return {
    address: { host: config.host, port: (server.address() as AddressInfo).port },
    drain: async (drainTimeoutMs) => {
      isDraining = true
      idle.endAfterResponses()
      watcher?.close()
      await drain(server, drainTimeoutMs, {
        closeIdle: () => {
          closeIdle()
          handlers.closeEndlessStreams()
        },
        closeAll: () => {
          server.closeAllConnections()
          front?.closeAll()
          for (const socket of upgraded) socket.destroy()
        },
      })
    },
  }
}

/** Counts a connection over TLS until its handshake is complete. Then its TLS socket is counted. */
function countHandshakes(
  server: TlsServer,
  { memory, unreadable }: Pick<ListenerParts, 'memory' | 'unreadable'>,
): void {
  const handshakes = new Map<string, Socket>()
  const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`
  server.on('connection', (socket: Socket) => {
    const peer = peerOf(socket)
    handshakes.set(peer, socket)
    socket.once('close', () => handshakes.delete(peer))
    memory.watch(socket, tlsConnectionBytes, { heldBytes: () => 0, close: () => socket.destroy() })
  })
  server.on('secureConnection', (socket: Socket) => {
    const handshake = handshakes.get(peerOf(socket))
    if (handshake !== undefined) memory.unwatch(handshake)
    handshakes.delete(peerOf(socket))
  })
  server.on('tlsClientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code !== 'ERR_SSL_HTTP_REQUEST') return
    const handshake = handshakes.get(peerOf(socket))
    unreadable.note('http_on_tls', socket.remoteAddress, error.code)
    // TLS has written nothing, so the client can read a response of http.
    if (handshake !== undefined) writeToSocket(handshake, wrongScheme('https'))
  })
}

/** Reads plain requests, unless the configuration says that Node's parser reads all of them. */
function createFront(
  server: Server | TlsServer,
  { plainPath, tls }: ListenConfig,
  { headerSizeBytes, headersTimeoutMs }: LimitsConfig,
  parts: {
    readonly handlers: Pick<ListenerHandlers, 'request'>
    readonly isDraining: () => boolean
    readonly arrived: (bytes: number) => void
    readonly incomplete: (socket: Socket) => void
    readonly handedOver: (connection: Duplex) => void
  },
): Front | undefined {
  if (!plainPath || !Front.fits(server, tls !== undefined)) return undefined
  return new Front(server, tls !== undefined, {
    request: (req, res) => parts.handlers.request(req, res),
    ...{ isDraining: parts.isDraining, arrived: parts.arrived, handedOver: parts.handedOver },
    incomplete: parts.incomplete,
    maxHeadBytes: Math.min(headerSizeBytes, maxPlainHeadBytes),
    headersTimeoutMs,
    keepAliveMs,
  })
}

function createHttpServer(
  { tls }: ListenConfig,
  limits: LimitsConfig,
  upgrades: ReturnType<typeof upgradeOptions>,
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
    ...upgrades,
  }
  const server =
    tls === undefined
      ? createServer(options)
      : createTlsServer({
          ...options,
          ...readCertificate(tls),
          minVersion: 'TLSv1.2',
          handshakeTimeout: limits.headersTimeoutMs,
        })
  // Node would drop header fields beyond its limit. The request handler refuses such a request.
  server.maxHeadersCount = 0
  return server
}

/**
 * Accepts no new connections, and resolves when all connections are closed. `closeIdle` is called
 * repeatedly until then, and `closeAll` after the timeout.
 */
async function drain(
  server: Server,
  drainTimeoutMs: number,
  { closeIdle, closeAll }: { readonly closeIdle: () => void; readonly closeAll: () => void },
): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  closeIdle()
  // No event shows that a connection has become idle, or that a response is an event stream.
  const closing = setInterval(closeIdle, 50)
  const limit = setTimeout(closeAll, drainTimeoutMs)
  await closed
  clearInterval(closing)
  clearTimeout(limit)
}

function bind(server: Server, { host, port }: Address): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) =>
      reject(new OperatorError(listenError(cause, { host, port }, 'listen'), { cause })),
    )
    server.listen({ host, port }, () => {
      server.removeAllListeners('error')
      resolve()
    })
  })
}

const requestTimeout: Response = { status: 408, headers: {}, body: '' }
const malformed: Response = { status: 400, headers: {}, body: '' }
const tooManyRequests = plainText(503, 'Too many requests wait on this connection.\n')

/** The response to a client that uses the other scheme. */
function wrongScheme(scheme: 'http' | 'https'): Response {
  return plainText(400, `This port serves ${scheme} only.\n`)
}

function plainText(status: number, body: string): Response {
  return { status, headers: { 'Content-Type': 'text/plain' }, body }
}

/** An error of Node's parser. */
interface ParserError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer
  readonly reason?: string
}

/** Why Node's parser has rejected a request (RFC 9112 §2.2, RFC 6585 §5). */
function reasonOf({ code }: ParserError, bytes: Buffer | undefined): Unreadable {
  if (code === 'HPE_HEADER_OVERFLOW') return 'header_size'
  // The record of a ClientHello (RFC 8446 §5.1).
  return bytes?.[0] === 0x16 && bytes[1] === 0x03 ? 'tls_on_http' : 'malformed'
}
