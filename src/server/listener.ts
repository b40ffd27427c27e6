import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Address, LimitsConfig, ListenConfig } from '../config/model.ts'
import { OperatorError, reason } from '../core/errors.ts'
import { listenError } from '../http/listen-error.ts'
import { writeToSocket } from '../http/response.ts'
import { limitConnections, type ConnectionLimitsParts } from '../limits/connection-limits.ts'
import type { MemoryBudget } from '../limits/memory-budget.ts'
import type { Log } from '../observe/log.ts'
import { readCertificate, renewCertificate } from './certificate.ts'
import { serveHalfClosedConnections } from './half-closed.ts'
import { RequestOrder, type WaitingLimits } from './request-order.ts'
import { isIgnoredUpgrade, isOverrun, upgradeOptions } from './upgrades.ts'

/** Clients that pipeline send some ten requests at once (apt). */
const waitingLimits: WaitingLimits = { perConnection: 64, bytesAltogether: 16 * 1024 * 1024 }
const pipeliningHint = 'the client sends requests without reading responses; its connection was closed'

export interface ListenerHandlers {
  request(req: IncomingMessage, res: ServerResponse): void
  /** A request with an `Expect` that is not supported. */
  expectation(req: IncomingMessage, res: ServerResponse): void
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void
  /** The protocols of `Upgrade` that any upstream lists, in lower case. */
  readonly upgradeProtocols: readonly string[]
  /** Ends what would never end by itself. Called again and again while the listener drains. */
  endEndless(): void
}

/** The sockets that clients connect to. */
export interface Listener {
  /** Where it listens; the port is the real one when 0 was asked for. */
  readonly address: Address
  /**
   * Takes no new connections and has tunnels and event streams ended at once: their clients connect
   * to another replica. Lets other requests finish for up to `drainTimeoutMs`, then closes whatever
   * is left.
   */
  drain(drainTimeoutMs: number): Promise<void>
}

/**
 * @throws {OperatorError} when the port is taken, may not be used, or the certificate cannot be
 * read
 */
export async function listen(
  config: ListenConfig,
  limits: LimitsConfig,
  handlers: ListenerHandlers,
  parts: ConnectionLimitsParts & { readonly log: Log; readonly memory: Pick<MemoryBudget, 'watch'> },
): Promise<Listener> {
  const { log } = parts
  const order = new RequestOrder(waitingLimits)
  const options = {
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headersTimeoutMs,
    // Uploads may take as long as they keep moving: the proxy watches over that.
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(limits.headersTimeoutMs / 2, 30_000),
    keepAliveTimeout: 75_000,
    insecureHTTPParser: false,
    // Ours to refuse: Node would go on reading what stands behind such a request.
    requireHostHeader: false,
    noDelay: true,
    ...upgradeOptions({ listed: () => handlers.upgradeProtocols, isFull: (socket) => order.isFull(socket) }),
  }
  const { tls } = config
  const server =
    tls === undefined
      ? createServer(options)
      : createTlsServer({
          ...options,
          ...readCertificate(tls),
          minVersion: 'TLSv1.2',
          handshakeTimeout: limits.headersTimeoutMs,
        })
  const watcher = tls === undefined ? undefined : renewCertificate(server as TlsServer, tls, log)
  // Node would leave out what is beyond its limit. Ours is looked at with the request, and refuses
  // it.
  server.maxHeadersCount = 0
  limitConnections(server, limits, parts)
  // Over TLS the end of what a client sends is the end of the connection (RFC 9112 §9.8).
  if (tls === undefined) serveHalfClosedConnections(server, (socket) => order.currentResponse(socket))
  server.on(tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) => parts.memory.watch(socket))
  const upgraded = new Set<Duplex>()
  const ending = new WeakSet<Socket>()
  let draining = false
  /**
   * Destroys requests that follow an ignored `Upgrade` on the same connection: their bytes may be
   * the content of that request.
   */
  const unlessLost = (req: IncomingMessage, res: ServerResponse, answer: ListenerHandlers['request']) => {
    if (ending.has(req.socket)) return void res.destroy()
    if (isIgnoredUpgrade(req)) ending.add(req.socket)
    // Not by a header: what stands on the response already is merged with what the upstream sends.
    if (draining || ending.has(req.socket)) res.shouldKeepAlive = false
    answer(req, res)
  }
  const inOrder = (answer: ListenerHandlers['request']) => (req: IncomingMessage, res: ServerResponse) => {
    order.await(req, res, () => unlessLost(req, res, answer))
  }
  const request = inOrder((req, res) => handlers.request(req, res))

  server.on('request', request)
  // The proxy says "100 Continue" itself, once the request has been admitted.
  server.on('checkContinue', request)
  server.on(
    'checkExpectation',
    inOrder((req, res) => handlers.expectation(req, res)),
  )
  server.on('upgrade', (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => {})
    if (isOverrun(req)) {
      parts.rejectedClients.note('pipelined requests', req.socket.remoteAddress ?? 'unknown', pipeliningHint)
      req.socket.destroy()
      return
    }
    upgraded.add(socket.once('close', () => upgraded.delete(socket)))
    order.awaitUpgrade(socket, () => handlers.upgrade(req, socket, head))
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) =>
    answerClientError(error, socket, order.isAnswering(socket)),
  )
  await bind(server, config)
  server.on('error', (error) => log.error('listener.failed', { reason: reason(error) }))

  return {
    address: { host: config.host, port: (server.address() as AddressInfo).port },
    drain: async (drainTimeoutMs) => {
      draining = true
      watcher?.close()
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      const close = () => {
        server.closeIdleConnections()
        handlers.endEndless()
      }
      close()
      // A connection whose request was under way is idle afterwards, an answer turns out to be an
      // event stream: nobody tells.
      const closing = setInterval(close, 50)
      const limit = setTimeout(() => {
        server.closeAllConnections()
        for (const socket of upgraded) socket.destroy()
      }, drainTimeoutMs)
      await closed
      clearInterval(closing)
      clearTimeout(limit)
    },
  }
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

const refused = new WeakSet<Duplex>()

const statusOfParserError = new Map<string | undefined, number>([
  ['HPE_HEADER_OVERFLOW', 431],
  ['ERR_HTTP_REQUEST_TIMEOUT', 408],
])

/** What the parser refuses: RFC 9112 §2.2, RFC 6585 §5. It refuses each chunk that follows, too. */
function answerClientError(error: NodeJS.ErrnoException, socket: Duplex, isAnswering: boolean): void {
  if (refused.has(socket)) return
  // A response within another one would be taken for a part of it.
  if (error.code === 'ECONNRESET' || !socket.writable || isAnswering) {
    socket.destroy()
    return
  }
  const status = statusOfParserError.get(error.code) ?? 400
  refused.add(socket)
  writeToSocket(socket, { status, headers: {}, body: '' })
}
