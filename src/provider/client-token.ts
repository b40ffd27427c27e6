import * as client from 'openid-client'
import { GatewayError } from '../core/errors.ts'
import { printable } from '../core/printable.ts'
import { throwProviderError } from './provider-errors.ts'

/** An access token for the client itself. */
export type ClientToken = Pick<client.TokenEndpointResponse, 'access_token' | 'expires_in'>

/**
 * Requests an access token for the client itself (RFC 6749 §4.4).
 * @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE`, or `ERR_SIGN_IN_RESPONSE` when the provider
 * refuses
 */
export async function requestClientToken(
  configuration: client.Configuration,
  scopes: readonly string[],
): Promise<ClientToken> {
  const parameters = scopes.length === 0 ? {} : { scope: scopes.join(' ') }
  const what = 'no access token for the transmitter (signals.authorization.client_credentials)'
  const response = await client
    .clientCredentialsGrant(configuration, parameters)
    .catch((cause: unknown) => throwProviderError(what, cause))
  const { token_type } = response
  if (token_type.toLowerCase() !== 'bearer')
    throw new GatewayError('ERR_SIGN_IN_RESPONSE', `${what}: its type is ${printable(token_type)}, and not Bearer`)
  return response
}
