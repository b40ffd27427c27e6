import { GatewayError } from '../core/errors.ts'
import { stringClaim, verifySignedToken, type TokenExpectations } from './signed-token.ts'

/** What an ID Token tells us: identity, and nothing else (names and e-mail come from userinfo). */
export interface IdToken {
  readonly iss: string
  readonly sub: string
  readonly sid?: string
}

export interface IdTokenExpectations extends TokenExpectations {
  /** At sign-in: the nonce we sent. At refresh: absent, a nonce is not asked for (OpenID Connect Core §12.2). */
  readonly nonce?: string
  /** At refresh: who the session belongs to; another `sub` is refused (OpenID Connect Core §12.2). */
  readonly sub?: string
}

const code = 'ERR_SIGN_IN_ANSWER'

/**
 * Verifies an ID Token: OpenID Connect Core §3.1.3.7, and §12.2 for one that comes with a refresh.
 * @throws {GatewayError} `ERR_SIGN_IN_ANSWER` names the claim; `ERR_PROVIDER_UNAVAILABLE` when keys cannot be had
 */
export async function verifyIdToken(id_token: string, expected: IdTokenExpectations): Promise<IdToken> {
  const { typ, payload } = await verifySignedToken(id_token, expected, code)
  const refuse = (why: string): never => {
    throw new GatewayError(code, `ID Token refused: ${why}`)
  }

  // A token made for another purpose must not pass for an ID Token: RFC 8725 §3.11.
  if (typ !== undefined && typ !== 'jwt' && typ !== 'id_token+jwt') refuse(`"typ" is ${typ}`)
  if ('events' in payload) refuse('"events" is present')
  if (expected.nonce !== undefined && payload['nonce'] !== expected.nonce)
    refuse('"nonce" is not the one that was sent')
  // §3.1.3.7 (3)–(5): an audience beside us is trusted only if the token says that it was issued to us.
  const azp = stringClaim(payload, 'azp', code)
  if (azp !== undefined && azp !== expected.client_id) refuse('"azp" names another client')
  if (Array.isArray(payload.aud) && payload.aud.length > 1 && azp === undefined)
    refuse('several audiences, but no "azp"')

  const sub = stringClaim(payload, 'sub', code) ?? refuse('"sub" is missing')
  if (expected.sub !== undefined && sub !== expected.sub) refuse('"sub" is not the one that signed in')
  const sid = stringClaim(payload, 'sid', code)
  return { iss: expected.issuer, sub, ...(sid === undefined ? {} : { sid }) }
}
