import { inSettingsOf } from '../config/provider-setting.ts'
import { GatewayError } from '../core/errors.ts'
import { challengeOfFrame as challengeIn, keptUrl, signedInPath, signInUrl } from '../core/return-to.ts'
import { insufficiency, type StepUp } from '../core/step-up.ts'
import { type EndpointRequest, isFromThisSite } from '../http/endpoint-request.ts'
import { hostName } from '../http/request-target.ts'
import { isFromSite } from '../http/requesting-page.ts'
import { clearCache, redirect, type Redirect, type Response, withHeaders } from '../http/response.ts'
import { asReference } from '../kept-forms/kept-requests.ts'
import { pageContext } from '../pages/pages.ts'
import type { AuthorizationRequest } from '../provider/provider.ts'
import { sessionOf } from '../session/cookies/viewer.ts'
import { linkParamsOf, returnToOrHome, stepUpOf, onlyValue } from './query.ts'
import type { SignInParts } from './sign-in-parts.ts'
import { beginTransaction, bindTransaction, transactionToState, redirectUri, type WantedKey } from './transaction.ts'

/** The sign-in would begin at a host whose cookies the browser does not send to `external_url`. */
class WrongHostError extends GatewayError {
  /** The URL of the requested page at `external_url`. */
  readonly address: string

  constructor(host: string, address: URL) {
    super(
      'ERR_WRONG_HOST',
      `the sign-in would begin at ${host.slice(0, longestHost)} and end at ${address.host}, which is external_url`,
    )
    this.address = address.href
  }
}

/** The longest host name, in characters (RFC 1035 §2.3.4). */
const longestHost = 255

const wrongHostHint =
  'Redirect that host to external_url, or give it an upstream with its own external_url. If a proxy changes Host, configure it to keep Host.'

/**
 * `GET sign-in?return_to=…&kept=…&prompt=login&acr_values=…&max_age=…`: redirects to the provider,
 * or a signed-in person to the page. With several providers, a page asks which one is meant.
 */
export async function signIn(request: EndpointRequest, parts: SignInParts): Promise<Response> {
  // The person has to learn first why the session has ended. The provider may sign the person in
  // again without a question, which ends the session of the other browser.
  const hasEnded = onlyValue(request.query, 'ended') === 'elsewhere' && request.isPage
  if (hasEnded && !(await isSignedIn(request, parts))) return explainEnd(request, parts)
  if (parts.choices.length > 0 && !isElsewhere(request, parts)) {
    const returnTo = returnToOrHome(onlyValue(request.query, 'return_to'), request.externalUrl, parts)
    const fault = hostFault(request, returnTo)
    return fault === undefined ? chooseProvider(request, parts) : toRightAddress(fault, request, parts)
  }
  const prompt = onlyValue(request.query, 'prompt') === 'login' ? 'login' : undefined
  const kept = asReference(onlyValue(request.query, 'kept'))
  const options = {
    return_to: onlyValue(request.query, 'return_to'),
    kept,
    prompt,
    stepUp: stepUpOf(request.query, parts),
    linkParams: linkParamsOf(request.query, parts.provider.config),
  } as const
  return begin(() => goToProvider(options, request, parts), request, parts)
}

/** The page links to the same sign-in without the reason. */
function explainEnd(request: EndpointRequest, { pages }: SignInParts): Response {
  const { pathname, searchParams } = new URL(request.url, request.externalUrl)
  searchParams.delete('ended')
  return pages.signedInElsewhere(`${pathname}?${searchParams.toString()}`, request)
}

/** The response of an endpoint that begins a sign-in. Throws errors, unless it is a page load. */
export async function begin(
  start: () => Promise<Redirect & Pick<Partial<Response>, 'headers'>>,
  request: EndpointRequest,
  parts: SignInParts,
): Promise<Response> {
  try {
    const next = await start()
    return redirect(next, { ...(request.query.has('again') && clearCache), ...next.headers })
  } catch (error) {
    if (error instanceof WrongHostError) return toRightAddress(error, request, parts)
    if (!(error instanceof GatewayError) || !request.isPage) throw error
    const { code, message } = error
    const why = inSettingsOf(parts.provider.config, message)
    parts.log.warn('sign_in.not_started', { code, reason: why, request: request.requestId })
    const returnTo = request.query.get('return_to') ?? undefined
    const kept = asReference(request.query.get('kept'))
    const stepUp = stepUpOf(request.query, parts)
    // The person may choose another provider.
    const setCookies = parts.providerCookie.expire(request.cookie)
    const options = { asPage: true, returnTo, kept, stepUp, retry: '', setCookies }
    return parts.pages.refusal(code, { ...pageContext(request), ...options })
  }
}

