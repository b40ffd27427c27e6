import { reason } from '../core/errors.ts'
import { randomToken } from '../core/random.ts'
import { signInUrl } from '../core/return-to.ts'
import type { Site } from '../core/site.ts'
import { expireCookie, readCookie, setCookie } from '../http/cookies.ts'
import { type EndpointRequest, type Initiator, isFromThisSite } from '../http/endpoint-request.ts'
import { hostName } from '../http/request-target.ts'
import { clearCache, cookies, json, redirect, type Response, withHeaders } from '../http/response.ts'
import type { Log } from '../observe/log.ts'
import { pageContext, type Pages } from '../pages/pages.ts'
import { sendsEndSessionState } from '../provider/end-session.ts'
import type { Provider } from '../provider/provider.ts'
import { browserCookiesAt } from '../session/cookies/application-cookies.ts'
import type { BoundCookie, PersonCookie, ProviderCookie } from '../session/cookies/gateway-cookies.ts'
import type { SessionCookie } from '../session/cookies/session-cookie.ts'
import type { SessionEndings } from '../session/live/endings.ts'
import type { SessionsOfAudience } from '../session/live/live-sessions.ts'
import { sessionKey, type SessionRecord } from '../session/record/record.ts'
import { endAtProvider, type EndAtProviderParts, revokeTokens } from './end-at-provider.ts'

export interface SignOutParts extends EndAtProviderParts {
  readonly provider: EndAtProviderParts['provider'] &
    Pick<Provider, 'endSessionRequest' | 'endSessionOrigin' | 'config'>
  readonly sessions: Pick<SessionsOfAudience, 'read'>
  readonly endings: Pick<SessionEndings, 'endOne'>
  readonly cookie: SessionCookie
  readonly boundCookie: Pick<BoundCookie, 'faultOf'>
  readonly personCookie: Pick<PersonCookie, 'expire'>
  readonly providerCookie: Pick<ProviderCookie, 'expire'>
  readonly log: Log
  readonly pages: Pages
  /** The path of the endpoints of the provider. */
  readonly prefix: string
  readonly reservedPrefix: string
  /** The hosts that share a session. `undefined`: each host has a session of its own. */
  readonly site: Site | undefined
}

/** How long the browser may stay at the end-session endpoint of the provider, in seconds. */
const returnSeconds = 10 * 60

/** `GET` or `POST sign-out`. A page load is redirected to the provider, a script gets JSON. */
export async function signOut(request: EndpointRequest, parts: SignOutParts): Promise<Response> {
  const isOfFrame = request.isFrame && parts.cookie.isOfFrame(request.cookie)
  if (!isOfFrame && (request.method === 'GET' || request.isPage)) return signOutWithBrowser(request, parts)
  if (!isFromThisSite(request)) return parts.pages.refusal('ERR_CROSS_SITE', pageContext(request))
  const { provider, setCookies } = await signOutWithoutBrowser(request, parts)
  // Providers refuse to appear in frames, so the frame shows the application again.
  if (isOfFrame) return redirect({ location: request.home, setCookies }, clearCache)
  return json(200, { signed_out: true, provider }, { ...clearCache, ...cookies(setCookies) })
}

/**
 * A page load. The local session ends first, and then the browser goes to the end-session endpoint
 * of the provider (RP-Initiated Logout 1.0 §2).
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`: see `SessionEndings`, here and below
 */
