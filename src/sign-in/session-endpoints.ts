import { GatewayError } from '../core/errors.ts'
import { signedInPath, signInUrl } from '../core/return-to.ts'
import { type EndpointRequest, isFromThisSite } from '../http/endpoint-request.ts'
import { json, type Response } from '../http/response.ts'
import { pageContext, type RefusalOptions } from '../pages/pages.ts'
import { sessionKey } from '../session/record/record.ts'
import type { SignInParts } from './sign-in-parts.ts'
import { isSignedIn } from './sign-in.ts'

type SessionEndpointParts = Pick<
  SignInParts,
  'cookie' | 'boundCookie' | 'sessions' | 'expiredCookies' | 'pages' | 'prefix'
>

/** `GET session`: who is signed in, since when and until when. No token, and no activity. */
export async function session(request: EndpointRequest, parts: SessionEndpointParts): Promise<Response> {
  const { cookie, boundCookie, sessions, expiredCookies } = parts
  const id = cookie.read(request.cookie)
  const key = id && sessionKey(id)
  const found = key && (await sessions.peek(key))
  if (found === undefined) {
    // The browser may have the cookie of a new session already.
    const sessionEnded = cookie.isIn(request.cookie)
    const isStale = sessionEnded && !(key && expiredCookies.has(key))
    const setCookies = isStale ? cookie.expireAll(request.cookie, request.applicationCookies) : []
    return signInRequired(request, parts, { setCookies, sessionEnded })
  }
  const isOfDevice = boundCookie.faultOf(found.key, found.record.device, request.cookie) === undefined
  if (found.isDoubtful === true || !isOfDevice) return signInRequired(request, parts)
  const { sub, claims, created_at, absolute_expires_at } = found.record
  const { iss: _iss, sid: _sid, ...visible } = claims
  const times = {
    signed_in_at: new Date(created_at).toISOString(),
    expires_at: new Date(absolute_expires_at).toISOString(),
  }
  return json(200, { sub, ...times, claims: visible })
}

/**
 * `POST session`: the person wants to stay signed in. An activity, with the same response.
 * @throws {GatewayError} `ERR_CROSS_SITE` for a page of another origin; `ERR_STORE_UNAVAILABLE`
 */
export async function extendSession(request: EndpointRequest, parts: SessionEndpointParts): Promise<Response> {
  if (!isFromThisSite(request)) throw new GatewayError('ERR_CROSS_SITE', 'a page of another origin made the request')
  const shown = await session(request, parts)
  const id = parts.cookie.read(request.cookie)
  if (shown.status !== 200 || id === undefined) return shown
  await parts.sessions.find(sessionKey(id))
  return session(request, parts)
}

/** A 401 response with the URL where the person can sign in. */
export function signInRequired(
  request: EndpointRequest,
  { pages, prefix }: Pick<SignInParts, 'pages' | 'prefix'>,
  { setCookies, sessionEnded }: Pick<RefusalOptions, 'setCookies' | 'sessionEnded'> = {},
): Response {
  const signIn = signInUrl(prefix, undefined)
  return pages.refusal('ERR_UNAUTHENTICATED', {
    ...pageContext(request),
    signIn,
    returnTo: request.embeddingPage,
    setCookies,
    sessionEnded,
    // `doctor` compares it with external_url.
    headers: { 'Gatehouse-Scheme': request.proto },
  })
}

/**
 * `GET signed-in`: the end of a sign-in in another window. The page tells the open pages of this
 * origin, and closes its window. Any page can link to it, so other people get a sign-in link.
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
 */
export async function signedIn(request: EndpointRequest, parts: SignInParts): Promise<Response> {
  const { pages, reservedPrefix } = parts
  if (await isSignedIn(request, parts)) return pages.signedInAgain(request)
  return pages.refusal('ERR_UNAUTHENTICATED', {
    ...pageContext(request),
    asPage: request.isPage,
    returnTo: signedInPath(reservedPrefix),
    signIn: signInUrl(reservedPrefix, undefined),
  })
}
