import { reason } from '../core/errors.ts'
import { randomToken } from '../core/random.ts'
import { setCookie } from '../http/cookies.ts'
import { isFromThisSite, type EndpointRequest, type Initiator } from '../http/endpoint-request.ts'
import { hostName } from '../http/host.ts'
import { clearCache, cookies, json, redirect, type Response, withHeaders } from '../http/response.ts'
import { pageContext } from '../pages/pages.ts'
import { browserCookiesAt } from '../session/cookies/application-cookies.ts'
import { sessionKey, type SessionRecord } from '../session/record/record.ts'
import { endAtProvider, revokeTokens } from './end-at-provider.ts'
import type { LogoutParts } from './parts.ts'
import { askToSignOut, stateToCookie, signInAsOther, stateCookie, otherAccountOf } from './sign-out-state.ts'

/** How long the browser may stay at the end-session endpoint of the provider, in seconds. */
const returnSeconds = 10 * 60

/** `GET` or `POST sign-out`. A page load is redirected to the provider, a script gets JSON. */
export async function signOut(request: EndpointRequest, parts: LogoutParts): Promise<Response> {
  if (request.method === 'GET' || request.isPage) return signOutWithBrowser(request, parts)
  if (!isFromThisSite(request)) return parts.pages.refusal('ERR_CROSS_SITE', pageContext(request))
  const { provider, setCookies } = await signOutWithoutBrowser(request, parts)
  return json(200, { signed_out: true, provider }, { ...clearCache, ...cookies(setCookies) })
}

/**
 * `GET` or `POST sign-out` as a page load. The local session ends first. Then the browser is
 * redirected to the end-session endpoint of the provider (RP-Initiated Logout 1.0 §2).
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`: see `SessionEndings.endOne`
 */
async function signOutWithBrowser(request: EndpointRequest, parts: LogoutParts): Promise<Response> {
  if (!isFromThisSite(request) || lacksUserActivation(request)) return askToSignOut('asked_elsewhere', request, parts)
  const record = await endLocally(request, parts)
  const signedOut = new URL(`${parts.prefix}signed-out`, request.externalUrl).href
  // One URL is registered at the provider for all hosts that share the session.
  const registered = new URL(`${parts.prefix}signed-out`, parts.site?.signInUrl ?? request.externalUrl).href
  const other = otherAccountOf(request)
  // The query shows that the browser comes from a sign-out. After the provider, `state` shows it.
  const landing = other === undefined ? `${signedOut}?provider=not_asked` : signInAsOther(other, parts)
  const setCookies = expireCookies(record, request, parts)
  if (record === undefined) return redirect({ location: landing, setCookies }, clearCache)

  // The browser does not wait for the revocation.
  void revokeTokens(record, parts, request.cause)
  // A copy of the session cookie must not show its thief the ID Token in a URL.
  if (!isOfDevice(record, request, parts)) {
    void endAtProvider(record, parts, request.cause)
    return redirect({ location: landing, setCookies }, clearCache)
  }
  const state = randomToken(16)
  const logout = await parts.provider
    .endSessionRequest({ id_token_hint: record.tokens.id_token, post_logout_redirect_uri: registered, state })
    .catch((error: unknown) => {
      parts.log.warn('sign_out.provider_unavailable', { reason: reason(error) })
      return undefined
    })
  if (logout?.kind === 'ended') {
    const { iss, sub, sid } = record
    parts.audit.record('provider.end_session', { iss, sub, sid, outcome: 'ended' }, request.cause)
  }
  if (logout === undefined || logout.kind === 'ended') return redirect({ location: landing, setCookies }, clearCache)
  const host = registered === signedOut ? undefined : request.externalUrl.hostname
  const stateField = setCookie(stateCookie(parts), stateToCookie({ state, other, host }), returnSeconds)
  const fields = { ...clearCache, ...cookies([...setCookies, stateField]) }
  if (logout.kind === 'form')
    return withHeaders(parts.pages.formPost(logout.url.href, logout.fields, pageContext(request)), fields)
  return redirect({ location: logout.url.href, setCookies: [...setCookies, stateField] }, clearCache)
}

/**
 * `POST sign-out` by a script. The local session ends first, then the session at the provider, from
 * server to server.
 * @returns `no_session` when there was no session
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`: see `SessionEndings.endOne`
 */
async function signOutWithoutBrowser(
  request: EndpointRequest,
  parts: LogoutParts,
): Promise<{
  readonly provider: 'ended' | 'unknown' | 'unsupported' | 'unreachable' | 'no_session'
  readonly setCookies: readonly string[]
}> {
  const record = await endLocally(request, parts)
  const setCookies = expireCookies(record, request, parts)
  if (record === undefined) return { provider: 'no_session', setCookies }
  const [provider] = await Promise.all([
    endAtProvider(record, parts, request.cause),
    revokeTokens(record, parts, request.cause),
  ])
  return { provider, setCookies }
}

/**
 * Whether a page of this site made the request without a click of the person. An image in a text
 * that another person wrote does so, and a link that the browser prefetches. An `<img crossorigin>`
 * has the mode "cors", an `<object>` the mode "navigate".
 */
function lacksUserActivation({ secFetchMode, secFetchDest, purpose }: Initiator): boolean {
  if (secFetchMode !== undefined && secFetchMode !== 'navigate') return true
  return secFetchDest === 'object' || secFetchDest === 'embed' || /\bprefetch\b/i.test(purpose ?? '')
}

type SignOutRequest = Initiator & Pick<EndpointRequest, 'method' | 'externalUrl'>

/**
 * Whether the gateway signs out at a request for a logout link of an application without a
 * question. Takes the method with which the sign-out receives the request: `POST` for a script,
 * otherwise `GET`.
 */
export function signsOutAtOnce(request: SignOutRequest): boolean {
  return isFromThisSite(request) && (request.method === 'POST' || !lacksUserActivation(request))
}

/** Expires the cookies of the session, and those of the applications at this host. */
function expireCookies(
  record: SessionRecord | undefined,
  request: EndpointRequest,
  { cookie, personCookie, providerCookie }: Pick<LogoutParts, 'cookie' | 'personCookie' | 'providerCookie'>,
): string[] {
  const cookies = browserCookiesAt(record, hostName(request.host))
  return [
    ...cookie.expireAll(request.cookie, request.applicationCookies, { cookies }),
    ...cookie.expireFormer(request.cookie, hostName(request.host)),
    ...personCookie.expire(request.cookie),
    ...providerCookie.expire(request.cookie),
  ]
}

/** Whether the request comes from the device of the session, or the session is not bound. */
function isOfDevice(
  { device }: SessionRecord,
  { cookie }: EndpointRequest,
  parts: Pick<LogoutParts, 'cookie' | 'boundCookie'>,
): boolean {
  const id = parts.cookie.read(cookie)
  return id !== undefined && parts.boundCookie.faultOf(sessionKey(id), device, cookie) === undefined
}

async function endLocally(request: EndpointRequest, parts: LogoutParts): Promise<SessionRecord | undefined> {
  const former = parts.cookie.readFormer(request.cookie)
  if (former !== undefined) await parts.endings.endOne(sessionKey(former), 'person', request.cause)
  const id = parts.cookie.read(request.cookie)
  if (id === undefined) return undefined
  const [ended] = await parts.endings.endOne(sessionKey(id), 'person', request.cause)
  return ended?.record
}
