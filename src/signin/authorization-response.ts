import { GatewayError } from '../core/errors.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import { redirect, type Response } from '../http/response.ts'
import { onlyValue, type SignInParts } from './parts.ts'

type Parts = Pick<SignInParts, 'keyring' | 'reservedPrefix' | 'provider'>

/** A longer response, in characters, would make an address that is too long, sealed as it is. */
const longestResponse = 8_000
const sealContext = 'gatehouse authorization response'

/**
 * `POST callback`, with `response_mode: form_post`: the browser goes on with a GET of our own that
 * carries the form, sealed. It sends no `Lax` cookie along with a form that a page of another site
 * has it post, but it does with that GET; and the code stands in no address, no history and no log.
 * @throws {GatewayError} `ERR_SIGN_IN_ANSWER` when the form is too long
 */
export async function callbackPost(request: Pick<EndpointRequest, 'form'>, parts: Parts): Promise<Response> {
  const form = request.form.toString()
  if (form.length > longestResponse)
    throw new GatewayError('ERR_SIGN_IN_ANSWER', `the authorization response has ${form.length} characters`)
  const response = parts.keyring.seal(form, sealContext).toString('base64url')
  return redirect({ location: `${parts.reservedPrefix}callback?response=${response}`, setCookies: [] })
}

/**
 * The parameters of the authorization response that a callback brings, in the way that was asked
 * for; empty when it came in another.
 */
export function authorizationResponse(callback: URL, { keyring, provider }: Parts): string {
  if (provider.config.response_mode === 'query') return callback.search
  const sealed = onlyValue(callback.searchParams, 'response') ?? ''
  return keyring.open(Buffer.from(sealed, 'base64url'), sealContext)?.toString('utf8') ?? ''
}
