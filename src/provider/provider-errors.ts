import * as client from 'openid-client'
import { signingAlgorithms } from '../config/model/provider.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { GatewayError, reason } from '../core/errors.ts'
import { retryAfterMs } from '../core/repeating.ts'

/** The provider, or an API, has not responded as it must. `cause`: the error behind it. */
export function providerUnavailable(why: string, cause?: unknown): GatewayError {
  return new GatewayError('ERR_PROVIDER_UNAVAILABLE', why, cause === undefined ? {} : { cause })
}

/** `invalid_grant` and the names of GitHub for it. */
const invalidGrants = ['invalid_grant', 'bad_refresh_token', 'bad_verification_code']

/** Whether the code or refresh token is expired, revoked or used up (RFC 6749 §5.2). */
export function isInvalidGrant(error: unknown): error is client.ResponseBodyError {
  return error instanceof client.ResponseBodyError && invalidGrants.includes(error.error)
}

/**
 * The refreshed tokens must not be accepted. Another refresh rarely helps: the refresh token may be
 * used up, and the next tokens will have the same fault.
 */
export class InvalidTokensError extends GatewayError {
  constructor(why: string, cause: unknown) {
    super('ERR_SIGN_IN_RESPONSE', `the refreshed tokens are invalid: ${why}`, { cause })
  }
}

/** The ID Token of a successful response cannot be decrypted. */
export class EncryptedIdTokenError extends GatewayError {
  constructor(why: string, cause: unknown) {
    super('ERR_SIGN_IN_RESPONSE', `ID Token refused: ${why}`, { cause })
  }
}

/** Whether the tokens in a successful response were rejected, mostly by openid-client. */
export function isAboutTokens(error: unknown): boolean {
  if (causes(error).some((cause) => cause instanceof EncryptedIdTokenError)) return true
  if (!(error instanceof client.ClientError)) return false
  return error.code?.startsWith('OAUTH_JWT_') === true || causes(error).some(({ message }) => aboutTokens.test(message))
}

const aboutTokens = /\bJWT\b|"id_token"|`token_type`/

/**
 * Whether the access token is not accepted any more (RFC 6750 §3.1). A rejected proof says nothing
 * about it (RFC 9449 §7.1).
 */
export function isUnauthorized(error: unknown): boolean {
  return statusOf(error) === 401 && !isAboutProof(error)
}

function isAboutProof(error: unknown): boolean {
  if (!(error instanceof client.WWWAuthenticateChallengeError)) return false
  return error.cause.some(({ parameters }) => /^(?:use_dpop_nonce|invalid_dpop_proof)$/.test(parameters.error ?? ''))
}

/** Throws the `GatewayError` for an error of openid-client. `what` says what has failed. */
export function throwProviderError(what: string, cause: unknown): never {
  const known = gatewayErrorIn(cause)
  if (known !== undefined) throw known
  if (cause instanceof client.AuthorizationResponseError) throw refusal(cause)
  // A parser quotes the text that it cannot read, perhaps a token. So the cause is left out too.
  if (causes(cause).some((error) => error instanceof SyntaxError))
    throw new GatewayError('ERR_SIGN_IN_RESPONSE', `${what}: the response is not JSON`)
  const status = statusOf(cause)
  const fail = (
    code: 'ERR_PROVIDER_UNAVAILABLE' | 'ERR_SIGN_IN_EXPIRED' | 'ERR_SIGN_IN_RESPONSE',
    why: string,
  ): never => {
    throw new GatewayError(code, `${what}: ${why}`, { cause })
  }
  if (causes(cause).some((error) => 'code' in error && error.code === 'OAUTH_JWT_TIMESTAMP_CHECK_FAILED'))
    return fail(
      'ERR_SIGN_IN_RESPONSE',
      `by the clock of this machine, the ID Token has expired or is not valid yet: ${clockAdvice}`,
    )
  if (isInvalidGrant(cause)) return fail('ERR_SIGN_IN_EXPIRED', `the provider responded with ${cause.error}`)
  if (cause instanceof client.ResponseBodyError)
    return fail(
      'ERR_SIGN_IN_RESPONSE',
      `the provider responded with ${describeError(cause)}${responseHints.get(cause.error) ?? ''}`,
    )
  if (status !== undefined && (status >= 500 || status === 429))
    return fail('ERR_PROVIDER_UNAVAILABLE', `the provider responded with status ${status}`)
  if (isAboutProof(cause)) return fail('ERR_PROVIDER_UNAVAILABLE', `the provider rejected the DPoP proof${proofHint}`)
  // A 401 with a challenge means `invalid_client` (RFC 6749 §5.2).
  if (status === 401) return fail('ERR_SIGN_IN_RESPONSE', `the provider responded with status 401${clientHint}`)
  const responded = `the provider responded with status ${status}${status === 403 ? rightsHint : ''}`
  if (status !== undefined) return fail('ERR_SIGN_IN_RESPONSE', responded)
  if (cause instanceof client.ClientError && cause.code === 'OAUTH_TIMEOUT')
    return fail('ERR_PROVIDER_UNAVAILABLE', 'no response in time')
  const why = reason(cause)
  const hint = why.includes('"aud"') ? audienceHint : hintForRejectedAlgorithm(cause)
  return fail('ERR_SIGN_IN_RESPONSE', `${why}${hint}`)
}

/** What to do when the clocks differ. */
export const clockAdvice = 'synchronize the clocks of this machine and of the provider'

const clientHint =
  '; check provider.client_id, client_secret and token_endpoint_auth_method (or client_key, client_assertion, client_certificate)'
