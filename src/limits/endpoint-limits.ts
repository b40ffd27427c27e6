import type { Endpoint } from '../config/endpoints.ts'
import type { LimitsConfig } from '../config/model/gateway.ts'
import type { LimitsPerClientSettings } from '../config/settings.ts'
import type { Clock } from '../core/clock.ts'
import { GatewayError, unreachable } from '../core/errors.ts'
import { ClientBudget, ClientCount } from './client-budget.ts'
import { FairQueue } from './fair-queue.ts'
import type { RejectedClients } from './rejected-clients.ts'

/**
 * At most this many callbacks are processed at the same time: half of the connections to the
 * provider (`connectionsFor.others`), so that refreshes always have the other half.
 */
const exchangesAtOnce = 16
/** How many further callbacks may wait. */
const maxWaitingExchanges = 4096

/** How many addresses that sent valid Logout Tokens are remembered. */
const maxProviders = 256

/** The longest time that a whole form for the gateway itself may take to arrive, in ms. */
const maxFormMs = 10_000

export function formTimeoutMs({ bodyIdleTimeoutMs }: Pick<LimitsConfig, 'bodyIdleTimeoutMs'>): number {
  return Math.min(bodyIdleTimeoutMs, maxFormMs)
}

/** A client has sent too many requests. */
export class TooManyRequests extends GatewayError {
  readonly waitMs: number

  constructor(limit: string, waitMs: number) {
    super('ERR_TOO_MANY_REQUESTS', `more requests than ${limit} allows`)
    this.waitMs = waitMs
  }
}

export interface EndpointLimitsParts {
  readonly clock: Clock
  readonly rejectedClients: RejectedClients
}

/** Limits of requests that the provider sends through browsers: how often, how many at once. */
interface BrowserLimits {
  readonly rate: ClientBudget
  readonly atOnce: ClientCount
}

function browserLimits({ callbacks, callbacksAtOnce }: LimitsPerClientSettings, clock: Clock): BrowserLimits {
  return { rate: new ClientBudget(callbacks, clock), atOnce: new ClientCount(callbacksAtOnce) }
}

/** Limits the requests to endpoints, and through them to the provider. `clientOf` names clients. */
export class EndpointLimits {
  readonly #signIns: ClientBudget
  readonly #callbacks: BrowserLimits
  readonly #exchanges = new FairQueue<() => void>(exchangesAtOnce, maxWaitingExchanges)
  readonly #frames: BrowserLimits
  readonly #refusedTokens: ClientBudget
  readonly #providers = new Set<string>()
  readonly #rejectedClients: RejectedClients

  constructor(config: LimitsPerClientSettings, { clock, rejectedClients }: EndpointLimitsParts) {
    this.#signIns = new ClientBudget(config.signIns, clock)
    this.#callbacks = browserLimits(config, clock)
    this.#frames = browserLimits(config, clock)
    this.#refusedTokens = new ClientBudget(config.refusedLogoutTokens, clock)
    this.#rejectedClients = rejectedClients
  }

  /**
   * Runs `work` if the limit allows it. Without a `limit`, always runs it.
   * @throws {TooManyRequests} or what `work` throws
   */
  async within<T>(limit: Endpoint['limit'], client: string, work: () => Promise<T>): Promise<T> {
    switch (limit) {
      case undefined:
        return work()
      case 'sign_ins':
        this.#check('sign_ins', client, this.#signIns.take(client))
        return work()
      case 'callbacks':
        return this.#limited(this.#callbacks, client, () => this.#exchange(client, work))
      case 'frames':
        // A front-channel logout has a limit of its own, because any page can contain such frames,
        // and they must not keep a person from signing in.
        return this.#limited(this.#frames, client, work)
      case 'refused_logout_tokens':
        return this.#logoutToken(client, work)
      default:
        return unreachable(limit)
    }
  }

  /**
   * A callback. Clients share the exchanges with the provider fairly. A slow provider may reject
   * invented codes of one client only after seconds. They delay neither other sign-ins nor
   * refreshes.
   * @throws {TooManyRequests} or what `work` throws
   */
  async #exchange<T>(client: string, work: () => Promise<T>): Promise<T> {
    this.#check('callbacks_at_once', client, this.#exchanges.isFullFor(client) ? 1000 : 0)
    await new Promise<void>((begin) => {
      if (this.#exchanges.enter(client, begin)) begin()
    })
    try {
      return await work()
    } finally {
      for (const begin of this.#exchanges.leave(client)) begin()
    }
  }

  async #limited<T>({ rate, atOnce }: BrowserLimits, client: string, work: () => Promise<T>): Promise<T> {
    this.#check('callbacks', client, rate.take(client))
    this.#check('callbacks_at_once', client, atOnce.begin(client) ? 0 : 1000)
    try {
      return await work()
    } finally {
      atOnce.end(client)
    }
  }

  /**
   * A Logout Token. Only rejected tokens count. A valid token is always obeyed, because the
   * provider may share an address with other clients behind a proxy that is not trusted. Beyond the
   * limit, the response to a rejected token is 429, and the token is not recorded. The limit does
   * not apply to an address that has sent a valid token.
   * @throws {TooManyRequests} or what `work` throws
   */
  async #logoutToken<T>(client: string, work: () => Promise<T>): Promise<T> {
    try {
      const result = await work()
      if (this.#providers.size < maxProviders) this.#providers.add(client)
      return result
    } catch (error) {
      // An unreachable store or provider is not the client's fault.
      if (!(error instanceof GatewayError) || error.status !== 400) throw error
      const waitMs = this.#refusedTokens.take(client)
      if (!this.#providers.has(client)) this.#check('refused_logout_tokens', client, waitMs)
      throw error
    }
  }

  #check(limit: string, client: string, waitMs: number): void {
    if (waitMs === 0) return
    this.#rejectedClients.note(`limits.per_client.${limit}`, client)
    throw new TooManyRequests(`limits.per_client.${limit}`, waitMs)
  }
}

/** How many wrong secrets of service accounts each client may send, and each name may get. */
const wrongPerClient = { count: 10, perMs: 60_000 }
const wrongPerAccount = { count: 30, perMs: 60_000 }
/** Node.js has four threads for hashes and files: two stay free. Each hash takes 16 to 128 MiB. */
const hashesAtOnce = 2
/** How many further ones may wait. */
const maxWaitingHashes = 64

/** The limits for the verification of the secrets of service accounts. */
export function createAccountLimits(parts: { readonly clock: Clock; readonly rejectedClients: RejectedClients }) {
  const { clock, rejectedClients } = parts
  return {
    perClient: new ClientBudget(wrongPerClient, clock),
    perAccount: new ClientBudget(wrongPerAccount, clock),
    turns: new FairQueue<() => void>(hashesAtOnce, maxWaitingHashes),
    rejected: (limit: string, client: string) => rejectedClients.note(limit, client),
  }
}

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
