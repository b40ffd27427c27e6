import type { TokenExchangeConfig, UpstreamConfig } from '../config/model/upstream.ts'
import { BoundedMap } from '../core/bounded-map.ts'
import type { Clock } from '../core/clock.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import { SingleFlight } from '../core/single-flight.ts'
import type { TokenSet } from '../core/token-set.ts'
import type { Log } from '../observe/log.ts'
import { connectionsFor } from '../provider/outbound.ts'
import type { ExchangedToken } from '../provider/token-exchange.ts'

/** The largest size of all tokens that are kept, in characters. */
const maxKeptBytes = 32 * 1024 * 1024
/** A token is renewed this long before it expires, or when a fifth of its life is left, in ms. */
const renewBeforeMs = 30_000
/** How long a token without `expires_in` is used, in ms. */
const unknownLifetimeMs = 5 * 60_000
/** How long a refusal is not asked about again, in ms. */
const keepRefusalMs = 10_000
const logEveryMs = 60_000

export type Exchanged =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'unavailable'; readonly code: ErrorCode; readonly why: string }

/** Whose access token is exchanged: a session, or an access token of a request. */
export interface ExchangeSubject {
  readonly key: string
  /** See `audienceOf`. */
  readonly audience: string
  readonly record: { readonly tokens: Pick<TokenSet, 'access_token'> }
}

export interface Exchange {
  exchangeToken(subject_token: string, wanted: TokenExchangeConfig): Promise<ExchangedToken>
}

interface Kept {
  readonly exchanged: Exchanged
  readonly until: number
}

/**
 * The tokens that upstreams get in exchange for an access token, in memory only, for each process.
 * A token is never sent to another upstream, and the access token never instead of it.
 */
export class ExchangedTokens {
  readonly #parts: { readonly clock: Clock; readonly log: Log }
  readonly #bySubject = new BoundedMap<string, Map<string, Kept>>('exchanged_tokens', maxKeptBytes, {
    sizeOf: (ofUpstreams) => [...ofUpstreams.values()].reduce((sum, kept) => sum + sizeOf(kept), 512),
  })
  readonly #underWay = new SingleFlight<string, Exchanged>()
  /** The name of an upstream → when a failure was logged. */
  readonly #loggedAt = new Map<string, number>()

  constructor(parts: { readonly clock: Clock; readonly log: Log }) {
    this.#parts = parts
  }

  /** Forgets the tokens of these sessions. */
  noteEnded(keys: readonly SessionKey[]): void {
    for (const key of keys) this.#bySubject.delete(key)
  }

  /** The token of a subject for an upstream. Returns no promise when it is kept. */
  of(
    { key, record }: ExchangeSubject,
    { name }: Pick<UpstreamConfig, 'name'>,
    wanted: TokenExchangeConfig,
    provider: Exchange,
  ): Exchanged | Promise<Exchanged> {
    const kept = this.#bySubject.get(key)?.get(name)
    if (kept !== undefined && this.#parts.clock.now() < kept.until) return kept.exchanged
    const flight = `${key} ${name}`
    if (this.#underWay.size >= connectionsFor.exchangedTokens && !this.#underWay.has(flight))
      return { kind: 'unavailable', code: 'ERR_PROVIDER_UNAVAILABLE', why: 'too many token exchanges are under way' }
    return this.#underWay.run(flight, async () => {
      const found = await this.#exchange(name, () => provider.exchangeToken(record.tokens.access_token, wanted))
      if (found.until > this.#parts.clock.now()) this.#keep(key, name, found)
      return found.exchanged
    })
  }

  async #exchange(upstream: string, exchange: () => Promise<ExchangedToken>): Promise<Kept> {
    const began = this.#parts.clock.now()
    try {
      const { token, expiresAt = began + unknownLifetimeMs } = await exchange()
      const early = Math.min(renewBeforeMs, (expiresAt - began) / 5)
      return { exchanged: { kind: 'token', token }, until: expiresAt - early }
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      const { code, message: why } = error
      this.#logFailure(upstream, code, why)
      // When the provider is away, the next request asks again.
      const until = code === 'ERR_TOKEN_EXCHANGE' ? began + keepRefusalMs : began
      const failure = code === 'ERR_TOKEN_EXCHANGE' ? code : 'ERR_PROVIDER_UNAVAILABLE'
      return { exchanged: { kind: 'unavailable', code: failure, why }, until }
    }
  }

  #keep(key: string, upstream: string, kept: Kept): void {
    // `set` measures the size again.
    this.#bySubject.set(key, new Map(this.#bySubject.get(key)).set(upstream, kept))
  }

  /** Once a minute for each upstream, because each request of each person fails. */
  #logFailure(upstream: string, code: ErrorCode, why: string): void {
    const now = this.#parts.clock.now()
    if (now - (this.#loggedAt.get(upstream) ?? -Infinity) < logEveryMs) return
    this.#loggedAt.set(upstream, now)
    const hint = `Check upstreams.${upstream}.token_exchange, and the permissions of this client at the provider.`
    this.#parts.log.warn('token_exchange.failed', { upstream, code, reason: why, hint })
  }
}

function sizeOf({ exchanged }: Kept): number {
  return exchanged.kind === 'token' ? 2 * exchanged.token.length : exchanged.why.length
}
