import { expireCookie, readCookie, setCookie } from '../http/cookies.ts'
import { reason } from '../core/errors.ts'
import { randomToken } from '../core/random.ts'
import { signInUrl } from '../core/return-to.ts'
import { sessionKey, type SessionRecord } from '../session/record.ts'
import { endAtProvider, revokeTokens } from './end-at-provider.ts'
import type { LogoutParts, SignOutRequest } from './parts.ts'

/** How long a browser may take through the provider's end-session endpoint, in seconds. */
const returnSeconds = 10 * 60

export type SignOut =
  /** Not asked for by this site, or by nobody's click: the person is asked first. */
  | { readonly kind: 'confirm' }
  /** The local session has ended; the browser goes on through the provider, or to the page that says so. */
  | { readonly kind: 'redirect'; readonly location: string; readonly setCookies: readonly string[] }

/**
 * `GET` or `POST sign-out` by a browser: the local session ends first, then the browser is sent through the provider's
 * end-session endpoint (RP-Initiated Logout 1.0 §2).
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`: it is to be tried again, see `Sessions.endOne`
 */
export async function signOutWithBrowser(request: SignOutRequest, parts: LogoutParts): Promise<SignOut> {
  if (!isFromThisSite(request) || isNobodysClick(request)) return { kind: 'confirm' }
  const record = await endLocally(request, parts)
  const signedOut = new URL(`${parts.reservedPrefix}signed-out`, request.externalUrl).href
  const other = wantsOtherAccount(request)
  // The query tells the page that the browser comes from here, as `state` does that comes from the provider.
  const landing = other === undefined ? `${signedOut}?provider=not_asked` : signInAsOther(other, parts)
  const setCookies = parts.cookie.forget(request.cookie, request.applicationCookies)
  if (record === undefined) return { kind: 'redirect', location: landing, setCookies }

  // The browser need not wait for it.
  void revokeTokens(record, parts, request.cause)
  const state = randomToken(16)
  const url = await parts.provider
    .endSessionUrl({ id_token_hint: record.tokens.id_token, post_logout_redirect_uri: signedOut, state })
    .catch((error: unknown) => {
      parts.log.warn('sign_out.provider_unavailable', { reason: reason(error) })
      return undefined
    })
  if (url === undefined) return { kind: 'redirect', location: landing, setCookies }
  return {
    kind: 'redirect',
    location: url.href,
    setCookies: [...setCookies, setCookie(stateCookie(parts), rememberedState(state, other), returnSeconds)],
  }
}

/** That somebody else is to sign in next, and what they want to see then. */
interface OtherAccount {
  readonly returnTo: string | undefined
}

/** `sign-out?then=sign-in&return_to=…`. */
function wantsOtherAccount(request: SignOutRequest): OtherAccount | undefined {
  const { searchParams } = new URL(request.url, request.externalUrl)
  return searchParams.get('then') === 'sign-in' ? { returnTo: searchParams.get('return_to') ?? undefined } : undefined
}

/** Whoever has signed out at the provider may be asked there; whoever has not would be taken again without being asked. */
function signInAsOther({ returnTo }: OtherAccount, { reservedPrefix }: Pick<LogoutParts, 'reservedPrefix'>): string {
  return signInUrl(reservedPrefix, returnTo, 'login')
}

function rememberedState(state: string, other: OtherAccount | undefined): string {
  return other === undefined ? state : `${state}.${Buffer.from(other.returnTo ?? '').toString('base64url')}`
}

/** Cookies come from the browser: of where to go on, nothing is taken but what the sign-in checks anyway. */
function readRememberedState(value: string): { readonly state: string; readonly other: OtherAccount | undefined } {
  const [state = '', returnTo] = value.split('.')
  return {
    state,
    other: returnTo === undefined ? undefined : { returnTo: Buffer.from(returnTo, 'base64url').toString() },
  }
}

