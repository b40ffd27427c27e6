import type { AuthorizationRequest } from '../provider/openid-provider.ts'
import { sessionKey } from '../session/record.ts'
import { attemptToState, beginAttempt, rememberAttempt } from './attempt.ts'
import { onlyValue, redirectUri, type OwnRequest, type Redirect, type SignInParts } from './parts.ts'
import { returnToOrHome } from './return-to.ts'

/**
 * `GET sign-in?return_to=…&prompt=login`: sends the browser to the provider. Who is signed in already goes where they wanted to.
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
