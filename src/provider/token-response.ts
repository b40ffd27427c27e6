// What the gateway keeps of a token response (RFC 6749 §5.1).
import type * as client from 'openid-client'
import { GatewayError, printable } from '../core/errors.ts'
import type { DpopKey, TokenSet } from '../core/token-set.ts'

/** @throws {GatewayError} `ERR_SIGN_IN_RESPONSE`, always */
export function rejectSignIn(why: string): never {
  throw new GatewayError('ERR_SIGN_IN_RESPONSE', why)
}

/**
 * Rejects other access tokens than requested: without a key the gateway cannot use a bound one, and
 * with a key it must not accept one that anybody can use (RFC 9449 §5).
 */
export function rejectOtherTokenTypes(
  { token_type }: client.TokenEndpointResponse,
  dpop_key: DpopKey | undefined,
): void {
  const [type, remedy] =
    dpop_key === undefined
      ? (['Bearer', 'set provider.dpop when the provider binds tokens with DPoP'] as const)
      : (['DPoP', 'enable DPoP for this client at the provider, or remove provider.dpop'] as const)
  if (token_type.toLowerCase() !== type.toLowerCase())
    rejectSignIn(`the access token is of the type ${printable(token_type)}, and not ${type}: ${remedy}`)
}

/** The longest lifetime of a token, in ms. A longer `expires_in` is reduced to it. */
const longestLifetimeMs = 366 * 24 * 60 * 60 * 1000

/** The lifetime of a token from the `expires_in` of a token endpoint (RFC 6749 §5.1), in ms. */
export function lifetimeMsOf(expires_in: number): number {
  return Math.min(expires_in * 1000, longestLifetimeMs)
}

/**
 * The assumed lifetime of an access token with a refresh token, in seconds, because `expires_in`
 * may be left out (RFC 6749 §5.1).
 */
const usualAccessTokenSeconds = 60 * 60

/**
 * Builds the token set. `kept` has what the response may lack. `began` is when the request was
 * sent, so that the computed expiry is never too late.
 */
export function tokenSet(
  response: client.TokenEndpointResponse,
  kept: Pick<TokenSet, 'id_token'> & { readonly refresh_token?: string; readonly dpop_key: DpopKey | undefined },
  began: number,
): TokenSet {
  const { id_token, dpop_key } = kept
  const { access_token, refresh_token = kept.refresh_token } = response
  const { expires_in = refresh_token === undefined ? undefined : usualAccessTokenSeconds } = response
  const lifetime = expires_in === undefined ? undefined : lifetimeMsOf(expires_in)
  return {
    access_token,
    obtained_at: began,
    id_token,
    ...(lifetime === undefined ? {} : { access_token_expires_at: began + lifetime }),
    ...(refresh_token === undefined ? {} : { refresh_token }),
    ...(dpop_key === undefined ? {} : { dpop_key }),
  }
}
