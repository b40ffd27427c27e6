import { expireCookie, readCookie } from '../http/cookies.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import { clearCache, cookies, redirect, type Response, withHeaders } from '../http/response.ts'
import { sendsEndSessionState } from '../provider/end-session.ts'
import { sessionKey } from '../session/record/record.ts'
import type { LogoutParts } from './parts.ts'
import { askToSignOut, stateFromCookie, signInAsOther, stateCookie } from './sign-out-state.ts'

/**
 * `GET signed-out`: the browser returns from the provider (RP-Initiated Logout 1.0 §3).
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE` when no sign-out began here, because the person
 * may still be signed in
 */
export async function signedOut(request: EndpointRequest, parts: LogoutParts): Promise<Response> {
  const { isSignedIn, isStateKnown, signIn, setCookies, elsewhere } = await readReturn(request, parts)
  if (!isStateKnown) parts.log.debug('sign_out.unknown_state', {})
  // The host where the person has signed out shows the page, and clears what the browser keeps of
  // it.
  if (elsewhere !== undefined && !isSignedIn)
    return redirect(
      { location: new URL(signIn ?? `${parts.prefix}signed-out?provider=asked`, elsewhere).href, setCookies },
      clearCache,
    )
  if (signIn !== undefined && !isSignedIn) return redirect({ location: signIn, setCookies })
  // Any page can link to this one. So the request changes nothing, and a person who is signed in
  // must not read "signed out".
  const page = isSignedIn ? askToSignOut('still_signed_in', request, parts) : parts.pages.signedOut(request)
  return withHeaders(page, { ...cookies(setCookies), ...(isSignedIn ? {} : cleared(request, parts)) })
}

/**
 * After a sign-out, the browser may keep the previous page for its Back button. If the URL has a
 * query, the header loads the page again without the query. The response to that request makes the
 * browser drop the pages that it keeps.
 */
function cleared({ url }: EndpointRequest, { prefix }: LogoutParts): Response['headers'] {
  return url.includes('?') ? { Refresh: `0; url=${prefix}signed-out` } : clearCache
}

async function readReturn(request: EndpointRequest, parts: LogoutParts) {
  const cookie = stateCookie(parts)
  const cookieValue = readCookie(request.cookie, cookie.name)
  const { state: expected, other, host } = stateFromCookie(cookieValue ?? '')
  const [state, ...more] = request.query.getAll('state')
  // Where the provider returns no state, the cookie alone shows that a sign-out began here.
  const wanted = sendsEndSessionState(parts.provider.config) ? expected : undefined
  const isStateKnown = cookieValue !== undefined && state === wanted && more.length === 0
  const id = parts.cookie.read(request.cookie)
  const reading = id === undefined ? undefined : parts.sessions.read(sessionKey(id))
  const session = await (isStateKnown ? reading?.catch(() => undefined) : reading)
  return {
    /** Whether the browser returns from a sign-out that began here. */
    isStateKnown,
    isSignedIn: session !== undefined,
    /** The URL where another person signs in, if that comes next. */
    signIn: isStateKnown && other !== undefined ? signInAsOther(other, parts) : undefined,
    /** The origin where the sign-out began, if it is another one. */
    elsewhere: isStateKnown && host !== undefined ? parts.site?.originOf(host) : undefined,
    setCookies: cookieValue === undefined ? [] : [expireCookie(cookie)],
  }
}
