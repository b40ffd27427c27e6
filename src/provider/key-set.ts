import {
  createLocalJWKSet,
  errors,
  type CryptoKey,
  type FlattenedJWSInput,
  type JSONWebKeySet,
  type JWSHeaderParameters,
} from 'jose'
import type { Clock } from '../core/clock.ts'
import { GatewayError, reason } from '../core/errors.ts'
import { SingleFlight } from '../core/single-flight.ts'
import type { Log } from '../observe/log.ts'
import type { Outbound } from './outbound.ts'

const renewAfterMs = 60 * 60 * 1000
const forcedAtOnce = 4
const forcedEveryMs = 10_000

/**
 * The provider's verification keys. A key that is not there yet is looked for at the provider again: a few times at once, then
 * once in ten seconds, so that a rotation is seen at the first token and a flood of made-up `kid`s is not passed on. While the
 * provider does not answer, the keys last seen stay in use.
 */
export class KeySet {
  readonly #parts: {
    readonly jwksUri: () => Promise<string>
    readonly outbound: Outbound
    readonly clock: Clock
    readonly log: Log
  }
  readonly #fetching = new SingleFlight<'jwks', void>()
  #lookUp: ReturnType<typeof createLocalJWKSet> | undefined
  #fetchedAt = 0
  #tokens = forcedAtOnce
  #refilledAt = 0

  constructor(parts: {
    readonly jwksUri: () => Promise<string>
    readonly outbound: Outbound
    readonly clock: Clock
    readonly log: Log
  }) {
    this.#parts = parts
  }

  /** The key of a JWS, for `jwtVerify`. @throws when there is none, or the keys cannot be had at all */
  readonly key = async (header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey> => {
    if (this.#lookUp === undefined) await this.#fetch()
    else if (this.#parts.clock.now() - this.#fetchedAt > renewAfterMs) this.#renewInBackground()
    try {
      return await this.#find(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || !this.#mayForce()) throw error
      await this.#fetch().catch((cause: unknown) =>
        this.#parts.log.warn('provider.jwks_unavailable', { reason: reason(cause) }),
      )
      return this.#find(header, token)
    }
  }

  #find(header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey> {
    if (this.#lookUp === undefined)
      throw new GatewayError('ERR_PROVIDER_UNAVAILABLE', 'the provider has not given its keys yet')
    return this.#lookUp(header, token)
  }

  #renewInBackground(): void {
    if (!this.#mayForce()) return
    this.#fetch().catch((cause: unknown) =>
      this.#parts.log.warn('provider.jwks_unavailable', { reason: reason(cause) }),
    )
  }

  /** A token bucket: `forcedAtOnce` at once, then one in `forcedEveryMs`. */
  #mayForce(): boolean {
    const now = this.#parts.clock.now()
    const refill = Math.floor((now - this.#refilledAt) / forcedEveryMs)
    if (refill > 0) {
      this.#tokens = Math.min(forcedAtOnce, this.#tokens + refill)
      this.#refilledAt = now
    }
    if (this.#tokens === 0) return false
    this.#tokens -= 1
    return true
  }

  #fetch(): Promise<void> {
    return this.#fetching.run('jwks', async () => {
      const uri = await this.#parts.jwksUri()
      const answer = await this.#parts.outbound.fetch(uri, {
        headers: { accept: 'application/jwk-set+json, application/json' },
      })
      if (answer.status !== 200)
        throw new GatewayError('ERR_PROVIDER_UNAVAILABLE', `${uri} answered with status ${answer.status}`)
      this.#lookUp = createLocalJWKSet(await readKeys(answer, uri))
      this.#fetchedAt = this.#parts.clock.now()
    })
  }
}

async function readKeys(answer: Response, uri: string): Promise<JSONWebKeySet> {
  const body = (await answer.json().catch(() => undefined)) as JSONWebKeySet | undefined
  if (!Array.isArray(body?.keys))
    throw new GatewayError('ERR_PROVIDER_UNAVAILABLE', `${uri} did not answer with a JSON Web Key Set`)
  // A set may hold keys for other purposes, or of types that we cannot use (RFC 7517 §5): they must not spoil the others.
  return {
    keys: body.keys.filter(
      (key) => typeof key === 'object' && key !== null && ['RSA', 'EC', 'OKP'].includes(String(key.kty)),
    ),
  }
}
