import { decodeProtectedHeader, type JWTPayload, type JWTVerifyOptions, type JWTVerifyResult } from 'jose'
import {
  fapiAlgorithms,
  type ProviderConfig,
  type SigningAlgorithm,
  signingAlgorithms,
} from '../config/model/provider.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { GatewayError, reason } from '../core/errors.ts'
import { isDeeperThan, maxJsonDepth } from '../core/json.ts'
import type { KeySet } from './key-set.ts'
import { clockAdvice, hintForAlgorithm } from './provider-errors.ts'

/** The expected values for every token of the provider. */
export interface TokenExpectations {
  readonly issuer: string
  readonly client_id: string
  /** The accepted values of `aud`. Absent: `client_id`. */
  readonly audience?: readonly string[]
  /** The only accepted algorithm (RFC 8725 §3.1). */
  readonly algorithm: SigningAlgorithm
  readonly keys: Pick<KeySet, 'verify'>
  /** The accepted difference of the clocks, in ms. */
  readonly clockToleranceMs: number
  /** In ms since the epoch. */
  readonly now: number
}

/** The algorithms that a provider may sign with, and that `provider.profile` allows. */
export function algorithmsFor({ profile }: Pick<ProviderConfig, 'profile'>): readonly SigningAlgorithm[] {
  return profile === undefined ? signingAlgorithms : fapiAlgorithms
}

/**
 * Verifies the signature and the registered claims of a JWT of the provider.
 * @param refuse throws the error for a JWT that jose rejects
 * @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE` without keys
 */
export async function verifyJwt(
  jwt: string,
  { issuer, keys, clockToleranceMs, now }: Pick<TokenExpectations, 'issuer' | 'keys' | 'clockToleranceMs' | 'now'>,
  options: JWTVerifyOptions,
  refuse: (cause: unknown) => never,
): Promise<JWTVerifyResult> {
  const times = { clockTolerance: clockToleranceMs / 1000, currentDate: new Date(now) }
  try {
    return await keys.verify(jwt, { issuer, ...options, ...times })
  } catch (cause) {
    if (cause instanceof GatewayError) throw cause
    return refuse(cause)
  }
}

const clockHint = `; if it was issued just now, ${clockAdvice}`
const keyHint =
  '; jwks_uri of the provider does not have the key of this token: check that all its servers publish the same keys, and that no cache before it is old'

export interface SignedToken {
  readonly typ: string | undefined
  /** `exp` is when it expires, in seconds since the epoch, even if the token has no `exp`. */
  readonly payload: JWTPayload & { readonly iat: number; readonly exp: number }
}

/**
 * Verifies what tokens of the provider have in common: signature, algorithm, `iss`, `aud`, `exp`,
 * `iat` and `nbf`.
 * @param lifetimeWithoutExp in seconds after `iat`; absent: `exp` is required
 * @throws {GatewayError} `code`, or `ERR_PROVIDER_UNAVAILABLE` without keys
 */
export async function verifySignedToken(
  token: string,
  expected: TokenExpectations,
  { code, lifetimeWithoutExp }: { readonly code: ErrorCode; readonly lifetimeWithoutExp?: number },
): Promise<SignedToken> {
  const options = {
    audience: [...(expected.audience ?? [expected.client_id])],
    algorithms: [expected.algorithm],
    requiredClaims: ['iss', 'aud', 'iat', ...(lifetimeWithoutExp === undefined ? ['exp'] : [])],
  }
  const { payload, protectedHeader } = await verifyJwt(token, expected, options, (cause) => {
    const hint = hintFor(cause, token, expected.algorithm)
    throw new GatewayError(code, `signature or registered claims: ${reason(cause)}${hint}`, { cause })
  })
  if (isDeeperThan(maxJsonDepth, payload))
    throw new GatewayError(code, `its claims are nested deeper than ${maxJsonDepth} levels`)
  const { iat } = payload
  if (typeof iat !== 'number') throw new GatewayError(code, '"iat" is not a number')
  const exp = payload.exp ?? iat + (lifetimeWithoutExp ?? 0)
  // jose has checked `exp`, if the token has one.
  if (payload.exp === undefined && exp * 1000 <= expected.now - expected.clockToleranceMs)
    throw new GatewayError(code, `it has no "exp", and was issued more than ${exp - iat} s ago${clockHint}`)
  const issuedIn = Math.round(iat - expected.now / 1000)
  if (issuedIn * 1000 > expected.clockToleranceMs)
    throw new GatewayError(code, `"iat" is ${issuedIn} s ahead of the clock of this machine: ${clockAdvice}`)
  return { typ: typOf(protectedHeader, code), payload: { ...payload, iat, exp } }
}

function hintFor(error: unknown, token: string, algorithm: SigningAlgorithm): string {
  const errorCode = error instanceof Error && 'code' in error ? error.code : undefined
  if (errorCode === 'ERR_JWT_EXPIRED') return clockHint
  if (errorCode === 'ERR_JWKS_NO_MATCHING_KEY') return keyHint
  return errorCode === 'ERR_JOSE_ALG_NOT_ALLOWED' ? hintForAlgorithm(decodeProtectedHeader(token).alg, algorithm) : ''
}

/** The `typ` of a header, without `application/` (RFC 7515 §4.1.9), or throws `code`. */
export function typOf({ typ }: { readonly typ?: unknown }, code: ErrorCode): string | undefined {
  if (typ === undefined) return undefined
  if (typeof typ !== 'string') throw new GatewayError(code, '"typ" is not a string')
  return typ.toLowerCase().replace(/^application\//, '')
}

/** A claim that must be a non-empty string if it is present. Throws `code` otherwise. */
export function stringClaim(payload: JWTPayload, name: string, code: ErrorCode): string | undefined {
  const value = payload[name]
  if (value === undefined) return undefined
  if (typeof value !== 'string' || value === '' || value.length > 255 * 4)
    throw new GatewayError(code, `"${name}" is not a usable string`)
  return value
}
