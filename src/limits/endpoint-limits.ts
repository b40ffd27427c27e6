import type { Endpoint } from '../config/endpoints.ts'
import type { ClientLimitsConfig } from '../config/model.ts'
import type { Clock } from '../core/clock.ts'
import { GatewayError, unreachable } from '../core/errors.ts'
import { ClientBudget, ClientCount } from './client-budget.ts'
import { FairQueue } from './fair-queue.ts'
import type { RejectedClients } from './rejected-clients.ts'

/**
 * At most this many callbacks are processed at the same time: half of the connections to the
 * provider (`createOutbound`), so that refreshes always have the other half.
 */
const exchangesAtOnce = 16
/** How many further callbacks may wait for their turn. */
const mostWaitingExchanges = 4096

/** So many addresses that good logout tokens came from are remembered. */
const mostProviders = 256

/** A client that asks too often, and when it may again. */
export class TooManyRequests extends GatewayError {
  readonly retryAfterSeconds: number

  constructor(limit: string, waitMs: number) {
    super('ERR_TOO_MANY_REQUESTS', `more than ${limit} allows`)
    this.retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000))
  }
}

export interface EndpointLimitsParts {
  readonly clock: Clock
  readonly rejectedClients: RejectedClients
}

/** What a browser brings from the provider: how often it comes, and how many at the same time. */
interface Visits {
  readonly often: ClientBudget
  readonly atOnce: ClientCount
}

function visits({ callbacks, callbacksAtOnce }: ClientLimitsConfig, clock: Clock): Visits {
  return { often: new ClientBudget(callbacks, clock), atOnce: new ClientCount(callbacksAtOnce) }
}

/**
 * What strangers may have the gateway do, and through it the provider. Clients are named as by
 * `clientOf`.
 */
export class EndpointLimits {
  readonly #signIns: ClientBudget
  readonly #callbacks: Visits
  readonly #exchanges = new FairQueue<() => void>(exchangesAtOnce, mostWaitingExchanges)
  readonly #frames: Visits
  readonly #refusedTokens: ClientBudget
  readonly #providers = new Set<string>()
  readonly #rejectedClients: RejectedClients

  constructor(config: ClientLimitsConfig, { clock, rejectedClients }: EndpointLimitsParts) {
    this.#signIns = new ClientBudget(config.signIns, clock)
    this.#callbacks = visits(config, clock)
    this.#frames = visits(config, clock)
    this.#refusedTokens = new ClientBudget(config.refusedLogoutTokens, clock)
    this.#rejectedClients = rejectedClients
  }

  /**
   * Carries out `work` when the limit allows it. `limit` absent: always.
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
        return this.#callback(client, work)
      case 'frames':
        return this.#frame(client, work)
      case 'refused_logout_tokens':
        return this.#logoutToken(client, work)
      default:
        return unreachable(limit)
    }
  }

  /**
   * A callback. Clients share the exchanges with the provider: made-up codes of one client, which a
   * slow provider takes seconds to refuse, delay neither the sign-ins of others nor refreshes.
   * @throws {TooManyRequests} or what `work` throws
   */
  #callback<T>(client: string, work: () => Promise<T>): Promise<T> {
    return this.#visit(this.#callbacks, client, () => this.#exchange(client, work))
  }

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

  /**
   * A front-channel logout. Any page can have frames: they are counted apart, so that nobody is
   * kept from signing in by them.
   * @throws {TooManyRequests} or what `work` throws
   */
  #frame<T>(client: string, work: () => Promise<T>): Promise<T> {
    return this.#visit(this.#frames, client, work)
  }

  async #visit<T>({ often, atOnce }: Visits, client: string, work: () => Promise<T>): Promise<T> {
    this.#check('callbacks', client, often.take(client))
    this.#check('callbacks_at_once', client, atOnce.begin(client) ? 0 : 1000)
    try {
      return await work()
    } finally {
      atOnce.end(client)
    }
  }

  /**
   * Only refused tokens count, and a good one is obeyed whatever came before it from the same
   * address: behind a proxy that is not trusted, strangers and the provider have one. Beyond the
   * limit a refused token is answered with 429, and not recorded. An address that a good token has
   * come from is not held to the limit.
   * @throws {TooManyRequests} or what `work` throws
   */
  async #logoutToken<T>(client: string, work: () => Promise<T>): Promise<T> {
    try {
      const answer = await work()
      if (this.#providers.size < mostProviders) this.#providers.add(client)
      return answer
    } catch (error) {
      // A store or a provider that is away is nobody's fault out there.
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