/**
 * `POST sign-out` by a script: the local session ends first, then the provider's, from server to server. `no_session`: there was
 * none. @throws {GatewayError} `ERR_STORE_UNAVAILABLE`: it is to be tried again, see `Sessions.endOne`
 */
export async function signOutWithoutBrowser(
  request: SignOutRequest,
  parts: LogoutParts,
): Promise<{
  readonly provider: 'ended' | 'unknown' | 'unsupported' | 'unreachable' | 'no_session'
  readonly setCookies: readonly string[]
}> {
  const record = await endLocally(request, parts)
  const setCookies = parts.cookie.forget(request.cookie, request.applicationCookies)
  if (record === undefined) return { provider: 'no_session', setCookies }
  const [provider] = await Promise.all([
    endAtProvider(record, parts, request.cause),
    revokeTokens(record, parts, request.cause),
  ])
  return { provider, setCookies }
}

/** What `GET signed-out` has to say. */
export interface CameBack {
  /** Whether the browser comes from a sign-out of ours. */
  readonly stateIsOurs: boolean
  readonly stillSignedIn: boolean
  /** Where somebody else signs in, when it was for that. */
  readonly signIn: string | undefined
  readonly setCookies: readonly string[]
}

/** @throws {GatewayError} `ERR_STORE_UNAVAILABLE`, when nobody here began it: who may be signed in is not told to be signed out */
export async function comeBackSignedOut(request: SignOutRequest, parts: LogoutParts): Promise<CameBack> {
  const cookie = stateCookie(parts)
  const remembered = readCookie(request.cookie, cookie.name)
  const { state: expected, other } = readRememberedState(remembered ?? '')
  const [state, ...more] = new URL(request.url, request.externalUrl).searchParams.getAll('state')
  const stateIsOurs = remembered !== undefined && state === expected && more.length === 0
  const id = parts.cookie.read(request.cookie)
  const reading = id === undefined ? undefined : parts.sessions.read(sessionKey(id))
  const session = await (stateIsOurs ? reading?.catch(() => undefined) : reading)
  return {
    stateIsOurs,
    stillSignedIn: session !== undefined,
    signIn: stateIsOurs && other !== undefined ? signInAsOther(other, parts) : undefined,
    setCookies: remembered === undefined ? [] : [expireCookie(cookie)],
  }
}

/** A page elsewhere must not be able to sign people out: the browser says where a request comes from (Fetch Metadata, RFC 6454). */
export function isFromThisSite(request: SignOutRequest): boolean {
  const { secFetchSite, origin, referer, externalUrl } = request
  // `none`: typed, or a bookmark.
  if (secFetchSite !== undefined)
    return secFetchSite === 'same-origin' || (secFetchSite === 'none' && request.method === 'GET')
  if (origin !== undefined && origin !== 'null') return origin === externalUrl.origin
  if (referer !== undefined) return URL.canParse(referer) && new URL(referer).origin === externalUrl.origin
  return origin === undefined
}

/**
 * Something in what people write to each other, a link that is fetched or rendered in advance: this site asks, and nobody has clicked. An
 * `<img crossorigin>` comes in the mode "cors", an `<object>` in "navigate".
 */
function isNobodysClick({ secFetchMode, secFetchDest, purpose }: SignOutRequest): boolean {
  if (secFetchMode !== undefined && secFetchMode !== 'navigate') return true
  return secFetchDest === 'object' || secFetchDest === 'embed' || /\bprefetch\b/i.test(purpose ?? '')
}

async function endLocally(request: SignOutRequest, parts: LogoutParts): Promise<SessionRecord | undefined> {
  const id = parts.cookie.read(request.cookie)
  if (id === undefined) return undefined
  const [ended] = await parts.sessions.endOne(sessionKey(id), 'person', request.cause)
  return ended?.record
}

function stateCookie(parts: LogoutParts) {
  return parts.cookie.beside('signout')
}
