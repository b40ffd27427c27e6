// Token exchange (RFC 8693).
import type { TokenEndpointResponse } from 'openid-client'
import type { TokenExchangeConfig } from '../config/model/upstream.ts'
import { GatewayError, reason, printable } from '../core/errors.ts'
import { providerErrorIn, throwProviderError, providerUnavailable } from './provider-errors.ts'
import { lifetimeMsOf } from './token-response.ts'

/** A token for an upstream. Times are in ms since the epoch. */
export interface ExchangedToken {
  readonly token: string
  /** Absent when the provider does not say it. */
  readonly expiresAt: number | undefined
}

export const tokenExchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange'
const tokenType = (name: string) => `urn:ietf:params:oauth:token-type:${name}`
/** The types of tokens that can be sent as a bearer token. */
const usableTypes = [tokenType('access_token'), tokenType('jwt')]

/** RFC 8693 §2.1. */
export function exchangeParameters(
  subject_token: string,
  { audience, resource, scopes, requestedTokenType }: TokenExchangeConfig,
): Record<string, string> {
  return {
    subject_token,
    subject_token_type: tokenType('access_token'),
    ...(audience !== undefined && { audience }),
    ...(resource !== undefined && { resource }),
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
    ...(requestedTokenType !== undefined && { requested_token_type: tokenType(requestedTokenType) }),
  }
}

/**
 * Reads the response (RFC 8693 §2.2.1). `began` is when the request was sent, so that the expiry is
 * never too late. Throws `ERR_TOKEN_EXCHANGE`.
 */
export function readExchanged(response: TokenEndpointResponse, began: number): ExchangedToken {
  const { access_token: token, token_type, expires_in } = response
  const issued: unknown = response['issued_token_type']
  // Keycloak and others leave it out, although it is required.
  if (issued !== undefined && !usableTypes.includes(String(issued)))
    return refuse(`issued_token_type is ${printable(String(issued))}, which is no token for an upstream`)
  if (token_type === 'dpop') refuse('the token is bound to a key of the gateway (DPoP)')
  // RFC 8693 §2.2.1: N_A is no access token.
  if (token_type !== 'bearer') refuse(`token_type is ${printable(token_type)}, and not Bearer`)
  return { token, expiresAt: expires_in === undefined ? undefined : began + lifetimeMsOf(expires_in) }
}

/** What to do about an error of the token endpoint (RFC 8693 §2.2.2). */
const hints: ReadonlyMap<string, string> = new Map([
  ['invalid_target', 'check token_exchange.audience and resource of the upstream'],
  ['invalid_scope', 'check token_exchange.scopes of the upstream'],
  ['unauthorized_client', 'allow this client the token exchange at the provider'],
  ['unsupported_grant_type', 'the provider does not support the token exchange, or not for this client'],
  ['access_denied', 'allow this client the token exchange for this audience at the provider'],
  [
    'invalid_request',
    'check token_exchange of the upstream, and that the access token has not expired and is meant for this client',
  ],
  ['invalid_grant', 'the access token has expired, or is not meant for this client'],
])

/** @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE`, or `ERR_TOKEN_EXCHANGE` with a hint */
export function throwExchangeError(cause: unknown): never {
  const { error, status = 0 } = providerErrorIn(cause) ?? {}
  if (status >= 500 || status === 429) throw providerUnavailable(`the provider responded with status ${status}`, cause)
  if (error !== undefined) {
    const hint = hints.get(error)
    refuse(`the provider responded with ${printable(error)}${hint === undefined ? '' : `: ${hint}`}`, cause)
  }
  try {
    return throwProviderError('the token exchange failed', cause)
  } catch (known) {
    if (known instanceof GatewayError && known.code === 'ERR_PROVIDER_UNAVAILABLE') throw known
    return refuse(reason(known), cause)
  }
}

function refuse(why: string, cause?: unknown): never {
  throw new GatewayError('ERR_TOKEN_EXCHANGE', why, { cause })
}
