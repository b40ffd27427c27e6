import { GatewayError, reason } from '../core/errors.ts'
import { signInUrl } from '../core/return-to.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import { clearCache, cookies, redirect, type Redirect, type Response, withHeaders } from '../http/response.ts'
import { visitOf } from '../pages/pages.ts'
import { claimsOfIdToken } from '../provider/id-token.ts'
import type { SignedIn } from '../provider/openid-provider.ts'
import { signInLifetimeMs } from '../session/endings.ts'
import { sessionKey, type SessionRecord } from '../session/record.ts'
import { claimsOfSession } from '../session/session-claims.ts'
import { attemptFromState, forgetAttempts, isBoundTo, isExpired, type Attempt } from './attempt.ts'
import { authorizationResponse } from './authorization-response.ts'
import { onlyValue, redirectUri, type SignInParts } from './parts.ts'
import { returnToOrHome } from './return-to.ts'
import { isSignedIn } from './sign-in.ts'

/** A sign-in that failed, and where a new one would lead. */
class SignInError extends GatewayError {
  readonly returnTo: string

  constructor(cause: GatewayError, returnTo: string) {
    super(cause.code, cause.message, { cause: cause.cause })
    this.returnTo = returnTo
  }
}

/** `GET callback`: the provider has sent the browser back. */
export async function callback(request: EndpointRequest, parts: SignInParts): Promise<Response> {
  try {
    const next = await finishSignIn(request, parts)
    // Nothing that the browser keeps may be of another session.
    if (!parts.cookie.isStrict) return redirect(next, clearCache)
    const page = parts.pages.goOn(next.location, request, { signedIn: true })
    return withHeaders(page, { ...clearCache, ...cookies(next.setCookies) })
  } catch (error) {
    if (!(error instanceof SignInError)) throw error
    const { code, returnTo } = error
    // A callback is good for once.
    const retry = signInUrl(parts.reservedPrefix, returnTo)
    return parts.pages.refusal(code, { ...visitOf(request), asPage: true, returnTo, retry })
  }
}

/**
 * Finishes a sign-in. Each step needs the value of the one before: the attempt, opened from `state`
 * and bound to this browser → the code, exchanged with the *configured* redirect URI → userinfo → a
 * new session id.
 * @throws {SignInError} says why, and where to start again
 */
async function finishSignIn(request: EndpointRequest, parts: SignInParts): Promise<Redirect> {
  const callback = new URL(redirectUri(request.externalUrl, parts.reservedPrefix))
  callback.search = authorizationResponse(new URL(request.url, request.externalUrl), parts)
  const attempt = attemptFromState(onlyValue(callback.searchParams, 'state'), parts.keyring)
  const return_to = returnToOrHome(attempt?.return_to, request.externalUrl, parts.reservedPrefix)
  try {
    const why = await whyNotToGoOn(attempt, request, parts)
    if (attempt === undefined || why !== undefined) {
      // A tab that comes late, or a page that is loaded again: whoever is signed in meanwhile just
      // goes on.
      if (attempt !== undefined && (await isSignedIn(request, parts))) return { location: return_to, setCookies: [] }
      throw new GatewayError('ERR_SIGN_IN_EXPIRED', why ?? 'the "state" is missing or none of ours')
    }
    const signedIn = await exchange(attempt, callback, parts)
    const record = await describePerson(signedIn, parts)
    return await createSession(record, attempt, return_to, request, parts)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    parts.audit.record('sign_in.failed', { code: error.code, reason: error.message }, request.cause)
    throw new SignInError(error, return_to)
  }
}

/**
 * Why this attempt must not be gone on with; the last check takes it, so that no code is ever sent
 * to the provider twice.
 */
async function whyNotToGoOn(
  attempt: Attempt | undefined,
  request: EndpointRequest,
  parts: SignInParts,
): Promise<string | undefined> {
  if (attempt === undefined) return 'the "state" is missing or none of ours'
  if (attempt.origin !== request.externalUrl.origin) return 'the sign-in was begun at another of our origins'
  // A code goes to whoever issued it, and to nobody else (mix-up: RFC 9700 §4.4).
  if (attempt.audience !== parts.sessions.audience)
    return 'the sign-in was begun at another provider, or as another client'
  if (isExpired(attempt, parts.clock.now())) return 'the sign-in took too long'
  if (!isBoundTo(attempt, request.cookie, parts.cookie))
    return `the sign-in was begun in another browser, or under another address than ${attempt.origin}, which is external_url; or its cookie is gone`
  const isFirst = await parts.store.takeOnce(`sign-in:${attempt.id}`, signInLifetimeMs)
  return isFirst ? undefined : 'this callback has been used before'
}

function exchange(attempt: Attempt, callback: URL, parts: SignInParts): Promise<SignedIn> {
  const { nonce, code_verifier, begun_at } = attempt
  const state = onlyValue(callback.searchParams, 'state') ?? ''
  return parts.provider.exchangeCode(callback, { state, nonce, code_verifier, begun_at })
}

/**
 * The ID Token says who; names, e-mail and fields come from userinfo, whose `sub` must be the same.
 */
async function describePerson(
  { tokens, idToken }: SignedIn,
  parts: SignInParts,
): Promise<Omit<SessionRecord, 'created_at' | 'absolute_expires_at'>> {
  const userinfo = await parts.provider.userinfo(tokens.access_token, idToken.sub)
  if (userinfo.kind === 'unauthorized')
    throw new GatewayError('ERR_SIGN_IN_ANSWER', 'userinfo does not accept the access token that was just issued')
  const names = parts.provider.config.idTokenClaims
  const fromIdToken = { names, claims: claimsOfIdToken(tokens.id_token, names) }
  const claims = claimsOfSession(userinfo.claims, idToken, fromIdToken)
  return { ...idToken, tokens, claims, userinfo_read_at: parts.clock.now() }
}

async function createSession(
  record: Omit<SessionRecord, 'created_at' | 'absolute_expires_at'>,
  attempt: Attempt,
  return_to: string,
  request: EndpointRequest,
  parts: SignInParts,
): Promise<Redirect> {
  const begun = attempt.begun_at_store ?? attempt.begun_at
  const id = await parts.sessions.create({ ...record, origin: attempt.origin }, begun, request.cause)
  if (id === undefined)
    throw new GatewayError('ERR_SIGN_IN_ENDED', 'a logout token for this session came before the callback')
  await endPrevious(request, parts)
  return { location: return_to, setCookies: [parts.cookie.set(id), ...forgetAttempts(request.cookie, parts.cookie)] }
}

/**
 * A browser has one session. The one it had is ended here only: at the provider both may be the
 * same one.
 */
async function endPrevious(request: EndpointRequest, parts: SignInParts): Promise<void> {
  const previous = parts.cookie.read(request.cookie)
  if (previous === undefined) return
  const key = sessionKey(previous)
  parts.expiredCookies.add(key)
  await parts.endings.endOne(key, 'new_sign_in', request.cause).catch((error: unknown) => {
    parts.log.warn('session.previous_not_ended', { reason: reason(error) })
  })
}
