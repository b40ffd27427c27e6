import { decodeJwt, type JWTPayload } from 'jose'
import type { Claims } from '../core/claims.ts'
import { timeOfSeconds } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import { leftHalfOfHash } from '../core/random.ts'
import type { Authentication, StepUp } from '../core/step-up.ts'
import { stringClaim, verifySignedToken, type TokenExpectations } from './signed-token.ts'

/** The identity in an ID Token. All other claims come from UserInfo. */
export interface IdToken {
  readonly iss: string
  readonly sub: string
  readonly sid?: string
  readonly authentication: Authentication
  /** When the session must end, in ms since the epoch. Absent: the provider does not say it. */
  readonly session_expires_at?: number
}

/**
 * All claims of an ID Token that was verified when it arrived. An empty one has none: the provider
 * is of the kind `oauth2`.
 */
export function claimsOfIdToken(id_token: string): Claims {
  return id_token === '' ? {} : (decodeJwt(id_token) as Claims)
}

export interface IdTokenExpectations extends TokenExpectations {
  /** The nonce that was sent. Absent at a refresh (OpenID Connect Core §12.2). */
  readonly nonce?: string
  /** With `max_age`: the earliest authentication, in ms since the epoch (§3.1.3.7 (13)). */
  readonly authenticatedSince?: number | undefined
  readonly acr_values?: StepUp['acr_values']
  /** The access token of the response. `at_hash`, if present, must be its hash (§3.1.3.8). */
  readonly access_token?: string
  /** The name of the claim that says when the session must end. Default: `session_expiry`. */
  readonly sessionExpiryClaim?: string
  /** At a refresh: the `sub` of the session, the only one that is accepted (§12.2). */
  readonly sub?: string
}

const code = 'ERR_SIGN_IN_RESPONSE'

/**
 * Verifies an ID Token (OpenID Connect Core §3.1.3.7, and §12.2 after a refresh).
 * @throws {GatewayError} `ERR_SIGN_IN_RESPONSE`, or `ERR_PROVIDER_UNAVAILABLE` without keys, or
 * `ERR_STEP_UP_UNMET` when the person was not authenticated as the request demanded
 */
export async function verifyIdToken(id_token: string, expected: IdTokenExpectations): Promise<IdToken> {
  const { typ, payload } = await verifySignedToken(id_token, expected, { code })
  const reject = (why: string): never => {
    throw new GatewayError(code, `ID Token refused: ${why}`)
  }

  // A token for another purpose must not be accepted as an ID Token (RFC 8725 §3.11).
  if (typ !== undefined && typ !== 'jwt' && typ !== 'id_token+jwt') reject(`"typ" is ${typ}`)
  if ('events' in payload) reject('"events" is present')
  if (expected.nonce !== undefined && payload['nonce'] !== expected.nonce) reject('"nonce" is not that of the request')
  // With several audiences, `azp` must name this client (§3.1.3.7 (3)–(5)).
  const azp = stringClaim(payload, 'azp', code)
  if (azp !== undefined && azp !== expected.client_id) reject('"azp" names another client')
  if (Array.isArray(payload.aud) && payload.aud.length > 1 && azp === undefined)
    reject('several audiences, but no "azp"')

  if ('at_hash' in payload && expected.access_token !== undefined) {
    const { algorithm, access_token } = expected
    // The hash function is that of the signature. Ed25519 uses SHA-512 (RFC 8032 §5.1).
    const bits = algorithm.endsWith('256') ? 256 : algorithm.endsWith('384') ? 384 : 512
    if (payload['at_hash'] !== leftHalfOfHash(bits, access_token)) reject('"at_hash" is not that of the access token')
  }

  const authentication = authenticationOf(payload, expected, reject)

  const sub = stringClaim(payload, 'sub', code) ?? reject('"sub" is missing')
  if (expected.sub !== undefined && sub !== expected.sub) reject('"sub" is not that of the session')
  const sid = stringClaim(payload, 'sid', code)
  const session_expires_at = sessionExpiryOf(payload, expected, reject)
  return {
    iss: expected.issuer,
    sub,
    authentication,
    ...(sid !== undefined && { sid }),
    ...(session_expires_at !== undefined && { session_expires_at }),
  }
}

/** When the session must end (IPSIE SL1 OpenID Connect Profile), in ms since the epoch. */
function sessionExpiryOf(
  payload: JWTPayload,
  { sessionExpiryClaim: name = 'session_expiry' }: IdTokenExpectations,
  reject: (why: string) => never,
): number | undefined {
  const expiry = payload[name]
  if (expiry === undefined) return undefined
  // The session must not outlive what cannot be read.
  return typeof expiry === 'number' ? timeOfSeconds(expiry) : reject(`"${name}" is not a number of seconds`)
}

/** How the person authenticated. Rejects what the authorization request did not allow. */
function authenticationOf(
  { acr, auth_time }: JWTPayload,
  { authenticatedSince, acr_values, now, clockToleranceMs }: IdTokenExpectations,
  reject: (why: string) => never,
): Authentication {
  const authenticatedAt = typeof auth_time === 'number' ? timeOfSeconds(auth_time) : Infinity
  const authentication = {
    ...(typeof acr === 'string' && { acr }),
    // A time in the future, such as one in ms, would never be too old.
    ...(authenticatedAt <= now + clockToleranceMs && { auth_time: authenticatedAt }),
  }
  if (authenticatedSince !== undefined) {
    // The person could have removed "max_age" from the URL.
    if (authentication.auth_time === undefined)
      reject('"auth_time" is missing, although the request contained "max_age"')
    else if (authentication.auth_time < authenticatedSince - clockToleranceMs)
      reject('"auth_time" is older than "max_age" allows')
  }
  // A provider may ignore "acr_values" (OpenID Connect Core §3.1.2.1).
  if (acr_values !== undefined && !acr_values.includes(authentication.acr ?? ''))
    throw new GatewayError('ERR_STEP_UP_UNMET', `ID Token refused: "acr" is not ${acr_values.join(' or ')}`)
  return authentication
}
