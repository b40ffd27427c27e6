import { GatewayError } from '../core/errors.ts'

/**
 * What a response of the end-session endpoint to a `POST` without a browser says. `ended`: success,
 * and no page that could ask the person something. `unknown`: a redirect, a refusal or a page,
 * which leave open whether the session has ended.
 * @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE` when the provider did not process the request
 * (408, 429, 5xx)
 */
export async function endSessionOutcome(response: Response): Promise<'ended' | 'unknown'> {
  const { status } = response
  if (status >= 500 || status === 429 || status === 408)
    throw new GatewayError('ERR_PROVIDER_UNAVAILABLE', `end_session_endpoint answered with status ${status}`)
  if (!response.ok) return 'unknown'
  const text = await response.text()
  // "Do you want to log out?" is a page with status 200 too. A page is recognized by its markup:
  // some answer "OK" as text/html.
  if (/<[a-z!?]/i.test(text)) return 'unknown'
  return isError(text) ? 'unknown' : 'ended'
}

/** An OAuth error document (RFC 6749 §5.2), whatever its status. */
function isError(text: string): boolean {
  try {
    const document: unknown = JSON.parse(text)
    return typeof document === 'object' && document !== null && 'error' in document
  } catch {
    return false
  }
}
