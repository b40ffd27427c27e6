import { GatewayError } from '../core/errors.ts'
import { isObject } from '../core/json.ts'
import { stringClaim, verifySignedToken, type TokenExpectations } from './signed-token.ts'

export interface LogoutToken {
  readonly iss: string
  readonly jti: string
  /** In seconds since the epoch. */
  readonly iat: number
  /** In seconds since the epoch. For a token without `exp`: until when it is accepted. */
  readonly exp: number
  readonly sub: string | undefined
  readonly sid: string | undefined
}

const code = 'ERR_LOGOUT_TOKEN_INVALID'
const logoutEvent = 'http://schemas.openid.net/event/backchannel-logout'
/**
 * The longest time since `iat`, in seconds, whatever `exp` is: the store remembers the `jti` until
 * then, and some providers count in milliseconds.
 */
const maxAgeSeconds = 60 * 60
/**
 * The lifetime without `exp`, in seconds: providers from before the final specification leave it
 * out. §4 recommends two minutes at most.
 */
const lifetimeWithoutExp = 2 * 60

/**
 * Verifies a Logout Token (OpenID Connect Back-Channel Logout 1.0 §2.6).
 * @throws {GatewayError} `ERR_LOGOUT_TOKEN_INVALID`, or `ERR_PROVIDER_UNAVAILABLE` without keys
 */
export async function verifyLogoutToken(logout_token: string, expected: TokenExpectations): Promise<LogoutToken> {
  const reject: (why: string) => never = rejectLogoutToken
  const { typ, payload } = await verifySignedToken(logout_token, expected, { code, lifetimeWithoutExp })

  // §2.4 recommends `logout+jwt`, and allows `JWT` or no `typ`.
  if (typ !== undefined && typ !== 'jwt' && typ !== 'logout+jwt') reject(`"typ" is ${typ}`)
  if (payload.iat < expected.now / 1000 - maxAgeSeconds) reject('it was issued more than an hour ago')
  const { events } = payload
  if (!isObject(events) || !isObject(events[logoutEvent])) reject('"events" does not announce a logout')
  // An ID Token must not be accepted as a Logout Token (§2.6 (7)).
  if ('nonce' in payload) reject('"nonce" is present')
  const sub = stringClaim(payload, 'sub', code)
  const sid = stringClaim(payload, 'sid', code)
  if (sub === undefined && sid === undefined) reject('neither "sub" nor "sid" is present')
  const jti = stringClaim(payload, 'jti', code) ?? reject('"jti" is missing')

  const exp = Math.min(payload.exp, payload.iat + maxAgeSeconds)
  return { iss: expected.issuer, jti, iat: payload.iat, exp, sub, sid }
}

/** @throws {GatewayError} `ERR_LOGOUT_TOKEN_INVALID` */
export function rejectLogoutToken(why: string, cause?: unknown): never {
  throw new GatewayError(code, `logout token refused: ${why}`, { cause })
}
