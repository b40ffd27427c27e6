import {
  compactVerify,
  createLocalJWKSet,
  type CryptoKey,
  errors,
  type JSONWebKeySet,
  jwtVerify,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  type JWTVerifyResult,
} from 'jose'
import { isWithin } from '../core/clock.ts'
import { reason } from '../core/errors.ts'
import { isObject } from '../core/json.ts'
import { SingleFlight } from '../core/single-flight.ts'
import type { RequestParts } from './outbound.ts'
import { providerUnavailable } from './provider-errors.ts'

/** How often the keys are renewed, in ms. */
const renewAfterMs = 60 * 60 * 1000
/** The pause after an error, in ms. */
const retryAfterMs = 1000
/** Tokens may cause this many fetches at once, and then one in each `forcedEveryMs`. */
const forcedAtOnce = 4
const forcedEveryMs = 10_000
/** Keys count as current for this time after they were read, in ms. */
const recentMs = 60_000

export interface KeySetParts extends RequestParts {
  readonly jwksUri: () => Promise<string>
}

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
  /** In ms since the epoch; absent when they were never read. */
  readonly readAt: number | undefined
  /** The error of the last attempt to read them. */
  readonly failure: string | undefined
}

/**
 * The verification keys of the provider. An unknown key, or one that does not fit, makes the
 * gateway fetch them again, so a rotation is noticed at the first token. These fetches are limited,
 * so that a flood of forged tokens does not reach the provider. While it is unavailable, the last
 * keys stay in use.
 */
export class KeySet {
  readonly #parts: KeySetParts
  readonly #fetching = new SingleFlight<'jwks', VerificationKeys>()
  #keys: VerificationKeys | undefined
  #known: readonly KnownKey[] = []
  #fetchedAt = 0
  #failure: { readonly error: unknown; readonly at: number } | undefined
  #isFetching = false
  #fetchesLeft = forcedAtOnce
  #refilledAt = 0

  constructor(parts: KeySetParts) {
    this.#parts = parts
  }

  get state(): KeySetState {
    const { error } = this.#failure ?? {}
    return {
      keys: this.#known,
      readAt: this.#keys === undefined ? undefined : this.#fetchedAt,
      failure: error === undefined ? undefined : reason(error),
    }
  }

