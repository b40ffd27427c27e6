import { GatewayError } from '../core/errors.ts'
import { stringClaim, verifySignedToken, type TokenExpectations } from './signed-token.ts'

export interface LogoutToken {
  readonly iss: string
  readonly jti: string
  /** Seconds since the epoch. For a token without `exp`: when it stops being accepted. */
  readonly exp: number
  readonly sub: string | undefined
  readonly sid: string | undefined
}

const code = 'ERR_LOGOUT_TOKEN_INVALID'
const logoutEvent = 'http://schemas.openid.net/event/backchannel-logout'
/**
 * A Logout Token is short-lived; one that was issued longer ago than this is refused whatever its
 * `exp` says.
 */
const maxAgeSeconds = 60 * 60
/**
 * Providers that predate the final specification leave `exp` out; §4 recommends that a Logout Token
 * lives two minutes at most.
 */
const lifetimeWithoutExp = 2 * 60

/**
 * Verifies a Logout Token: OpenID Connect Back-Channel Logout 1.0 §2.6.
 * @throws {GatewayError} `ERR_LOGOUT_TOKEN_INVALID` names the claim; `ERR_PROVIDER_UNAVAILABLE`
 * when keys cannot be had
 */
export async function verifyLogoutToken(logout_token: string, expected: TokenExpectations): Promise<LogoutToken> {
  const refuse = (why: string): never => {
    throw new GatewayError(code, `logout token refused: ${why}`)
  }
  const { typ, payload } = await verifySignedToken(logout_token, expected, { code, lifetimeWithoutExp })

  // §2.4 recommends `logout+jwt` and allows providers that say JWT or nothing.
  if (typ !== undefined && typ !== 'jwt' && typ !== 'logout+jwt') refuse(`"typ" is ${typ}`)
  if (payload.iat < expected.now / 1000 - maxAgeSeconds) refuse('it was issued more than an hour ago')
  if (!isLogoutEvent(payload['events'])) refuse('"events" does not announce a logout')
  // An ID Token must never pass for a Logout Token: §2.6 (7).
  if ('nonce' in payload) refuse('"nonce" is present')
  const sub = stringClaim(payload, 'sub', code)
  const sid = stringClaim(payload, 'sid', code)
  if (sub === undefined && sid === undefined) refuse('neither "sub" nor "sid" is present')
  const jti = stringClaim(payload, 'jti', code) ?? refuse('"jti" is missing')

  return { iss: expected.issuer, jti, exp: payload.exp, sub, sid }
}

function isLogoutEvent(events: unknown): boolean {
  if (typeof events !== 'object' || events === null || Array.isArray(events)) return false
  const event: unknown = (events as Record<string, unknown>)[logoutEvent]
  return typeof event === 'object' && event !== null && !Array.isArray(event)
}
