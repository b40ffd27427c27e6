import { compactVerify, errors, jwtVerify, type JSONWebKeySet, type JWTVerifyOptions, type JWTVerifyResult } from 'jose'
import { isWithin, type Clock } from '../core/clock.ts'
import { GatewayError, reason } from '../core/errors.ts'
import { SingleFlight } from '../core/single-flight.ts'
import type { Log } from '../observe/log.ts'
import type { Outbound } from './outbound.ts'
import { verificationKeys, verifyWithAny, type VerificationKeys } from './verification-keys.ts'

const renewAfterMs = 60 * 60 * 1000
const retryAfterMs = 1000
const forcedAtOnce = 4
const forcedEveryMs = 10_000
/** Keys that were read this recently, in ms, tell what the provider publishes at this moment. */
const recentMs = 60_000

export interface KeySetParts {
  readonly jwksUri: () => Promise<string>
  readonly outbound: Pick<Outbound, 'fetch'>
  readonly clock: Clock
  readonly log: Log
}

/** A verification key of the provider. */
export interface KnownKey {
  readonly kid: string | undefined
  readonly kty: string
  readonly alg: string | undefined
  readonly use: string | undefined
  /** When this process first saw it, in ms since the epoch. */
  readonly since: number
}

export interface KeySetState {
  readonly keys: readonly KnownKey[]
  /** In ms since the epoch; absent: never yet. */
  readonly readAt: number | undefined
  /** Why they could not be read the last time. */
  readonly failure: string | undefined
}

/**
 * The provider's verification keys. A key that is not there yet, or that another one has replaced
 * under its name, is looked for at the provider again: a few times at once, then once in ten
 * seconds, so that a rotation is seen at the first token and a flood of made-up tokens is not
 * passed on. While the provider does not answer, the keys last seen stay in use.
 */
export class KeySet {
  readonly #parts: KeySetParts
  readonly #fetching = new SingleFlight<'jwks', VerificationKeys>()
  #keys: VerificationKeys | undefined
  #known: readonly KnownKey[] = []
  #fetchedAt = 0
  #failure: { readonly error: unknown; readonly at: number } | undefined
  #isFetching = false
  #tokens = forcedAtOnce
  #refilledAt = 0

  constructor(parts: KeySetParts) {
    this.#parts = parts
  }

  /** What is known of the provider's keys. */
  get state(): KeySetState {
    const { error } = this.#failure ?? {}
    return {
      keys: this.#known,
      readAt: this.#keys === undefined ? undefined : this.#fetchedAt,
      failure: error === undefined ? undefined : reason(error),
    }
  }

