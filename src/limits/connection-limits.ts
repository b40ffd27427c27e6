import { existsSync, readFileSync } from 'node:fs'
import type { Server as HttpServer } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import type { LimitsConfig } from '../config/model/gateway.ts'
import { clientOf, ipAddress } from '../core/addresses.ts'
import type { Log } from '../observe/log.ts'
import { ClientCount } from './client-budget.ts'
import type { RejectedClients } from './rejected-clients.ts'

export interface ConnectionLimitsParts {
  readonly trusted: { has(address: string): boolean }
  readonly rejectedClients: RejectedClients
}

/** The least time between two closings of idle connections, in ms. */
const makeRoomEveryMs = 1000
/** Idle connections are closed beyond this part of the limit, so that they cause no rejections. */
const roomy = 0.9

/**
 * A further request on a connection that carries several counts like a connection. Returns what
 * ends it, or `undefined` beyond the limits.
 */
export type BeginRequest = (socket: { readonly remoteAddress?: string | undefined }) => (() => void) | undefined

/**
 * Limits the number of open connections, in total and for each client. A connection beyond the
 * limit is closed before a byte of it is read, and before TLS. `closeIdle` closes idle connections.
 */
export function limitConnections(
  server: HttpServer | HttpsServer,
  limits: LimitsConfig,
  { trusted, rejectedClients, closeIdle }: ConnectionLimitsParts & { readonly closeIdle: () => void },
): BeginRequest {
  const perClient = new ClientCount(limits.perClient.connections)
  let madeRoomAt = -Infinity
  let open = 0
  /** Closes idle connections. */
  const makeRoom = () => {
    if (performance.now() - madeRoomAt < makeRoomEveryMs) return
    madeRoomAt = performance.now()
    closeIdle()
  }

  /** Returns what ends the place of the client, or `undefined` when it has none left. */
  const beginForClient = (remoteAddress = ''): (() => void) | undefined => {
    const address = ipAddress(remoteAddress) ?? 'unknown'
    if (trusted.has(address)) return () => {}
    const client = clientOf(address)
    if (perClient.begin(client)) return () => perClient.end(client)
    rejectedClients.note('limits.per_client.connections', client)
    return undefined
  }

  server.maxConnections = limits.connections
  server.on('drop', (dropped) => {
    rejectedClients.note('limits.connections', dropped?.remoteAddress ?? 'unknown')
    makeRoom()
  })
  server.prependListener('connection', (socket) => {
    open += 1
    socket.once('close', () => (open -= 1))
    if (open > limits.connections * roomy) makeRoom()
    const end = beginForClient(socket.remoteAddress)
    if (end === undefined) socket.destroy()
    else socket.once('close', end)
  })
  let requests = 0
  return ({ remoteAddress }) => {
    if (open + requests >= limits.connections) {
      rejectedClients.note('limits.connections', remoteAddress ?? 'unknown')
      return undefined
    }
    const end = beginForClient(remoteAddress)
    if (end === undefined) return undefined
    requests += 1
    return () => {
      requests -= 1
      end()
    }
  }
}

/** File descriptors for Redis, the provider, files, administration, and idle connections. */
const reserve = 64
/** The lowest limit. Fewer connections are not useful. */
const minConnections = 10

/** How many files and connections this process may have open (`ulimit -n`); Infinity: unknown. */
function fileDescriptorLimit(): number {
  const file = '/proc/self/limits'
  const soft = existsSync(file) && /^Max open files +(\d+)/m.exec(readFileSync(file, 'latin1'))?.[1]
  return typeof soft === 'string' ? Number(soft) : Infinity
}

/**
 * How many connections clients may have open: `connections`, or fewer if the file descriptors do
 * not suffice. Each connection may need a second one to an upstream. Without a free file
 * descriptor, the gateway could open no connection: all requests would get 502, and Logout Tokens
 * would be lost.
 */
export function connectionsWithin(
  { connections, areConnectionsSet }: Pick<LimitsConfig, 'connections' | 'areConnectionsSet'>,
  log: Log,
  limit: number = fileDescriptorLimit(),
): number {
  const possible = Math.max(minConnections, Math.floor((limit - reserve) / 2))
  if (possible >= connections) return connections
  // Only a number that the file asks for can be missed.
  if (areConnectionsSet)
    log.warn('limits.connections_lowered', {
      'limits.connections': connections,
      lowered_to: possible,
      open_files: limit,
      hint: 'Raise the limit of open files (ulimit -n, LimitNOFILE of systemd, nofile of a container), or lower limits.connections.',
    })
  return possible
}
