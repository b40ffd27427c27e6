import * as client from 'openid-client'
import { algorithmOf, type ClientSigner, privateKeyOf } from './client-auth.ts'
import { throwProviderError } from './provider-errors.ts'

/** How authorization requests reach the provider. */
export interface AuthorizationRequestForm {
  readonly configuration: client.Configuration
  /** Signs each request (RFC 9101). Absent: requests are not signed. */
  readonly requestSigner: ClientSigner | undefined
  /** Whether the gateway pushes the request, so that the browser carries a reference (RFC 9126). */
  readonly isPushed: boolean
}

/**
 * The URL for the browser. A request that cannot be pushed is never sent in the URL instead: a
 * person in the middle could cause that, and change the request then.
 * @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE` or `ERR_SIGN_IN_RESPONSE` when the request was
 * not pushed
 */
export async function authorizationUrlFor(
  { configuration, requestSigner, isPushed }: AuthorizationRequestForm,
  parameters: URLSearchParams,
): Promise<URL> {
  const request = requestSigner === undefined ? parameters : await signed(configuration, parameters, requestSigner)
  if (!isPushed) return client.buildAuthorizationUrl(configuration, request)
  return client
    .buildAuthorizationUrlWithPAR(configuration, request)
    .catch((cause: unknown) => throwProviderError('the authorization request was not pushed', cause))
}

async function signed(
  configuration: client.Configuration,
  parameters: URLSearchParams,
  signer: ClientSigner,
): Promise<URLSearchParams> {
  const url = await client.buildAuthorizationUrlWithJAR(configuration, parameters, privateKeyOf(signer), {
    [client.modifyAssertion]: (header) => void Object.assign(header, algorithmOf(signer)),
  })
  return new URLSearchParams({ request: url.searchParams.get('request') ?? '' })
}
