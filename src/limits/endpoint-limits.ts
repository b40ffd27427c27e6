import type { Endpoint } from '../config/endpoints.ts'
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

/**
 * Limits of requests that the provider sends through browsers: how often, and how many at once.
 */
interface BrowserLimits {
  readonly rate: ClientBudget
  readonly atOnce: ClientCount
}

function browserLimits({ callbacks, callbacksAtOnce }: LimitsPerClientSettings, clock: Clock): BrowserLimits {
  return { rate: new ClientBudget(callbacks, clock), atOnce: new ClientCount(callbacksAtOnce) }
}

/**
 * Limits the requests to the gateway's endpoints, and through them to the provider. Clients are
 * named by `clientOf`.
 */
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
   * A callback. Clients share the exchanges with the provider fairly. A slow provider may reject
   * invented codes of one client only after seconds. They delay neither other sign-ins nor
   * refreshes.
   * @throws {TooManyRequests} or what `work` throws
   */
  #callback<T>(client: string, work: () => Promise<T>): Promise<T> {
    return this.#limited(this.#callbacks, client, () => this.#exchange(client, work))
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
   * A front-channel logout. It has a limit of its own, because any page can contain such frames,
   * and they must not keep a person from signing in.
   * @throws {TooManyRequests} or what `work` throws
   */
  #frame<T>(client: string, work: () => Promise<T>): Promise<T> {
    return this.#limited(this.#frames, client, work)
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
