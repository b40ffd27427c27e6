import { decodeJwt } from 'jose'
import type { Claims } from '../core/claims.ts'
import { GatewayError } from '../core/errors.ts'
import { leftHalfOfHash } from '../core/random.ts'
import { stringClaim, verifySignedToken, type TokenExpectations } from './signed-token.ts'

/** What an ID Token tells us: identity, and nothing else (names and e-mail come from userinfo). */
export interface IdToken {
  readonly iss: string
  readonly sub: string
  readonly sid?: string
}

/**
 * Some claims of an ID Token that was verified when it came. Those that it does not have are left
 * out.
 * @throws nothing for a token that has been verified
 */
export function claimsOfIdToken(id_token: string, names: readonly string[]): Claims {
  if (names.length === 0) return {}
  const payload = decodeJwt(id_token) as Claims
  return Object.fromEntries(Object.entries(payload).filter(([name]) => names.includes(name)))
}

export interface IdTokenExpectations extends TokenExpectations {
  /**
   * At sign-in: the nonce we sent. At refresh: absent, a nonce is not asked for (OpenID Connect
   * Core §12.2).
   */
  readonly nonce?: string
  /**
   * At sign-in with `max_age`: the person has shown who they are no earlier, in ms since the epoch
   * (§3.1.3.7 (13)).
   */
  readonly authenticatedSince?: number | undefined
  /**
   * The access token that came with it: `at_hash` has to be its hash, when it is there (§3.1.3.8).
   */
  readonly access_token?: string
  /**
   * At refresh: who the session belongs to; another `sub` is refused (OpenID Connect Core §12.2).
   */
  readonly sub?: string
}

const code = 'ERR_SIGN_IN_ANSWER'

/**
 * Verifies an ID Token: OpenID Connect Core §3.1.3.7, and §12.2 for one that comes with a refresh.
 * @throws {GatewayError} `ERR_SIGN_IN_ANSWER` names the claim; `ERR_PROVIDER_UNAVAILABLE` when keys
 * cannot be had
 */
export async function verifyIdToken(id_token: string, expected: IdTokenExpectations): Promise<IdToken> {
  const { typ, payload } = await verifySignedToken(id_token, expected, { code })
  const refuse = (why: string): never => {
    throw new GatewayError(code, `ID Token refused: ${why}`)
  }

  // A token made for another purpose must not pass for an ID Token: RFC 8725 §3.11.
  if (typ !== undefined && typ !== 'jwt' && typ !== 'id_token+jwt') refuse(`"typ" is ${typ}`)
  if ('events' in payload) refuse('"events" is present')
  if (expected.nonce !== undefined && payload['nonce'] !== expected.nonce)
    refuse('"nonce" is not the one that was sent')
  // §3.1.3.7 (3)–(5): an audience beside us is trusted only if the token says that it was issued to
  // us.
  const azp = stringClaim(payload, 'azp', code)
  if (azp !== undefined && azp !== expected.client_id) refuse('"azp" names another client')
  if (Array.isArray(payload.aud) && payload.aud.length > 1 && azp === undefined)
    refuse('several audiences, but no "azp"')

  if ('at_hash' in payload && expected.access_token !== undefined) {
    const { algorithm, access_token } = expected
    // The hash function of the signature; Ed25519 has SHA-512 within (RFC 8032 §5.1).
    const bits = algorithm.endsWith('256') ? 256 : algorithm.endsWith('384') ? 384 : 512
    if (payload['at_hash'] !== leftHalfOfHash(bits, access_token)) refuse('"at_hash" is that of another access token')
  }

  if (expected.authenticatedSince !== undefined) {
    // The person could have taken "max_age" out of the address on the way.
    const { auth_time } = payload
    if (typeof auth_time !== 'number') refuse('"auth_time" is missing, although "max_age" was asked for')
    else if (auth_time * 1000 < expected.authenticatedSince - expected.clockToleranceMs)
      refuse('"auth_time" lies further back than "max_age" allows')
  }

  const sub = stringClaim(payload, 'sub', code) ?? refuse('"sub" is missing')
  if (expected.sub !== undefined && sub !== expected.sub) refuse('"sub" is not the one that signed in')
  const sid = stringClaim(payload, 'sid', code)
  return { iss: expected.issuer, sub, ...(sid === undefined ? {} : { sid }) }
}
