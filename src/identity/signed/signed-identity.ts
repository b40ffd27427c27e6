import type { GatewayConfig } from '../../config/model/gateway.ts'
import type { IdentityAlgorithm, SignedIdentityConfig } from '../../config/model/upstream.ts'
import { type Claims, isWithheld, type JsonValue, readClaim, withheldReason } from '../../core/claims.ts'
import { type Clock, isWithin } from '../../core/clock.ts'
import type { RotatingKey } from '../../keys/rotating-key.ts'
import type { RotatingKeys } from '../../keys/rotating-keys.ts'
import type { PrincipalRecord } from '../../session/record/record.ts'
import { type DroppedHeader, inexactReason } from '../claim-headers.ts'
import { signJwt } from './signing-key.ts'

/** The longest JWT that is sent, in bytes. */
const maxBytes = 16 * 1024

/** A JWT for an upstream; or the reason why the upstream must not receive the request. */
export type SignedIdentity = Issued | { readonly why: string }

interface Issued {
  readonly token: string
  /** The claims that the JWT lacks although they are present. */
  readonly dropped: readonly DroppedHeader[]
}

/** The keys that sign. */
export type IdentityKeys = Pick<RotatingKeys<IdentityAlgorithm>, 'has' | 'inUse'>

interface Cached {
  readonly identity: SignedIdentity
  readonly issuedAt: number
  readonly renewAfterMs: number
}

/** Signs JWTs that say who a person is. Each JWT is for one upstream. */
export class SignedIdentities {
  readonly #issuer: string
  /** With several providers, `sub` alone does not identify a person. */
  readonly #namesProvider: boolean
  readonly #keys: IdentityKeys
  readonly #clock: Clock
  /** The entry of a session disappears when its record leaves memory, or is replaced. */
  readonly #ofRecord = new WeakMap<PrincipalRecord, Map<SignedIdentityConfig, Cached>>()

  constructor(
    { externalUrl, providers }: Pick<GatewayConfig, 'externalUrl' | 'providers'>,
    parts: { readonly keys: IdentityKeys; readonly clock: Clock },
  ) {
    this.#issuer = externalUrl.origin
    this.#namesProvider = providers.length > 1
    this.#keys = parts.keys
    this.#clock = parts.clock
  }

  /** Whether an identity can be signed. `false` until the keys were read from the store. */
  isReady({ algorithm }: SignedIdentityConfig): boolean {
    return this.#keys.has(algorithm)
  }

  /**
   * The JWT about the person of a session, which it never outlives. Requests share it until less
   * than half of its life is left.
   */
  of(record: PrincipalRecord, config: SignedIdentityConfig): SignedIdentity {
    const byConfig = this.#ofRecord.get(record) ?? new Map<SignedIdentityConfig, Cached>()
    this.#ofRecord.set(record, byConfig)
    const now = this.#clock.now()
    const cached = byConfig.get(config)
    if (cached !== undefined && isWithin(cached.renewAfterMs, cached.issuedAt, now)) return cached.identity
    const key = this.#keys.inUse(config.algorithm)
    if (key === undefined) return { why: 'there is no signing key yet' }
    const identity = this.#signed(key, record, config, now)
    // A JWT that ends with the session cannot be renewed.
    const endsWithSession = record.absolute_expires_at <= now + config.lifetimeMs
    const renewAfterMs = endsWithSession ? Infinity : config.lifetimeMs / 2
    byConfig.set(config, { identity, issuedAt: now, renewAfterMs })
    return identity
  }

  #signed(key: RotatingKey, record: PrincipalRecord, config: SignedIdentityConfig, now: number): SignedIdentity {
    const { claims, dropped } = chosenClaims(record.claims, config)
    const token = signJwt(key, {
      iss: this.#issuer,
      sub: record.sub,
      aud: config.audience,
      iat: Math.floor(now / 1000),
      exp: Math.floor(Math.min(now + config.lifetimeMs, record.absolute_expires_at) / 1000),
      ...claims,
      ...(this.#namesProvider && { idp: record.iss }),
    })
    return token.length > maxBytes ? { why: `longer than ${maxBytes} bytes` } : { token, dropped }
  }
}

/** The claims for the JWT, as they are. One that has lost digits is left out, as in headers. */
function chosenClaims(
  present: Claims,
  { claims, header }: SignedIdentityConfig,
): { readonly claims: Claims; readonly dropped: readonly DroppedHeader[] } {
  const chosen: [string, JsonValue][] = []
  const dropped: DroppedHeader[] = []
  for (const { name, path } of claims) {
    const value = readClaim(present, path)
    const why = isWithheld(present, path) ? withheldReason : inexactReason(value)
    if (why !== undefined) dropped.push({ name: header, why: `${name}: ${why}` })
    else if (value !== undefined) chosen.push([name, value])
  }
  return { claims: Object.fromEntries(chosen), dropped }
}