  /**
   * `jwtVerify` with the provider's keys. @throws what `jwtVerify` throws, or a `GatewayError` when
   * the keys cannot be had at all
   */
  async verify(token: string, options: JWTVerifyOptions): Promise<JWTVerifyResult> {
    const verifyWith = (keys: VerificationKeys) => verifyWithAny(keys, (key) => jwtVerify(token, key, options))
    const keys = this.#keys ?? (await this.#first())
    if (this.#parts.clock.now() - this.#fetchedAt > renewAfterMs) this.#renewInBackground()
    try {
      return await verifyWith(keys)
    } catch (error) {
      // Without `kid`, a new key has the name of the old one.
      const mayBeRotated =
        error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWSSignatureVerificationFailed
      // What came meanwhile counts too: others may have fetched the new key already.
      const renewed = mayBeRotated ? await this.#renewed(keys) : undefined
      if (renewed === undefined) throw error
      return verifyWith(renewed)
    }
  }

  /**
   * Whether the provider still publishes the key of a token that it has signed. Asks the provider
   * at most once a minute. While it does not answer, the keys last seen decide; without any, the
   * answer is yes.
   */
  async stillHasKeyOf(token: string): Promise<boolean> {
    const now = this.#parts.clock.now()
    const askedAt = Math.max(this.#fetchedAt, this.#failure?.at ?? 0)
    const keys = isWithin(recentMs, askedAt, now) ? this.#keys : await this.#fetch().catch(() => this.#keys)
    if (keys === undefined) return true
    return verifyWithAny(keys, (key) => compactVerify(token, key)).then(
      () => true,
      () => false,
    )
  }

  /**
   * Keys that were fetched after `seen`, or `undefined`: the ones that are here are new enough to
   * say that a token has none.
   * @throws {GatewayError} when the provider does not give its keys: nothing can be said about the
   * token then
   */
  async #renewed(seen: VerificationKeys): Promise<VerificationKeys | undefined> {
    if (this.#keys !== seen) return this.#keys
    // To wait for a fetch that is under way costs nothing: after a rotation many tokens come at
    // once.
    if (!this.#isFetching && !this.#mayForce()) {
      if (this.#failure !== undefined) throw this.#failure.error
      return undefined
    }
    return this.#fetch()
  }

  /**
   * Resolves when there are keys to verify with. @throws {GatewayError} when the provider does not
   * give them
   */
  async ready(): Promise<void> {
    if (this.#keys === undefined) await this.#first()
  }

  /**
   * The first keys; a provider that has just failed to give them is not asked by every token again.
   */
  async #first(): Promise<VerificationKeys> {
    if (this.#failure !== undefined && isWithin(retryAfterMs, this.#failure.at, this.#parts.clock.now()))
      throw this.#failure.error
    return this.#fetch()
  }

  #renewInBackground(): void {
    if (this.#mayForce()) this.#fetch().catch(() => {})
  }

  /** A token bucket: `forcedAtOnce` at once, then one in `forcedEveryMs`. */
  #mayForce(): boolean {
    const now = this.#parts.clock.now()
    // A clock that was set back must not keep the bucket empty until it has caught up.
    this.#refilledAt = Math.min(this.#refilledAt, now)
    const refill = Math.floor((now - this.#refilledAt) / forcedEveryMs)
    if (refill > 0) {
      this.#tokens = Math.min(forcedAtOnce, this.#tokens + refill)
      this.#refilledAt = now
    }
    if (this.#tokens === 0) return false
    this.#tokens -= 1
    return true
  }

  #described({ keys }: JSONWebKeySet): readonly KnownKey[] {
    const now = this.#parts.clock.now()
    const text = (value: unknown) => (typeof value === 'string' ? value : undefined)
    return keys.map((key) => {
      const kid = text(key.kid)
      const since = this.#known.find((known) => kid !== undefined && known.kid === kid)?.since ?? now
      return { kid, kty: String(key.kty), alg: text(key.alg), use: text(key.use), since }
    })
  }

  #fetch(): Promise<VerificationKeys> {
    this.#isFetching = true
    return this.#fetching.run('jwks', () => this.#askProvider().finally(() => (this.#isFetching = false)))
  }

  async #askProvider(): Promise<VerificationKeys> {
    try {
      const uri = await this.#parts.jwksUri()
      const answer = await this.#parts.outbound.fetch(uri, {
        headers: { accept: 'application/jwk-set+json, application/json' },
      })
      if (answer.status !== 200)
        throw new GatewayError('ERR_PROVIDER_UNAVAILABLE', `${uri} answered with status ${answer.status}`)
      const found = await readKeys(answer, uri)
      this.#keys = verificationKeys(found)
      this.#known = this.#described(found)
    } catch (error) {
      this.#failure = { error, at: this.#parts.clock.now() }
      this.#parts.log.warn('provider.jwks_unavailable', { reason: reason(error) })
      throw error
    }
    this.#failure = undefined
    this.#fetchedAt = this.#parts.clock.now()
    return this.#keys
  }
}

async function readKeys(answer: Response, uri: string): Promise<JSONWebKeySet> {
  const body = (await answer.json().catch(() => undefined)) as JSONWebKeySet | undefined
  if (!Array.isArray(body?.keys))
    throw new GatewayError('ERR_PROVIDER_UNAVAILABLE', `${uri} did not answer with a JSON Web Key Set`)
  // A set may hold keys for other purposes, or of types that we cannot use (RFC 7517 §5): they must
  // not spoil the others.
  return {
    keys: body.keys.filter(
      (key) => typeof key === 'object' && key !== null && ['RSA', 'EC', 'OKP'].includes(String(key.kty)),
    ),
  }
}
