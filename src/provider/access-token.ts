// JWT access tokens (RFC 9068) and token introspection (RFC 7662).
import type { JWTPayload } from 'jose'
import type { ProviderConfig } from '../config/model/provider.ts'
import type { AccessTokensConfig } from '../config/model/upstream.ts'
import type { Claims } from '../core/claims.ts'
import { timeOfSeconds } from '../core/clock.ts'
import { GatewayError, reason, printable } from '../core/errors.ts'
import { isDeeperThan, maxJsonDepth, objectIn } from '../core/json.ts'
import type { KeySet } from './key-set.ts'
import { clockAdvice } from './provider-errors.ts'
import { algorithmsFor, stringClaim, typOf, verifyJwt } from './signed-token.ts'

/** What an access token says about the caller. Times are in ms since the epoch. */
export interface VerifiedAccessToken {
  readonly iss: string
  /** The person, or the client that acts for itself. */
  readonly sub: string
  readonly sid: string | undefined
  /** When the token was issued; absent when an introspection does not say it. */
  readonly issuedAt: number | undefined
  /** When the token expires; absent when an introspection does not say it. */
  readonly expiresAt: number | undefined
  readonly claims: Claims
}

export interface AccessTokenExpectations {
  readonly config: Pick<ProviderConfig, 'issuer' | 'clockToleranceMs' | 'profile'>
  readonly keys: Pick<KeySet, 'verify'>
  readonly accepts: Pick<AccessTokensConfig, 'audience' | 'types'>
  /** In ms since the epoch. */
  readonly now: number
}

const code = 'ERR_TOKEN_INVALID'

/**
 * Verifies a JWT access token (RFC 9068 §4).
 * @throws {GatewayError} `ERR_TOKEN_INVALID`, or `ERR_PROVIDER_UNAVAILABLE` without keys
 */
export async function verifyAccessToken(
  token: string,
  { config, keys, accepts, now }: AccessTokenExpectations,
): Promise<VerifiedAccessToken> {
  const options = {
    audience: [...accepts.audience],
    // The key of the provider decides which one of these it is: see `createLocalJWKSet`.
    algorithms: [...algorithmsFor(config)],
    // RFC 9068 §2.2. Without `sub`, a client could pass for the person whose `sub` is its name.
    requiredClaims: ['iss', 'sub', 'aud', 'exp', 'iat'],
  }
  const { payload, protectedHeader } = await verifyJwt(token, { ...config, keys, now }, options, (cause) => {
    throw new GatewayError(code, `signature or registered claims: ${reason(cause)}`, { cause })
  })
  const typ = typOf(protectedHeader, code) ?? 'none'
  if (!accepts.types.includes(typ))
    reject(`"typ" is ${printable(typ)}, and access_tokens.types is ${accepts.types.join(', ')}`)
  return tokenFrom(payload, config, now)
}

/** Judges the response to an introspection (RFC 7662 §2.2), or throws `ERR_TOKEN_INVALID`. */
export function readIntrospection(
  response: JWTPayload & { readonly active?: unknown },
  token: string,
  { config, accepts, now }: Omit<AccessTokenExpectations, 'keys'>,
): VerifiedAccessToken {
  if (response.active !== true) return reject('it is not active')
  if (response.iss !== undefined && response.iss !== config.issuer) reject('"iss" is another issuer')
  const audience: unknown = response.aud
  const audiences: readonly unknown[] = Array.isArray(audience) ? audience : [audience]
  // A refresh token, or a token for UserInfo, is active too, but it is for no audience of ours.
  if (!accepts.audience.some((each) => audiences.includes(each))) reject('"aud" is none of access_tokens.audience')
  const type: unknown = response['token_type']
  if (type !== undefined && !['bearer', 'access_token'].includes(String(type).toLowerCase()))
    reject('"token_type" is not Bearer')
  for (const name of ['exp', 'iat', 'nbf'] as const)
    if (response[name] !== undefined && typeof response[name] !== 'number') reject(`"${name}" is not a number`)
  const { exp, nbf } = response
  if (exp !== undefined && exp * 1000 <= now - config.clockToleranceMs) reject('"exp" has passed')
  if (nbf !== undefined && nbf * 1000 > now + config.clockToleranceMs) reject(`"nbf" lies ahead: ${clockAdvice}`)
  const jti = response.jti === undefined ? undefined : unverifiedPayload(token)?.['jti']
  if (jti !== undefined && jti !== response.jti) reject('the response is about another token')
  const { active: _, ...claims } = response
  return tokenFrom(claims, config, now)
}

function tokenFrom(
  payload: JWTPayload,
  { issuer, clockToleranceMs }: AccessTokenExpectations['config'],
  now: number,
): VerifiedAccessToken {
  if (isDeeperThan(maxJsonDepth, payload)) reject(`its claims are nested deeper than ${maxJsonDepth} levels`)
  const { iat, exp } = payload
  if (iat !== undefined && typeof iat !== 'number') reject('"iat" is not a number')
  if (iat !== undefined && iat * 1000 > now + clockToleranceMs) reject(`"iat" lies ahead: ${clockAdvice}`)
  rejectOtherKinds(payload)
  // A client that acts for itself may have no `sub` in an introspection (RFC 7662 §2.2).
  const client_id = stringClaim(payload, 'client_id', code) ?? stringClaim(payload, 'azp', code)
  const sub = stringClaim(payload, 'sub', code) ?? client_id ?? reject('"sub" and "client_id" are missing')
  return {
    iss: issuer,
    sub,
    sid: stringClaim(payload, 'sid', code),
    issuedAt: iat === undefined ? undefined : timeOfSeconds(iat),
    expiresAt: exp === undefined ? undefined : timeOfSeconds(exp),
    claims: { ...(payload as Claims), ...(client_id !== undefined && { client_id }) },
  }
}

/** Rejects tokens of the same provider that are for another purpose (RFC 8725 §3.11, §3.12). */
function rejectOtherKinds(payload: JWTPayload): void {
  for (const name of ['nonce', 'at_hash', 'c_hash', 's_hash'])
    if (name in payload) reject(`"${name}" is present, so it is an ID Token`)
  if ('events' in payload) reject('"events" is present, so it is a Logout Token')
  // Keycloak writes the purpose into this claim: Bearer, ID, Refresh, Logout.
  const typ: unknown = payload['typ']
  if (typ !== undefined && !['bearer', 'at+jwt'].includes(String(typ).toLowerCase()))
    reject('the claim "typ" is not Bearer')
  // Without the proof, a thief could use it (RFC 9449 §7.1, RFC 8705 §3).
  if ('cnf' in payload) reject('it is bound to a key ("cnf"), and the gateway accepts bearer tokens only')
}

/** The payload of a JWT before its signature is verified; `undefined` for another text. */
export function unverifiedPayload(token: string): JWTPayload | undefined {
  const [, payload, signature] = token.split('.')
  if (payload === undefined || signature === undefined) return undefined
  return objectIn(Buffer.from(payload, 'base64url').toString())
}

function reject(why: string): never {
  throw new GatewayError(code, `access token refused: ${why}`)
}
