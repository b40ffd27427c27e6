import { expireCookie, readCookie } from '../http/cookies.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import { clearCache, cookies, redirect, type Response, withHeaders } from '../http/response.ts'
import { sessionKey } from '../session/record.ts'
import type { LogoutParts } from './parts.ts'
import { askToSignOut, readRememberedState, signInAsOther, stateCookie } from './sign-out-state.ts'

/**
 * `GET signed-out`: the browser comes back from the provider (RP-Initiated Logout 1.0 §3).
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE` when no sign-out began here, because the person
 * may be signed in
 */
export async function signedOut(request: EndpointRequest, parts: LogoutParts): Promise<Response> {
  const { stillSignedIn, stateIsOurs, signIn, setCookies } = await readReturn(request, parts)
  if (!stateIsOurs) parts.log.debug('sign_out.unknown_state', {})
  if (signIn !== undefined && !stillSignedIn) return redirect({ location: signIn, setCookies })
  // Any page can send the browser here: that changes nothing, and must not say "signed out" to a
  // person who is signed in.
  const page = stillSignedIn ? askToSignOut('still_signed_in', request, parts) : parts.pages.signedOut(request)
  return withHeaders(page, { ...cookies(setCookies), ...(stillSignedIn ? {} : cleared(request, parts)) })
}

/**
 * A browser that comes from a sign-out has a query, and has left a page that it keeps for Back from
 * now on. The same page is loaded once more, without the query, and that response removes what the
 * browser keeps.
 */
function cleared({ url }: EndpointRequest, { reservedPrefix }: LogoutParts): Response['headers'] {
  return url.includes('?') ? { Refresh: `0; url=${reservedPrefix}signed-out` } : clearCache
}

async function readReturn(request: EndpointRequest, parts: LogoutParts) {
  const cookie = stateCookie(parts)
  const remembered = readCookie(request.cookie, cookie.name)
  const { state: expected, other } = readRememberedState(remembered ?? '')
  const [state, ...more] = request.query.getAll('state')
  const stateIsOurs = remembered !== undefined && state === expected && more.length === 0
  const id = parts.cookie.read(request.cookie)
  const reading = id === undefined ? undefined : parts.sessions.read(sessionKey(id))
  const session = await (stateIsOurs ? reading?.catch(() => undefined) : reading)
  return {
    /** Whether the browser comes from a sign-out that began here. */
    stateIsOurs,
    stillSignedIn: session !== undefined,
    /** Where the other person signs in, when the sign-out was for that. */
    signIn: stateIsOurs && other !== undefined ? signInAsOther(other, parts) : undefined,
    setCookies: remembered === undefined ? [] : [expireCookie(cookie)],
  }
}
