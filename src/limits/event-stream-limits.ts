import type { LimitsConfig } from '../config/model/gateway.ts'
import { ClientCount } from './client-budget.ts'
import { TooManyRequests } from './endpoint-limits.ts'
import type { RejectedClients } from './rejected-clients.ts'

/** How many event streams one session may have. */
const maxPerSession = 16
/** The share of all client connections that event streams may use. The rest is for requests. */
const shareOfConnections = 3 / 4

type Limit = readonly [name: string, counts: ClientCount]

/**
 * Limits the event streams about sessions that are open in this process. Each one occupies a
 * connection for as long as its page is open. Behind a trusted proxy, the connections are those of
 * the proxy, so the streams of a client are counted by the address that the proxy reports.
 */
export class EventStreamLimits {
  readonly #perSession: Limit = ['the number of event streams of a session', new ClientCount(maxPerSession)]
  readonly #perClient: Limit
  readonly #all: Limit
  readonly #rejectedClients: RejectedClients

  constructor(limits: LimitsConfig, rejectedClients: RejectedClients) {
    const { connections, perClient } = limits
    this.#perClient = ['limits.per_client.connections', new ClientCount(perClient.connections)]
    this.#all = ['limits.connections', new ClientCount(Math.ceil(connections * shareOfConnections))]
    this.#rejectedClients = rejectedClients
  }

  /**
   * Counts a stream that begins. The stream counts until the caller calls the returned function,
   * once.
   * @param client the name that `clientOf` gives to the client
   * @throws {TooManyRequests} when the session, the client or all clients have too many streams
   */
  begin(session: string, client: string): () => void {
    const counted: (() => void)[] = []
    for (const [[name, counts], counter] of [
      [this.#perSession, session],
      [this.#perClient, client],
      [this.#all, 'all'],
    ] as const) {
      if (!counts.begin(counter)) {
        for (const end of counted) end()
        if (counts !== this.#perSession[1]) this.#rejectedClients.note(name, client)
        throw new TooManyRequests(name, 60_000)
      }
      counted.push(() => counts.end(counter))
    }
    return () => {
      for (const end of counted) end()
    }
  }
}
