import * as client from 'openid-client'
import type { TransmitterAuthorization } from '../config/model/provider.ts'
import type { Clock } from '../core/clock.ts'
import { GatewayError, printable } from '../core/errors.ts'
import { SingleFlight } from '../core/single-flight.ts'
import { throwProviderError } from './provider-errors.ts'
import { lifetimeMsOf } from './token-response.ts'

/** What a token for the transmitter of `signals` is for. */
export const transmitterPurpose = 'the transmitter (signals.authorization.client_credentials)'

export type ClientToken = Pick<client.TokenEndpointResponse, 'access_token' | 'expires_in'>

/**
 * Requests an access token for the client itself (RFC 6749 §4.4). `purpose` is for the log.
 * @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE`, or `ERR_SIGN_IN_RESPONSE` for a refusal
 */
export async function requestClientToken(
  configuration: client.Configuration,
  scopes: readonly string[],
  purpose: string,
): Promise<ClientToken> {
  const parameters = scopes.length === 0 ? {} : { scope: scopes.join(' ') }
  const what = `no access token for ${purpose}`
  const response = await client
    .clientCredentialsGrant(configuration, parameters)
    .catch((cause: unknown) => throwProviderError(what, cause))
  const { token_type } = response
  if (token_type.toLowerCase() !== 'bearer')
    throw new GatewayError('ERR_SIGN_IN_RESPONSE', `${what}: its type is ${printable(token_type)}, and not Bearer`)
  return response
}

/** A token is renewed this long before it expires, or after half of a shorter lifetime, in ms. */
const renewBeforeMs = 60_000
/** The assumed lifetime of a token without `expires_in`, in ms (RFC 6749 §5.1). */
const usualLifetimeMs = 5 * 60_000

export interface ApiCredentialsParts {
  /** Requests an access token for the client itself (RFC 6749 §4.4). */
  readonly clientToken: (scopes: readonly string[]) => Promise<ClientToken>
  readonly clock: Clock
}

/** The value of `Authorization` for an API. A token is kept until shortly before it expires. */
export class ApiCredentials {
  readonly #authorization: TransmitterAuthorization
  readonly #parts: ApiCredentialsParts
  readonly #requesting = new SingleFlight<'token', string>()
  #token: { readonly value: string; readonly until: number } | undefined

  constructor(authorization: TransmitterAuthorization, parts: ApiCredentialsParts) {
    this.#authorization = authorization
    this.#parts = parts
  }

  /** @throws {GatewayError} like the token request of a sign-in */
  async value(): Promise<string> {
    const authorization = this.#authorization
    if (authorization.kind === 'value') return authorization.value
    const token = this.#token
    if (token !== undefined && this.#parts.clock.now() < token.until) return token.value
    return this.#requesting.run('token', async () => {
      const began = this.#parts.clock.now()
      const { access_token, expires_in } = await this.#parts.clientToken(authorization.scopes)
      const lifetimeMs = expires_in === undefined ? usualLifetimeMs : lifetimeMsOf(expires_in)
      const value = `Bearer ${access_token}`
      this.#token = { value, until: began + Math.max(lifetimeMs / 2, lifetimeMs - renewBeforeMs) }
      return value
    })
  }

  /** The API has rejected this value. Returns whether there may be another one. */
  reject(value: string): boolean {
    if (this.#token?.value === value) this.#token = undefined
    return this.#authorization.kind === 'client_credentials'
  }
}
