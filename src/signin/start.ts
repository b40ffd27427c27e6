import { GatewayError } from '../core/errors.ts'
import type { AuthorizationRequest } from '../provider/openid-provider.ts'
import { sessionKey } from '../session/record.ts'
import { attemptToState, beginAttempt, rememberAttempt } from './attempt.ts'
import { onlyValue, redirectUri, type OwnRequest, type Redirect, type SignInParts } from './parts.ts'
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

/**
 * `GET sign-in?return_to=…&prompt=login`: sends the browser to the provider. Who is signed in already goes where they wanted to.
 * @throws {WrongHostError}
 * @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE` while the provider has not been found, `ERR_STORE_UNAVAILABLE`
 */
export function startSignIn(request: OwnRequest, parts: SignInParts): Promise<Redirect> {
  const asked = new URL(request.url, request.externalUrl).searchParams
  const prompt = onlyValue(asked, 'prompt') === 'login' ? 'login' : undefined
  return goToProvider({ return_to: onlyValue(asked, 'return_to'), prompt }, request, parts)
}

/** @throws {GatewayError} as {@link startSignIn} does */
export async function goToProvider(
  wish: { readonly return_to: string | undefined } & Pick<AuthorizationRequest, 'login_hint' | 'prompt'>,
  request: OwnRequest,
  parts: SignInParts,
): Promise<Redirect> {
  const { externalUrl, cookie } = request
  const return_to = returnToOrHome(wish.return_to, externalUrl, parts.reservedPrefix)
  if (await isSignedIn(request, parts)) return { location: return_to, setCookies: [] }

  requireExternalUrl(request, return_to)

  // Without the store nobody could come back: better said here than after the provider has been bothered.
  const { store, audience } = parts.sessions
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
export async function isSignedIn(request: OwnRequest, parts: SignInParts): Promise<boolean> {
  const id = parts.cookie.read(request.cookie)
  return id !== undefined && (await parts.sessions.read(sessionKey(id))) !== undefined
}

/**
 * A sign-in begins only where the browser sends its cookies to `external_url` too. They are bound to the host and not to the port
 * (RFC 6265 §8.5). A `Referer` of `external_url` shows that the browser is there, and that a proxy has changed `Host`.
 * @throws {WrongHostError}
 */
export function requireExternalUrl(
  { host, referer = '', externalUrl }: Pick<OwnRequest, 'host' | 'referer' | 'externalUrl'>,
  return_to: string,
): void {
  if (hostnameOf(`http://${host}`) === externalUrl.hostname) return
  if (URL.canParse(referer) && new URL(referer).origin === externalUrl.origin) return
  throw new WrongHostError(host, new URL(return_to, externalUrl))
}

function hostnameOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname : undefined
}
