import { GatewayError } from '../core/errors.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import { redirect, type Response } from '../http/response.ts'
import { onlyValue, type SignInParts } from './parts.ts'

type Parts = Pick<SignInParts, 'keyring' | 'prefix' | 'provider'>

/** The longest response, in characters. A longer one, sealed, would not fit into a URL. */
const longestResponse = 8_000
const sealContext = 'gatehouse authorization response'

/**
 * `POST callback`, with `response_mode: form_post`. Redirects to `GET callback` with the form,
 * sealed, in the query: with a form from a page of another site, a browser sends no `Lax` cookie.
 * The code appears in no URL, no history and no log.
 * @throws {GatewayError} `ERR_SIGN_IN_RESPONSE` when the form is too long
 */
export async function callbackPost(request: Pick<EndpointRequest, 'form'>, parts: Parts): Promise<Response> {
  const form = request.form.toString()
  if (form.length > longestResponse)
    throw new GatewayError(
      'ERR_SIGN_IN_RESPONSE',
      `the authorization response has ${form.length} characters, more than ${longestResponse}`,
    )
  const response = parts.keyring.seal(form, sealContext).toString('base64url')
  return redirect({ location: `${parts.prefix}callback?response=${response}`, setCookies: [] })
}

/** The parameters of the authorization response; empty when it came in another response mode. */
export function authorizationResponse(callback: URL, { keyring, provider }: Parts): string {
  if (!provider.config.response_mode.startsWith('form_post')) return callback.search.slice(1)
  const sealed = onlyValue(callback.searchParams, 'response') ?? ''
  return keyring.open(Buffer.from(sealed, 'base64url'), sealContext)?.toString('utf8') ?? ''
}
