import { expireCookie, readCookie, setCookie } from '../core/cookies.ts'
import { reason } from '../core/errors.ts'
import { randomToken } from '../core/random.ts'
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
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`: nothing has ended
 */
export async function signOutWithBrowser(request: SignOutRequest, parts: LogoutParts): Promise<SignOut> {
  if (!isFromThisSite(request) || isNobodysClick(request)) return { kind: 'confirm' }
  const record = await endLocally(request, parts)
  const signedOut = new URL(`${parts.reservedPrefix}signed-out`, request.externalUrl).href
  const setCookies = parts.cookie.forget(request.cookie, request.applicationCookies)
  if (record === undefined) return { kind: 'redirect', location: signedOut, setCookies }

  // The browser need not wait for it.
  void revokeTokens(record, parts, request.cause)
  const state = randomToken(16)
  const url = await parts.provider
    .endSessionUrl({ id_token_hint: record.tokens.id_token, post_logout_redirect_uri: signedOut, state })
    .catch((error: unknown) => {
      parts.log.warn('sign_out.provider_unavailable', { reason: reason(error) })
      return undefined
    })
  if (url === undefined) return { kind: 'redirect', location: signedOut, setCookies }
  return {
    kind: 'redirect',
    location: url.href,
    setCookies: [...setCookies, setCookie(stateCookie(parts), state, returnSeconds)],
  }
}

/**
 * `POST sign-out` by a script: the local session ends first, then the provider's, from server to server. `no_session`: there was
 * none. @throws {GatewayError} `ERR_STORE_UNAVAILABLE`: nothing has ended
 */
export async function signOutWithoutBrowser(
  request: SignOutRequest,
  parts: LogoutParts,
): Promise<{
  readonly provider: 'ended' | 'unsupported' | 'unreachable' | 'no_session'
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

/** What `GET signed-out` has to say: whether the browser comes from a sign-out of ours, and whether somebody is signed in still. */
export async function comeBackSignedOut(
  request: SignOutRequest,
  parts: LogoutParts,
): Promise<{ readonly stillSignedIn: boolean; readonly stateIsOurs: boolean; readonly setCookies: readonly string[] }> {
  const cookie = stateCookie(parts)
  const expected = readCookie(request.cookie, cookie.name)
  const [state, ...more] = new URL(request.url, request.externalUrl).searchParams.getAll('state')
  const id = parts.cookie.read(request.cookie)
  const session = id === undefined ? undefined : await parts.sessions.read(sessionKey(id)).catch(() => undefined)
  return {
    stillSignedIn: session !== undefined,
    stateIsOurs: expected !== undefined && state === expected && more.length === 0,
    setCookies: expected === undefined ? [] : [expireCookie(cookie)],
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

/** An image in what people write to each other, a link that is fetched or rendered in advance: this site asks, and nobody has clicked. */
function isNobodysClick({ secFetchMode, purpose }: SignOutRequest): boolean {
  return secFetchMode === 'no-cors' || /\bprefetch\b/i.test(purpose ?? '')
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