/** The page links to `external_url` only, because a client may send any `Host`. */
function toRightAddress(
  { code, message, address: rightAddress }: WrongHostError,
  request: EndpointRequest,
  { log, pages, prefix }: SignInParts,
): Response {
  log.warn('sign_in.not_started', { code, reason: message, hint: wrongHostHint, request: request.requestId })
  const signIn = new URL(signInUrl(prefix, undefined), request.externalUrl).href
  // The browser sends a Referer when the link leads to the same origin: see hostFault.
  const headers = { 'Referrer-Policy': 'same-origin' }
  return pages.refusal(code, { ...pageContext(request), asPage: request.isPage, rightAddress, signIn, headers })
}

/**
 * Begins a sign-in transaction and redirects to the provider, or a signed-in person to the page,
 * unless the sign-in is for a new session.
 * @throws {WrongHostError}
 * @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE` until the provider was found;
 * `ERR_STORE_UNAVAILABLE`
 */
export async function goToProvider(
  options: {
    readonly return_to: string | undefined
    /** The parameter that had `return_to`. */
    readonly parameter?: 'target_link_uri'
    readonly kept?: string | undefined
    readonly key?: WantedKey | undefined
  } & Pick<AuthorizationRequest, 'login_hint' | 'prompt' | 'stepUp' | 'linkParams'>,
  request: EndpointRequest,
  parts: SignInParts,
): Promise<Redirect & Pick<Partial<Response>, 'headers'>> {
  const { externalUrl, cookie } = request
  const return_to = returnToOrHome(options.return_to, externalUrl, parts)
  const isForFrame = challengeOfFrame(return_to, parts) !== undefined
  if (isForFrame) requireOwnFrame(request)
  const { kept, stepUp, key } = options
  // A page of another site must not make the browser change sessions.
  const isForNewSession =
    isForFrame || key !== undefined || (endsAtOpenPage(return_to, parts) && isFromPageOf(return_to, request, parts))
  if (!isForNewSession && (await isSignedIn(request, parts, stepUp)))
    return { location: afterSignIn({ return_to, kept }, parts), setCookies: [] }

  if (isElsewhere(request, parts)) return toSignInHost(return_to, options.parameter, request, parts)
  const fault = hostFault(request, return_to)
  if (fault !== undefined) throw fault

  // Without the store, the sign-in would fail after the person has signed in at the provider.
  const { store } = parts
  const { audience } = parts.sessions
  if (store.receivesNotices?.() === false) await store.ping()
  const { earliest } = await store.time()
  const isOverHttp = externalUrl.protocol === 'https:' && request.proto === 'http'
  const to = {
    return_to,
    kept,
    stepUp,
    key,
    origin: externalUrl.origin,
    audience,
    begun_at_store: earliest,
    ...(isOverHttp && { isOverHttp }),
  }
  const { transaction, secret } = beginTransaction(to, parts.clock.now())
  const redirect_uri = redirectUri(externalUrl, parts.prefix)
  const location = await parts.provider.authorizationUrl({
    redirect_uri,
    state: transactionToState(transaction, parts.keyring),
    nonce: transaction.nonce,
    code_verifier: transaction.code_verifier,
    login_hint: options.login_hint,
    prompt: options.prompt,
    stepUp,
    linkParams: options.linkParams,
    isOffline: key !== undefined,
  })
  parts.returns.noteBegun(redirect_uri)
  return { location: location.href, setCookies: bindTransaction(transaction, secret, cookie, parts.cookie) }
}

/** The challenge of the frame for which a sign-in creates a session. */
export function challengeOfFrame(
  return_to: string,
  { cookie, reservedPrefix }: Pick<SignInParts, 'cookie' | 'reservedPrefix'>,
): string | undefined {
  return cookie.isForFrames ? challengeIn(reservedPrefix, return_to) : undefined
}

/**
 * Only a page of this origin begins a sign-in for a frame. Another site could otherwise create
 * sessions of a person who is signed in at the provider.
 * @throws {GatewayError} `ERR_CROSS_SITE`
 */
function requireOwnFrame(request: EndpointRequest): void {
  if (!isFromSite('frame', request, [request.externalUrl.origin]))
    throw new GatewayError('ERR_CROSS_SITE', 'a page of another origin begins a sign-in for a frame')
}

