import { GatewayError } from '../core/errors.ts'
import { stringClaim, verifySignedToken, type TokenExpectations } from './signed-token.ts'

/** What authenticates a request to end the sessions of a person. */
export interface RevocationToken {
  readonly iss: string
  readonly jti: string
  /** In seconds since the epoch. */
  readonly iat: number
}

const code = 'ERR_REVOCATION_INVALID'
/**
 * The longest time after `iat`, in seconds, that a token is accepted: it is made for one request.
 */
const maxAgeSeconds = 60 * 60

/**
 * Verifies the JWT of a request for Global Token Revocation. The draft leaves the authentication
 * open; this is the JWT that Okta sends. Its `aud` is the URL of the endpoint.
 * @throws {GatewayError} `ERR_REVOCATION_INVALID`, or `ERR_PROVIDER_UNAVAILABLE` without keys
 */
export async function verifyRevocationToken(token: string, expected: TokenExpectations): Promise<RevocationToken> {
  const { typ, payload } = await verifySignedToken(token, expected, { code })
  // So an access token for this URL, which a person may get from the provider, is not accepted.
  if (typ !== 'global-token-revocation+jwt') reject(`"typ" is ${typ ?? 'missing'}, and not global-token-revocation+jwt`)
  if (payload.iat < expected.now / 1000 - maxAgeSeconds) reject('it was issued more than an hour ago')
  const jti = stringClaim(payload, 'jti', code) ?? reject('"jti" is missing')
  return { iss: expected.issuer, jti, iat: payload.iat }
}

function reject(why: string): never {
  throw new GatewayError(code, `the JWT is refused: ${why}`)
}
