import type { Server as HttpServer } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import type { LimitsConfig } from '../config/model.ts'
import { clientOf, ipAddress } from '../core/addresses.ts'
import { ClientCount } from './client-budget.ts'
import type { TurnedAway } from './rejected-clients.ts'

export interface ConnectionLimitsParts {
  readonly trusted: { has(address: string): boolean }
  readonly turnedAway: TurnedAway
}

/** So often connections that wait for a next request are closed to make room, at most, in ms. */
const makeRoomEveryMs = 1000
/**
 * The part of all connections that may be open before room is made: whoever comes next is not to be
 * turned away for those who are idle.
 */
const roomy = 0.9

/** How long a form for the gateway itself may take to arrive, all of it, at most, in ms. */
const maxFormMs = 10_000

export function formTimeoutMs({ bodyIdleTimeoutMs }: Pick<LimitsConfig, 'bodyIdleTimeoutMs'>): number {
  return Math.min(bodyIdleTimeoutMs, maxFormMs)
}

/**
 * Keeps the number of open connections within bounds, altogether and for each client. What is too
 * much is closed before a byte of it is read, and before TLS.
 */
export function limitConnections(
  server: HttpServer | HttpsServer,
  limits: LimitsConfig,
  { trusted, turnedAway }: ConnectionLimitsParts,
): void {
  const perClient = new ClientCount(limits.perClient.connections)
  let madeRoomAt = -Infinity
  let open = 0
  /** Those who only keep a connection for later make room for those who ask now. */
  const makeRoom = () => {
    if (performance.now() - madeRoomAt < makeRoomEveryMs) return
    madeRoomAt = performance.now()
    server.closeIdleConnections()
  }

  server.maxConnections = limits.connections
  server.on('drop', (dropped) => {
    turnedAway.note('limits.connections', dropped?.remoteAddress ?? 'unknown')
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
      turnedAway.note('limits.per_client.connections', client)
      socket.destroy()
      return
    }
    socket.once('close', () => perClient.end(client))
  })
}
