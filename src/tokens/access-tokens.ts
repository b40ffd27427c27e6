import type { ProviderConfig } from '../config/model/provider.ts'
import type { AccessTokensConfig, UpstreamConfig } from '../config/model/upstream.ts'
import { BoundedMap } from '../core/bounded-map.ts'
import { withWithheld } from '../core/claims.ts'
import { type Clock, timeOfSeconds } from '../core/clock.ts'
import { type ErrorCode } from '../core/error-codes.ts'
import { GatewayError } from '../core/errors.ts'
import { sha256 } from '../core/random.ts'
import { SingleFlight } from '../core/single-flight.ts'
import type { Authentication } from '../core/step-up.ts'
import { unverifiedPayload, type VerifiedAccessToken } from '../provider/access-token.ts'
import type { Provider } from '../provider/provider.ts'
import { claimsOfSession, type Principal, type PrincipalRecord, sidTag, subTag } from '../session/record/record.ts'
import type { ExchangeSubject } from './exchanged-tokens.ts'
import type { IssuedToken, TokenEndings } from './token-endings.ts'

/** The longest access token, in characters. */
const longestAccessTokenBytes = 16 * 1024
/** The largest size of all tokens whose result is kept, in characters. */
const maxCachedBytes = 32 * 1024 * 1024

export interface Issuer {
  readonly config: Pick<ProviderConfig, 'issuer' | 'clockToleranceMs' | 'renamedClaims' | 'claimsFrom' | 'oauth2'>
  readonly audience: string
  readonly provider: Pick<Provider, 'verifyAccessToken' | 'introspect'>
}

export type TokenIdentity =
  | AcceptedToken
  | { readonly kind: 'refused'; readonly why: string }
  | { readonly kind: 'unavailable'; readonly code: ErrorCode; readonly why: string }

export interface AcceptedToken extends Principal, ExchangeSubject {
  readonly kind: 'accepted'
  readonly record: PrincipalRecord & ExchangeSubject['record']
  readonly clockToleranceMs: number
  /** Whether the token has expired or ended. Then open streams end too. */
  isOver(): boolean
}

/** Its `since` is when the JWT was issued, or the provider was asked. */
interface Cached extends IssuedToken {
  readonly accepted: AcceptedToken
  /** Until when the result is used, in ms since the epoch. */
  readonly until: number
  readonly characters: number
  /** Shared by all results about the token. */
  readonly state: { isRevoked: boolean }
}

export interface AccessTokensParts {
  readonly clock: Clock
  readonly endings: Pick<TokenEndings, 'find'>
  /** The introspections that may run at once, by client: see `Shares`. */
  readonly introspections: { hasFor(client: string): boolean; take(client: string): void; leave(client: string): void }
}

/**
 * Verifies access tokens, once for each token and upstream. A result is used until the token
 * expires, or for `introspection_cache`. An ended session ends the earlier tokens of its `sid`.
 */
