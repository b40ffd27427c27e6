import { GatewayError } from '../core/errors.ts'
import { signInUrl } from '../core/return-to.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import { clearCache, redirect, type Redirect, type Response } from '../http/response.ts'
import { visitOf } from '../pages/pages.ts'
import type { AuthorizationRequest } from '../provider/openid-provider.ts'
import { sessionKey } from '../session/record.ts'
import { attemptToState, beginAttempt, rememberAttempt } from './attempt.ts'
import { onlyValue, redirectUri, type SignInParts } from './parts.ts'
import { returnToOrHome } from './return-to.ts'

/** A sign-in that begins at a host whose cookies do not come back to `external_url`. */
export class WrongHostError extends GatewayError {
  /** The URL of the wanted page at `external_url`. */
  readonly address: string

  constructor(host: string, address: URL) {
    super(
      'ERR_WRONG_HOST',
      `the sign-in would begin at ${host.slice(0, longestHost)} and end at ${address.host}, which is external_url`,
    )
    this.address = address.href
  }
}

/** In characters: RFC 1035 §2.3.4. */
const longestHost = 255

const wrongHostHint =
  'redirect that host to external_url, or give it an upstream with its own external_url; if a proxy changes Host, have it pass Host on'

/**
 * `GET sign-in?return_to=…&prompt=login`: sends the browser to the provider, or on when the person
 * is signed in already.
 */
export function signIn(request: EndpointRequest, parts: SignInParts): Promise<Response> {
  const prompt = onlyValue(request.query, 'prompt') === 'login' ? 'login' : undefined
  const wish = { return_to: onlyValue(request.query, 'return_to'), prompt } as const
  return begin(() => goToProvider(wish, request, parts), request, parts)
}

/**
 * The response of an endpoint that begins a sign-in.
 * @throws {GatewayError} what `start` throws, unless the request is a page load
 */
export async function begin(
  start: () => Promise<Redirect>,
  request: EndpointRequest,
  parts: SignInParts,
): Promise<Response> {
  try {
    return redirect(await start(), request.query.has('again') ? clearCache : {})
  } catch (error) {
    if (error instanceof WrongHostError) return toRightAddress(error, request, parts)
    if (!(error instanceof GatewayError) || !request.isPage) throw error
    const { code, message } = error
    parts.log.warn('sign_in.not_started', { code, reason: message, request: request.requestId })
    const returnTo = request.query.get('return_to') ?? undefined
    return parts.pages.refusal(code, { ...visitOf(request), asPage: true, returnTo })
  }
}

/** The page links to `external_url` only, because anybody can write any `Host`. */
function toRightAddress(
  { code, message, address: rightAddress }: WrongHostError,
  request: EndpointRequest,
  { log, pages, reservedPrefix }: SignInParts,
): Response {
  log.warn('sign_in.not_started', { code, reason: message, hint: wrongHostHint, request: request.requestId })
  const signIn = new URL(signInUrl(reservedPrefix, undefined), request.externalUrl).href
  // The link is followed with a Referer where it leads to the same origin: see requireExternalUrl.
  const headers = { 'Referrer-Policy': 'same-origin' }
  return pages.refusal(code, { ...visitOf(request), asPage: request.isPage, rightAddress, signIn, headers })
}

/**
 * Where the browser goes to sign in.
 * @throws {WrongHostError}
 * @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE` while the provider has not been found,
 * `ERR_STORE_UNAVAILABLE`
 */
export async function goToProvider(
  wish: { readonly return_to: string | undefined } & Pick<AuthorizationRequest, 'login_hint' | 'prompt'>,
  request: EndpointRequest,
  parts: SignInParts,
): Promise<Redirect> {
  const { externalUrl, cookie } = request
  const return_to = returnToOrHome(wish.return_to, externalUrl, parts.reservedPrefix)
  if (await isSignedIn(request, parts)) return { location: return_to, setCookies: [] }

  requireExternalUrl(request, return_to)

  // Without the store nobody could come back: better said here than after the provider has been
  // bothered.
  const { store } = parts
  const { audience } = parts.sessions
  if (!store.hearsNotices()) await store.ping()
  const { earliest } = await store.time()
  const to = { return_to, origin: externalUrl.origin, audience, begun_at_store: earliest }
  const { attempt, secret } = beginAttempt(to, parts.clock.now())
  const location = await parts.provider.authorizationUrl({
    redirect_uri: redirectUri(externalUrl, parts.reservedPrefix),
    state: attemptToState(attempt, parts.keyring),
    nonce: attempt.nonce,
    code_verifier: attempt.code_verifier,
    login_hint: wish.login_hint,
    prompt: wish.prompt,
  })
  return { location: location.href, setCookies: rememberAttempt(attempt, secret, cookie, parts.cookie) }
}

/** Whether the browser has a live session. Looking does not prolong it. */
export async function isSignedIn(request: EndpointRequest, parts: SignInParts): Promise<boolean> {
  const id = parts.cookie.read(request.cookie)
  return id !== undefined && (await parts.sessions.read(sessionKey(id))) !== undefined
}

/**
 * A sign-in begins only where the browser sends its cookies to `external_url` too. They are bound
 * to the host and not to the port (RFC 6265 §8.5). A `Referer` of `external_url` shows that the
 * browser is there, and that a proxy has changed `Host`.
 * @throws {WrongHostError}
 */
export function requireExternalUrl(
  { host, referer = '', externalUrl }: Pick<EndpointRequest, 'host' | 'referer' | 'externalUrl'>,
  return_to: string,
): void {
  if (hostnameOf(`http://${host}`) === externalUrl.hostname) return
  if (URL.canParse(referer) && new URL(referer).origin === externalUrl.origin) return
  throw new WrongHostError(host, new URL(return_to, externalUrl))
}

function hostnameOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined
}