async function signOutWithBrowser(request: EndpointRequest, parts: SignOutParts): Promise<Response> {
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
 * `POST` by a script. The local session ends first, if there is one, then that at the provider,
 * from server to server.
 */
async function signOutWithoutBrowser(
  request: EndpointRequest,
  parts: SignOutParts,
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
 * Whether a page of this site made the request without a click: an image in the text of another
 * person, or a prefetched link. An `<img crossorigin>` has the mode "cors", an `<object>`
 * "navigate".
 */
function lacksUserActivation({ secFetchMode, secFetchDest, isPrefetch }: Initiator): boolean {
  if (secFetchMode !== undefined && secFetchMode !== 'navigate') return true
  return secFetchDest === 'object' || secFetchDest === 'embed' || isPrefetch
}

type SignOutRequest = Initiator & Pick<EndpointRequest, 'method' | 'externalUrl'>

/**
 * Whether a request for a logout link of an application signs out without a question. It has the
 * method of the sign-out: `POST` for a script, otherwise `GET`.
 */
export function signsOutAtOnce(request: SignOutRequest): boolean {
  return isFromThisSite(request) && (request.method === 'POST' || !lacksUserActivation(request))
}

/** Expires the cookies of the session, and those of the applications at this host. */
function expireCookies(
  record: SessionRecord | undefined,
  request: EndpointRequest,
  { cookie, personCookie, providerCookie }: Pick<SignOutParts, 'cookie' | 'personCookie' | 'providerCookie'>,
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
  parts: Pick<SignOutParts, 'cookie' | 'boundCookie'>,
): boolean {
  const id = parts.cookie.read(cookie)
  return id !== undefined && parts.boundCookie.faultOf(sessionKey(id), device, cookie) === undefined
}

async function endLocally(request: EndpointRequest, parts: SignOutParts): Promise<SessionRecord | undefined> {
  const former = parts.cookie.readFormer(request.cookie)
  if (former !== undefined) await parts.endings.endOne(sessionKey(former), 'person', request.cause)
  const id = parts.cookie.read(request.cookie)
  if (id === undefined) return undefined
  const [ended] = await parts.endings.endOne(sessionKey(id), 'person', request.cause)
  return ended?.record
}

/** After the sign-out, another person signs in and then goes to the page `returnTo`. */
export interface OtherAccount {
  readonly returnTo: string | undefined
}

/** Reads `sign-out?then=sign-in&return_to=…`; `undefined` when it is a plain sign-out. */
function otherAccountOf({ query }: EndpointRequest): OtherAccount | undefined {
  return query.get('then') === 'sign-in' ? { returnTo: query.get('return_to') ?? undefined } : undefined
}

/** With `prompt=login`, because the provider may still have a session of the first person. */
function signInAsOther({ returnTo }: OtherAccount, { reservedPrefix }: Pick<SignOutParts, 'reservedPrefix'>): string {
  return signInUrl(reservedPrefix, returnTo, { prompt: 'login' })
}

/** The cookie that holds the state of a sign-out while the browser is at the provider. */
function stateCookie(parts: SignOutParts) {
  return parts.cookie.withSuffixForSite('signout')
}

export interface SignOutState {
  /** The `state` of the request to the end-session endpoint (RP-Initiated Logout 1.0 §2). */
  readonly state: string
  readonly other: OtherAccount | undefined
  /** The host (without port) where the sign-out began, if it is another one than this. */
  readonly host: string | undefined
}

function stateToCookie({ state, other, host }: SignOutState): string {
  const returnTo = other === undefined ? '' : Buffer.from(other.returnTo ?? '/').toString('base64url')
  if (host !== undefined) return `${state}.${returnTo}.${host}`
  return `${state}.${returnTo}`
}

/** A client may send any value: `host` must be checked, and the sign-in checks `returnTo` again. */
function stateFromCookie(value: string): SignOutState {
  const [state = '', returnTo = '', ...labels] = value.split('.')
  return {
    state,
    other: returnTo === '' ? undefined : { returnTo: Buffer.from(returnTo, 'base64url').toString() },
    host: labels.length === 0 ? undefined : labels.join('.'),
  }
}

/** A page with a button that signs out. */
function askToSignOut(
  reason: 'asked_elsewhere' | 'still_signed_in',
  request: EndpointRequest,
  { pages, provider, prefix }: SignOutParts,
): Response {
  return pages.signOut(reason, { prefix, formTargets: [provider.endSessionOrigin ?? []].flat() }, request)
}

/**
 * `GET signed-out`: the browser returns from the provider (RP-Initiated Logout 1.0 §3).
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE` when no sign-out began here, because the person
 * may still be signed in
 */
export async function signedOut(request: EndpointRequest, parts: SignOutParts): Promise<Response> {
  const { isSignedIn, isStateKnown, signIn, setCookies, elsewhere } = await readReturn(request, parts)
  if (!isStateKnown) parts.log.debug('sign_out.unknown_state', {})
  // The host where the person has signed out shows the page, and clears what the browser keeps.
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
 * The browser may keep the previous page for its Back button. If the URL has a query, the page
 * loads again without it, and that response makes the browser drop the pages that it keeps.
 */
function cleared({ url }: EndpointRequest, { prefix }: SignOutParts): Response['headers'] {
  return url.includes('?') ? { Refresh: `0; url=${prefix}signed-out` } : clearCache
}

async function readReturn(request: EndpointRequest, parts: SignOutParts) {
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