export class AccessTokens {
  readonly #parts: AccessTokensParts
  readonly #cache = new BoundedMap<string, Cached>('access_tokens', maxCachedBytes, {
    sizeOf: ({ characters }) => 2 * characters + 1024,
  })
  readonly #underWay = new SingleFlight<string, Cached>()

  constructor(parts: AccessTokensParts) {
    this.#parts = parts
  }

  /**
   * Who sends a request with this token. Returns no promise when the token was verified before.
   * @param issuers the providers of the upstream
   * @param client the name that `clientOf` gives to the address of the client
   */
  identify(
    token: string,
    upstream: Pick<UpstreamConfig, 'name'>,
    accepts: AccessTokensConfig,
    issuers: readonly Issuer[],
    client: string,
  ): TokenIdentity | Promise<TokenIdentity> {
    if (token.length > longestAccessTokenBytes)
      return { kind: 'refused', why: `access token refused: it is longer than ${longestAccessTokenBytes} characters` }
    const key = sha256('access_token', upstream.name, token)
    const cached = this.#cache.get(key)
    const isCurrent = cached !== undefined && this.#parts.clock.now() < cached.until
    // After an ending, the provider is asked again.
    if (isCurrent && (accepts.check === 'jwt' || this.#parts.endings.find(cached) === undefined))
      return this.#unlessEnded(cached)
    const isAsked = accepts.check === 'introspection'
    if (isAsked && !this.#underWay.has(key) && !this.#parts.introspections.hasFor(client))
      return { kind: 'unavailable', code: 'ERR_PROVIDER_UNAVAILABLE', why: 'too many introspections are under way' }
    const check = () => this.#check(token, key, accepts, issuers)
    return this.#underWay.run(key, isAsked ? () => this.#within(client, check) : check).then(
      (found) => this.#unlessEnded(found),
      (error: unknown) => {
        const refusal = refusalFrom(error)
        if (refusal.kind === 'refused') this.#noteRevoked(this.#cache.get(key))
        return refusal
      },
    )
  }

  /** The provider does not accept the token any more, although it has not expired. */
  #noteRevoked(cached: Cached | undefined): void {
    if (cached === undefined) return
    const { record, clockToleranceMs } = cached.accepted
    if (this.#parts.clock.now() + clockToleranceMs < record.absolute_expires_at) cached.state.isRevoked = true
  }

  async #within<T>(client: string, ask: () => Promise<T>): Promise<T> {
    this.#parts.introspections.take(client)
    try {
      return await ask()
    } finally {
      this.#parts.introspections.leave(client)
    }
  }

  #unlessEnded(cached: Cached): TokenIdentity | Promise<TokenIdentity> {
    const ending = this.#parts.endings.find(cached)
    if (ending === undefined) return cached.accepted
    if (ending.asking !== undefined) return ending.asking.then(() => this.#unlessEnded(cached))
    return { kind: 'refused', why: 'access token refused: its session has ended' }
  }

  #hasEnded(cached: Cached): boolean {
    const ending = this.#parts.endings.find(cached)
    // While it is asked whether the person has only signed in again, the stream goes on.
    return cached.state.isRevoked || (ending !== undefined && ending.asking === undefined)
  }

  async #check(token: string, key: string, accepts: AccessTokensConfig, issuers: readonly Issuer[]): Promise<Cached> {
    const began = this.#parts.clock.now()
    const issuer = issuerOf(token, accepts, issuers)
    const { provider, config } = issuer
    const isJwt = accepts.check === 'jwt'
    const verified = await (isJwt ? provider.verifyAccessToken(token, accepts) : provider.introspect(token, accepts))
    const { audience } = issuer
    const record = recordOf(token, verified, issuer, began)
    const known = this.#cache.get(key)?.state
    const { clockToleranceMs } = config
    const { absolute_expires_at: expiresAt } = record
    // One that was accepted after its end lasts as long as it is accepted.
    const endsAt = began < expiresAt ? expiresAt : expiresAt + clockToleranceMs
    const hasEnded = () => this.#hasEnded(found)
    const isOver = () => this.#parts.clock.now() >= endsAt || hasEnded()
    const found: Cached = {
      accepted: { kind: 'accepted', key, audience, record, clockToleranceMs, isOver, hasEnded },
      tags: [subTag(audience, verified.sub), ...(verified.sid === undefined ? [] : [sidTag(audience, verified.sid)])],
      since: isJwt ? (verified.issuedAt ?? -Infinity) : began,
      isByProvider: isJwt,
      until: Math.min(verified.expiresAt ?? Infinity, isJwt ? Infinity : began + accepts.introspectionCacheMs),
      characters: token.length,
      state: known?.isRevoked === false ? known : { isRevoked: false },
    }
    this.#cache.set(key, found)
    return found
  }
}

/** @throws {GatewayError} `ERR_TOKEN_INVALID` */
function issuerOf(token: string, { check }: AccessTokensConfig, issuers: readonly Issuer[]): Issuer {
  const iss = check === 'jwt' ? unverifiedPayload(token)?.iss : undefined
  // A provider without ID Tokens has no keys.
  const signing = issuers.filter(({ config }) => config.oauth2 === undefined)
  const found = check === 'jwt' ? signing.find(({ config }) => config.issuer === iss) : issuers[0]
  if (found !== undefined) return found
  const why = iss === undefined ? 'it is not a JWT with "iss"' : '"iss" is not a provider of the upstream'
  throw new GatewayError('ERR_TOKEN_INVALID', `access token refused: ${why}`)
}

function refusalFrom(error: unknown): TokenIdentity {
  if (!(error instanceof GatewayError)) throw error
  const { code, message: why } = error
  if (code === 'ERR_TOKEN_INVALID') return { kind: 'refused', why }
  return { kind: 'unavailable', code: 'ERR_PROVIDER_UNAVAILABLE', why }
}

function recordOf(
  token: string,
  { iss, sub, sid, expiresAt = Infinity, claims }: VerifiedAccessToken,
  { config }: Issuer,
  now: number,
): AcceptedToken['record'] {
  const who = { iss, sub, ...(sid === undefined ? {} : { sid }) }
  const own = claimsOfSession(claims, who, undefined, config.renamedClaims)
  // The APIs of `claims_from` are read for sessions only.
  const unread = config.claimsFrom.filter(({ name, isMerged }) => isMerged || !Object.hasOwn(own, name))
  return {
    ...who,
    absolute_expires_at: expiresAt,
    tokens: { access_token: token },
    claims: withWithheld(
      own,
      unread.map(({ name }) => name),
    ),
    authentication: authenticationIn(claims, now + config.clockToleranceMs),
  }
}

/** RFC 9068 §2.2.1. A time in the future, such as one in ms, would never be too old. */
function authenticationIn({ acr, auth_time }: VerifiedAccessToken['claims'], latest: number): Authentication {
  const isKnown = typeof auth_time === 'number' && auth_time * 1000 <= latest
  return { ...(typeof acr === 'string' && { acr }), ...(isKnown && { auth_time: timeOfSeconds(auth_time) }) }
}
