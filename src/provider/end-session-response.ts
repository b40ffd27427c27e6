import { GatewayError } from '../core/errors.ts'
import { isObject } from '../core/json.ts'

/**
 * The outcome of a `POST` to the end-session endpoint without a browser.
 * @returns `ended` after a success without a page; `unknown` after a redirect, an error or a page,
 * which do not show whether the session has ended
 * @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE` when the provider did not process the request
 * (408, 429, 5xx)
 */
export async function endSessionOutcome(response: Response): Promise<'ended' | 'unknown'> {
  const { status } = response
  if (status >= 500 || status === 429 || status === 408)
    throw new GatewayError('ERR_PROVIDER_UNAVAILABLE', `end_session_endpoint responded with status ${status}`)
  if (!response.ok) return 'unknown'
  const text = await response.text()
  // A page that asks "Do you want to log out?" has status 200 too. Only markup shows a page,
  // because some providers send "OK" as text/html.
  if (/<[a-z!?]/i.test(text)) return 'unknown'
  return isError(text) ? 'unknown' : 'ended'
}

/** Whether the endpoint responded as it does to a browser: with a page or a redirect. */
export function isForBrowsers({ status, ok, headers }: Response): boolean {
  const isPage = ok && headers.get('content-type')?.startsWith('text/html') === true
  return isPage || (status >= 300 && status < 400)
}

/** Whether the text is an OAuth error document (RFC 6749 §5.2). Its status may be 200. */
function isError(text: string): boolean {
  try {
    const document: unknown = JSON.parse(text)
    return isObject(document) && 'error' in document
  } catch {
    return false
  }
}