const proofHint = `; ${clockAdvice}`
const rightsHint = '; check provider.scopes, and what the client and the person may do at the provider'
const audienceHint = '; the token is for another client: compare provider.client_id with the client at the provider'
const scopeHint = '; check provider.scopes: not every provider knows offline_access'

/** What to do about an error of the token endpoint (RFC 6749 §5.2). */
const responseHints: ReadonlyMap<string, string> = new Map([
  ['invalid_client', clientHint],
  // Keycloak sends this for a wrong secret too.
  ['unauthorized_client', `${clientHint}, and that the client may use the authorization code flow`],
  ['invalid_scope', scopeHint],
  ['invalid_dpop_proof', proofHint],
  ['use_dpop_nonce', '; it rejected the nonce that it has just sent'],
  ['invalid_target', '; check provider.resource'],
  // GitHub.
  ['incorrect_client_credentials', clientHint],
])

/** The hint for an error about a token that is signed with another algorithm; empty for others. */
export function hintForRejectedAlgorithm(error: unknown): string {
  for (const { message, cause } of causes(error)) {
    if (message !== 'unexpected JWT "alg" header parameter') continue
    const { header, expected } = (cause ?? {}) as { header?: { alg?: unknown }; expected?: unknown }
    return hintForAlgorithm(header?.alg, expected)
  }
  return ''
}

/** What to do about a token that is signed with `alg` instead of `expected`. */
export function hintForAlgorithm(alg: unknown, expected: unknown): string {
  const known = signingAlgorithms.find((name) => name === alg)
  return known === undefined
    ? `; configure the provider to sign the tokens of this client with ${String(expected)}`
    : `; the token is signed with ${known} and not with ${String(expected)}: set provider.id_token_signed_response_alg to the algorithm that this client is registered with at the provider`
}

/** What to do about an error in an authorization response. */
const refusalHints: ReadonlyMap<string, string> = new Map([
  ['invalid_scope', scopeHint],
  ['invalid_target', '; check provider.resource'],
  ['unauthorized_client', '; allow the client the authorization code flow at the provider'],
  ['unsupported_response_type', '; allow the client the authorization code flow at the provider'],
  ['access_denied', '; the person declined, or may not use this client'],
  ['login_required', '; check prompt in provider.authorization_params'],
  ['interaction_required', '; check prompt in provider.authorization_params'],
  ['consent_required', '; check prompt in provider.authorization_params'],
])

const refusalCodes: ReadonlyMap<string, ErrorCode> = new Map<string, ErrorCode>([
  ['access_denied', 'ERR_SIGN_IN_DECLINED'],
  ['temporarily_unavailable', 'ERR_PROVIDER_UNAVAILABLE'],
  ['server_error', 'ERR_PROVIDER_UNAVAILABLE'],
  // OpenID Connect Core Error Code unmet_authentication_requirements 1.0.
  ['unmet_authentication_requirements', 'ERR_STEP_UP_UNMET'],
])

/** The error for an error response (RFC 6749 §4.1.2.1, OpenID Connect Core §3.1.2.6). */
function refusal(cause: client.AuthorizationResponseError): GatewayError {
  return new GatewayError(
    refusalCodes.get(cause.error) ?? 'ERR_SIGN_IN_REFUSED',
    `the provider sent the browser back with ${describeError(cause)}${refusalHints.get(cause.error) ?? ''}`,
    { cause },
  )
}

/**
 * The error code, and for `invalid_scope` the description, which names the scope. Others are left
 * out, because a token endpoint may quote the code or the token.
 */
function describeError({
  error,
  error_description,
}: client.AuthorizationResponseError | client.ResponseBodyError): string {
  return error === 'invalid_scope' && error_description !== undefined && error_description !== ''
    ? `${printable(error)} (${printable(error_description, 200)})`
    : printable(error)
}

/** Replaces characters that RFC 6749 §5.2 does not allow, so that they do not reach the log. */
function printable(text: string, longest = 100): string {
  return `"${text.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, longest)}"`
}

/** The `GatewayError` that a library has wrapped. */
export function gatewayErrorIn(error: unknown): GatewayError | undefined {
  return causes(error).find((at) => at instanceof GatewayError)
}

/** The provider has not revoked a token (RFC 7009 §2.2.1). */
export class NotRevokedError extends GatewayError {
  /** Another attempt would have the same result. */
  readonly isFinal: boolean
  /** How long the provider asks to wait, in ms. */
  readonly waitMs: number | undefined

  constructor(cause: unknown) {
    const why =
      cause instanceof client.ResponseBodyError ? `the provider responded with ${describeError(cause)}` : reason(cause)
    super('ERR_PROVIDER_UNAVAILABLE', `the token was not revoked: ${why}`, { cause })
    const response = responseIn(cause)
    const status = response?.status ?? 500
    this.isFinal = status < 500 && status !== 429
    this.waitMs = retryAfterMs(response?.headers.get('retry-after'), response?.headers.get('date'))
  }
}

function causes(error: unknown): Error[] {
  const found: Error[] = []
  for (let at = error; at instanceof Error && found.length < 10; at = at.cause) found.push(at)
  return found
}

function statusOf(error: unknown): number | undefined {
  return error instanceof client.ResponseBodyError ? undefined : responseIn(error)?.status
}

function responseIn(error: unknown): Response | undefined {
  if (error instanceof client.WWWAuthenticateChallengeError || error instanceof client.ResponseBodyError)
    return error.response
  return error instanceof Error && error.cause instanceof Response ? error.cause : undefined
}

/** The `error` with which the token endpoint refuses a request, and its status (RFC 6749 §5.2). */
export function providerErrorIn(error: unknown): Pick<client.ResponseBodyError, 'error' | 'status'> | undefined {
  return error instanceof client.ResponseBodyError ? error : undefined
}
