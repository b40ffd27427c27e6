import { reason } from '../core/errors.ts'
import { randomToken } from '../core/random.ts'
import { setCookie } from '../http/cookies.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import { clearCache, cookies, json, redirect, type Response } from '../http/response.ts'
import { visitOf } from '../pages/pages.ts'
import { sessionKey, type SessionRecord } from '../session/record.ts'
import { endAtProvider, revokeTokens } from './end-at-provider.ts'
import type { LogoutParts } from './parts.ts'
import { askToSignOut, rememberedState, signInAsOther, stateCookie, wantsOtherAccount } from './sign-out-state.ts'

/** How long a browser may take through the provider's end-session endpoint, in seconds. */
const returnSeconds = 10 * 60

/** `GET` or `POST sign-out`: a browser is redirected through the provider, a script gets JSON. */
export async function signOut(request: EndpointRequest, parts: LogoutParts): Promise<Response> {
  if (request.method === 'GET' || request.isPage) return signOutWithBrowser(request, parts)
  if (!isFromThisSite(request)) return parts.pages.refusal('ERR_CROSS_SITE', visitOf(request))
  const { provider, setCookies } = await signOutWithoutBrowser(request, parts)
  return json(200, { signed_out: true, provider }, { ...clearCache, ...cookies(setCookies) })
}

/**
 * `GET` or `POST sign-out` by a browser: the local session ends first, then the browser is sent
 * through the provider's end-session endpoint (RP-Initiated Logout 1.0 §2).
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`: it is to be tried again, see
 * `SessionEndings.endOne`
 */
async function signOutWithBrowser(request: EndpointRequest, parts: LogoutParts): Promise<Response> {
  if (!isFromThisSite(request) || isNobodysClick(request)) return askToSignOut('asked_elsewhere', request, parts)
  const record = await endLocally(request, parts)
  const signedOut = new URL(`${parts.reservedPrefix}signed-out`, request.externalUrl).href
  const other = wantsOtherAccount(request)
  // The query tells the page that the browser comes from here, as `state` does that comes from the
  // provider.
  const landing = other === undefined ? `${signedOut}?provider=not_asked` : signInAsOther(other, parts)
  const setCookies = parts.cookie.forget(request.cookie, request.applicationCookies)
  if (record === undefined) return redirect({ location: landing, setCookies }, clearCache)

  // The browser need not wait for it.
  void revokeTokens(record, parts, request.cause)
  const state = randomToken(16)
  const url = await parts.provider
    .endSessionUrl({ id_token_hint: record.tokens.id_token, post_logout_redirect_uri: signedOut, state })
    .catch((error: unknown) => {
      parts.log.warn('sign_out.provider_unavailable', { reason: reason(error) })
      return undefined
    })
  if (url === undefined) return redirect({ location: landing, setCookies }, clearCache)
  const remembered = setCookie(stateCookie(parts), rememberedState(state, other), returnSeconds)
  return redirect({ location: url.href, setCookies: [...setCookies, remembered] }, clearCache)
}

/**
 * `POST sign-out` by a script: the local session ends first, then the provider's, from server to
 * server. `no_session`: there was none. @throws {GatewayError} `ERR_STORE_UNAVAILABLE`: it is to be
 * tried again, see `SessionEndings.endOne`
 */
async function signOutWithoutBrowser(
  request: EndpointRequest,
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

/**
 * A page elsewhere must not be able to sign people out: the browser says where a request comes from
 * (Fetch Metadata, RFC 6454).
 */
export function isFromThisSite(request: EndpointRequest): boolean {
  const { secFetchSite, origin, referer, externalUrl } = request
  // `none`: typed, or a bookmark.
  if (secFetchSite !== undefined)
    return secFetchSite === 'same-origin' || (secFetchSite === 'none' && request.method === 'GET')
  if (origin !== undefined && origin !== 'null') return origin === externalUrl.origin
  if (referer !== undefined) return URL.canParse(referer) && new URL(referer).origin === externalUrl.origin
  return origin === undefined
}

/**
 * Something in what people write to each other, a link that is fetched or rendered in advance: this
 * site asks, and nobody has clicked. An `<img crossorigin>` comes in the mode "cors", an `<object>`
 * in "navigate".
 */
function isNobodysClick({ secFetchMode, secFetchDest, purpose }: EndpointRequest): boolean {
  if (secFetchMode !== undefined && secFetchMode !== 'navigate') return true
  return secFetchDest === 'object' || secFetchDest === 'embed' || /\bprefetch\b/i.test(purpose ?? '')
}

async function endLocally(request: EndpointRequest, parts: LogoutParts): Promise<SessionRecord | undefined> {
  const id = parts.cookie.read(request.cookie)
  if (id === undefined) return undefined
  const [ended] = await parts.endings.endOne(sessionKey(id), 'person', request.cause)
  return ended?.record
}