  /** Runs `jwtVerify`, or throws a `GatewayError` when there are no keys. */
  async verify(token: string, options: JWTVerifyOptions): Promise<JWTVerifyResult> {
    const verifyWith = (keys: VerificationKeys) => verifyWithAny(keys, (key) => jwtVerify(token, key, options))
    const keys = this.#keys ?? (await this.#first())
    if (this.#parts.clock.now() - this.#fetchedAt > renewAfterMs) this.#renewInBackground()
    try {
      return await verifyWith(keys)
    } catch (error) {
      // A new key without `kid` shows only in signatures that the old key does not fit.
      const mayBeRotated =
        error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWSSignatureVerificationFailed
      // Another caller may have fetched the new key in the meantime.
      const renewed = mayBeRotated ? await this.#renewed(keys) : undefined
      if (renewed === undefined) throw error
      return verifyWith(renewed)
    }
  }

  /**
   * Whether the provider still publishes the key of a token. The keys are fetched at most once a
   * minute. While the provider is unavailable, the last ones decide; without any, it is `true`.
   */
  async stillHasKeyOf(token: string): Promise<boolean> {
    const now = this.#parts.clock.now()
    const triedAt = Math.max(this.#fetchedAt, this.#failure?.at ?? 0)
    const keys = isWithin(recentMs, triedAt, now) ? this.#keys : await this.#fetch().catch(() => this.#keys)
    if (keys === undefined) return true
    return verifyWithAny(keys, (key) => compactVerify(token, key)).then(
      () => true,
      () => false,
    )
  }

  /**
   * Fetches newer keys than `seen`.
   * @returns `undefined` when no further fetch is allowed now, so the token counts as forged
   * @throws {GatewayError} when the keys cannot be fetched, so the token cannot be judged
   */
  async #renewed(seen: VerificationKeys): Promise<VerificationKeys | undefined> {
    if (this.#keys !== seen) return this.#keys
    // A running fetch is shared, because many tokens arrive at once after a rotation.
    if (!this.#isFetching && !this.#mayForce()) {
      if (this.#failure !== undefined) throw this.#failure.error
      return undefined
    }
    return this.#fetch()
  }

  /** Resolves when there are keys, or rejects with a `GatewayError`. */
  async ready(): Promise<void> {
    if (this.#keys === undefined) await this.#first()
  }

  /** Fetches the first keys. After an error, further tokens cause no fetch for a while. */
  async #first(): Promise<VerificationKeys> {
    if (this.#failure !== undefined && isWithin(retryAfterMs, this.#failure.at, this.#parts.clock.now()))
      throw this.#failure.error
    return this.#fetch()
  }

  #renewInBackground(): void {
    if (this.#mayForce()) this.#fetch().catch(() => {})
  }

  /** Whether a token may cause a fetch now. A token bucket limits these fetches. */
  #mayForce(): boolean {
    const now = this.#parts.clock.now()
    // After the clock was set back, the bucket must not stay empty.
    this.#refilledAt = Math.min(this.#refilledAt, now)
    const refill = Math.floor((now - this.#refilledAt) / forcedEveryMs)
    if (refill > 0) {
      this.#fetchesLeft = Math.min(forcedAtOnce, this.#fetchesLeft + refill)
      this.#refilledAt = now
    }
    if (this.#fetchesLeft === 0) return false
    this.#fetchesLeft -= 1
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
    return this.#fetching.run('jwks', () => this.#request().finally(() => (this.#isFetching = false)))
  }

  async #request(): Promise<VerificationKeys> {
    try {
      const uri = await this.#parts.jwksUri()
      const response = await this.#parts.outbound.fetch(uri, {
        headers: { accept: 'application/jwk-set+json, application/json' },
      })
      if (response.status !== 200) throw providerUnavailable(`${uri} responded with status ${response.status}`)
      const found = await readKeys(response, uri)
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

async function readKeys(response: Response, uri: string): Promise<JSONWebKeySet> {
  const body = (await response.json().catch(() => undefined)) as JSONWebKeySet | undefined
  if (!Array.isArray(body?.keys)) throw providerUnavailable(`${uri} did not respond with a JSON Web Key Set`)
  // Keys for other purposes or of unsupported types are ignored (RFC 7517 §5).
  return { keys: body.keys.filter((key) => isObject(key) && ['RSA', 'EC', 'OKP'].includes(String(key.kty))) }
}

/** Finds the key for a token by its header. */
export type VerificationKeys = JWTVerifyGetKey<CryptoKey>

/** How many keys are tried for one token at most. */
const maxKeys = 16

/**
 * The keys of a set, by `kid`; for an unknown one, those without, because it is optional (RFC 7517
 * §4.5).
 */
function verificationKeys(set: JSONWebKeySet): VerificationKeys {
  const all = createLocalJWKSet(set)
  const unnamed = set.keys.filter(({ kid }) => kid === undefined)
  if (unnamed.length === 0) return all
  const withoutKid = createLocalJWKSet({ keys: unnamed })
  return async (header, token) => {
    try {
      return await all(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || typeof header.kid !== 'string') throw error
      const { kid: _, ...others } = header
      return withoutKid(others, token)
    }
  }
}

/**
 * Runs `verify` with each key that fits, because keys may share a `kid`, and tokens may lack it.
 * @throws the errors of `verify`; `JWSSignatureVerificationFailed` when no key has signed it
 */
async function verifyWithAny<T>(keys: VerificationKeys, verify: (key: VerificationKeys) => Promise<T>): Promise<T> {
  try {
    return await verify(keys)
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
    let left = maxKeys
    for await (const key of error) {
      if (left-- === 0) break
      try {
        return await verify(async () => key)
      } catch (failure) {
        if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure
      }
    }
    throw new errors.JWSSignatureVerificationFailed()
  }
}
