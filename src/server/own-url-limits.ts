import type { ClientLimitsConfig } from '../config/model.ts'
import type { Clock } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import { ClientBudget, ClientCount } from './client-budget.ts'
import type { TurnedAway } from './turned-away.ts'

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

export interface OwnUrlLimitsParts {
  readonly clock: Clock
  readonly turnedAway: TurnedAway
}

/** What a browser brings from the provider: how often it comes, and how many at the same time. */
interface Visits {
  readonly often: ClientBudget
  readonly atOnce: ClientCount
}

function visits({ callbacks, callbacksAtOnce }: ClientLimitsConfig, clock: Clock): Visits {
  return { often: new ClientBudget(callbacks, clock), atOnce: new ClientCount(callbacksAtOnce) }
}

/** What strangers may have the gateway do, and through it the provider. Clients are named as by `clientOf`. */
export class OwnUrlLimits {
  readonly #signIns: ClientBudget
  readonly #callbacks: Visits
  readonly #frames: Visits
  readonly #refusedTokens: ClientBudget
  readonly #providers = new Set<string>()
  readonly #turnedAway: TurnedAway

  constructor(config: ClientLimitsConfig, { clock, turnedAway }: OwnUrlLimitsParts) {
    this.#signIns = new ClientBudget(config.signIns, clock)
    this.#callbacks = visits(config, clock)
    this.#frames = visits(config, clock)
    this.#refusedTokens = new ClientBudget(config.refusedLogoutTokens, clock)
    this.#turnedAway = turnedAway
  }

  /** @throws {TooManyRequests} */
  beginSignIn(client: string): void {
    this.#check('sign_ins', client, this.#signIns.take(client))
  }

  /** A callback. @throws {TooManyRequests} or what `work` throws */
  comeBack<T>(client: string, work: () => Promise<T>): Promise<T> {
    return this.#visit(this.#callbacks, client, work)
  }

  /**
   * A front-channel logout. Any page can have frames: they are counted apart, so that nobody is kept from signing in by them.
   * @throws {TooManyRequests} or what `work` throws
   */
  endByFrame<T>(client: string, work: () => Promise<T>): Promise<T> {
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
   * Only what is refused counts, and not where good tokens have come from: whoever shares an address with the provider, or seems
   * to because of a proxy between, cannot shut it out.
   * @throws {TooManyRequests} or what `work` throws
   */
  async receiveLogoutToken<T>(client: string, work: () => Promise<T>): Promise<T> {
    if (!this.#providers.has(client)) this.#check('refused_logout_tokens', client, this.#refusedTokens.waitMs(client))
    try {
      const answer = await work()
      if (this.#providers.size < mostProviders) this.#providers.add(client)
      return answer
    } catch (error) {
      // A store or a provider that is away is nobody's fault out there.
      if (error instanceof GatewayError && error.status === 400) this.#refusedTokens.take(client)
      throw error
    }
  }

  #check(limit: string, client: string, waitMs: number): void {
    if (waitMs === 0) return
    this.#turnedAway.note(`limits.per_client.${limit}`, client)
    throw new TooManyRequests(`limits.per_client.${limit}`, waitMs)
  }
}