/** Whether another host of the site is the one where people sign in. */
export function isElsewhere({ externalUrl }: EndpointRequest, { site }: Pick<SignInParts, 'site'>): boolean {
  return site !== undefined && externalUrl.origin !== site.signInUrl.origin
}

/**
 * The same sign-in at the host where people sign in for all hosts. So its cookie and the redirect
 * URI are for one host.
 */
function toSignInHost(
  return_to: string,
  parameter: string | undefined,
  { url, externalUrl, cookie, host }: EndpointRequest,
  parts: SignInParts,
): Redirect & Pick<Response, 'headers'> {
  const location = new URL(url, parts.site?.signInUrl)
  location.searchParams.set(parameter ?? 'return_to', new URL(return_to, externalUrl).href)
  // The other host compares the origin of the page that asks for the sign-in: see `isFromPageOf`.
  const headers = { 'Referrer-Policy': 'strict-origin' }
  return { location: location.href, setCookies: parts.cookie.expireFormer(cookie, hostName(host)), headers }
}

/** Whether a sign-in ends at the page that tells open pages about it. */
function endsAtOpenPage(return_to: string, { reservedPrefix }: SignInParts): boolean {
  const path = signedInPath(reservedPrefix)
  return return_to === path || (!return_to.startsWith('/') && new URL(return_to).pathname === path)
}

/**
 * Whether a page of the origin to which the sign-in returns asks for it, on another host by
 * `Referer`.
 */
function isFromPageOf(return_to: string, request: EndpointRequest, { site }: SignInParts): boolean {
  if (isFromThisSite(request)) return true
  const { referer = '', externalUrl, secFetchSite } = request
  if (site === undefined || (secFetchSite !== undefined && secFetchSite !== 'same-site')) return false
  return URL.canParse(referer) && new URL(referer).origin === new URL(return_to, externalUrl).origin
}

/**
 * Where a signed-in person goes: first to the kept request, at the host of the page, if there is
 * one.
 */
export function afterSignIn(
  { return_to, kept }: { readonly return_to: string; readonly kept?: string | undefined },
  { prefix }: Pick<SignInParts, 'prefix'>,
): string {
  if (kept === undefined) return return_to
  const url = keptUrl(prefix, kept)
  return return_to.startsWith('/') ? url : new URL(url, return_to).href
}

/** Whether the browser has a live session with a sufficient authentication. This is no activity. */
export async function isSignedIn(request: EndpointRequest, parts: SignInParts, stepUp: StepUp = {}): Promise<boolean> {
  const session = await sessionOf(request.cookie, parts)
  const options = { now: parts.clock.now(), tolerance: parts.provider.config.clockToleranceMs }
  return session !== undefined && insufficiency(stepUp, session.record.authentication ?? {}, options) === undefined
}

type HostOfRequest = Pick<EndpointRequest, 'host' | 'referer' | 'externalUrl'>

/**
 * Why a sign-in at the host of the request would fail: the browser does not send the cookies of the
 * host to `external_url`. Cookies are bound to the host and not to the
 * port (RFC 6265 §8.5). A `Referer` of `external_url` shows that the browser is at the right host,
 * and a proxy has changed `Host`.
 */
export function hostFault(
  { host, referer = '', externalUrl }: HostOfRequest,
  return_to: string,
): WrongHostError | undefined {
  const requested = `http://${host}`
  if (URL.canParse(requested) && new URL(requested).hostname === externalUrl.hostname) return undefined
  if (URL.canParse(referer) && new URL(referer).origin === externalUrl.origin) return undefined
  return new WrongHostError(host, new URL(return_to, externalUrl))
}

/** The page where a person chooses a provider. Each link begins the same sign-in at one of them. */
function chooseProvider(request: EndpointRequest, parts: SignInParts): Response {
  const { query } = request
  const options = {
    prompt: onlyValue(query, 'prompt') === 'login' ? 'login' : undefined,
    again: query.has('again'),
    kept: asReference(onlyValue(query, 'kept')),
    stepUp: stepUpOf(query, parts),
  } as const
  const returnTo = onlyValue(query, 'return_to')
  if (challengeOfFrame(returnTo ?? '', parts) !== undefined) requireOwnFrame(request)
  const choices = parts.choices.map((provider) => {
    const url = new URL(signInUrl(provider.prefix, returnTo, options), request.externalUrl)
    for (const [name, value] of Object.entries(linkParamsOf(query, provider))) url.searchParams.set(name, value)
    return { title: provider.title, url: url.pathname + url.search }
  })
  // See hostFault.
  return withHeaders(parts.pages.chooseProvider(choices, request), { 'Referrer-Policy': 'same-origin' })
}
