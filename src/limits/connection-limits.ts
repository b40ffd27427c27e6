import type { Server as HttpServer } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import type { LimitsConfig } from '../config/model/gateway.ts'
import { clientOf, ipAddress } from '../core/addresses.ts'
import { ClientCount } from './client-budget.ts'
import type { RejectedClients } from './rejected-clients.ts'

export interface ConnectionLimitsParts {
  readonly trusted: { has(address: string): boolean }
  readonly rejectedClients: RejectedClients
}

/** The least time between two closings of idle connections, in ms. */
const makeRoomEveryMs = 1000
/**
 * Idle connections are closed beyond this part of the limit, so that they do not cause rejections.
 */
const roomy = 0.9

/** The longest time that a whole form for the gateway itself may take to arrive, in ms. */
const maxFormMs = 10_000

export function formTimeoutMs({ bodyIdleTimeoutMs }: Pick<LimitsConfig, 'bodyIdleTimeoutMs'>): number {
  return Math.min(bodyIdleTimeoutMs, maxFormMs)
}

/**
 * Limits the number of open connections, in total and for each client. A connection beyond the
 * limit is closed before a byte of it is read, and before TLS. `closeIdle` closes idle connections.
 */
export function limitConnections(
  server: HttpServer | HttpsServer,
  limits: LimitsConfig,
  { trusted, rejectedClients, closeIdle }: ConnectionLimitsParts & { readonly closeIdle: () => void },
): void {
  const perClient = new ClientCount(limits.perClient.connections)
  let madeRoomAt = -Infinity
  let open = 0
  /** Closes idle connections. */
  const makeRoom = () => {
    if (performance.now() - madeRoomAt < makeRoomEveryMs) return
    madeRoomAt = performance.now()
    closeIdle()
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
    const address = ipAddress(socket.remoteAddress ?? '') ?? 'unknown'
    if (trusted.has(address)) return
    const client = clientOf(address)
    if (!perClient.begin(client)) {
      rejectedClients.note('limits.per_client.connections', client)
      socket.destroy()
      return
    }
    socket.once('close', () => perClient.end(client))
  })
}
