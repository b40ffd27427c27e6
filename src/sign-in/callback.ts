import { inSettingsOf } from '../config/provider-setting.ts'
import { GatewayError, printable } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import { signInUrl } from '../core/return-to.ts'
import { signInLifetimeMs } from '../core/sign-in-lifetime.ts'
import type { StepUp } from '../core/step-up.ts'
import { registrationHeader } from '../device/device-endpoints.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import { hostName } from '../http/request-target.ts'
import { clearCache, cookies, redirect, type Redirect, type Response, withHeaders } from '../http/response.ts'
import { pageContext } from '../pages/pages.ts'
import { claimsOfIdToken } from '../provider/id-token.ts'
import { stateOf } from '../provider/jwt-response.ts'
import type { SignedIn } from '../provider/provider.ts'
import { emailEndedSince, emailOf } from '../session/people/email-endings.ts'
import { withApiClaims } from '../session/record/api-claims.ts'
import { claimsOfSession, type NewRecord, sessionKey, type SignInClient } from '../session/record/record.ts'
import { createKey, type MadeKey } from './access-keys.ts'
import { sealForFrame } from './frame.ts'
import { endOthers, endPrevious, endReplaced } from './previous-sessions.ts'
import { returnToOrHome, onlyValue } from './query.ts'
import type { SignInParts } from './sign-in-parts.ts'
import { afterSignIn, challengeOfFrame, goToProvider, isSignedIn } from './sign-in.ts'
import {
  expireTransactions,
  isBoundTo,
  isExpired,
  isReplaced,
  type SignInTransaction,
  transactionFromState,
  redirectUri,
  type WantedKey,
} from './transaction.ts'

/** Why a callback is rejected. */
type Rejection = { readonly code: 'ERR_SIGN_IN_EXPIRED' | 'ERR_SIGN_IN_COOKIE'; readonly why: string }

/** The person has too many sessions, and has to end one of them first. */
class TooManySessionsError extends GatewayError {
  readonly person: Pick<NewRecord, 'iss' | 'sub' | 'sid'>

  constructor({ iss, sub, sid }: Pick<NewRecord, 'iss' | 'sub' | 'sid'>) {
    super('ERR_TOO_MANY_SESSIONS', 'the person has as many sessions as session.max_per_person allows')
    this.person = { iss, sub, ...(sid !== undefined && { sid }) }
  }
}

/** A failed sign-in. `returnTo` is the page for a new one. */
class SignInError extends GatewayError {
  readonly returnTo: string
  /** The reference of the kept request that waits for a sign-in. */
  readonly kept: string | undefined
  readonly stepUp: StepUp | undefined
  /** The person who has to end a session first. */
  readonly tooManyOf: TooManySessionsError['person'] | undefined

  constructor(cause: GatewayError, returnTo: string, { kept, stepUp }: Pick<SignInTransaction, 'kept' | 'stepUp'>) {
    super(cause.code, cause.message, { cause: cause.cause })
    this.returnTo = returnTo
    this.kept = kept
    this.stepUp = stepUp
    this.tooManyOf = cause instanceof TooManySessionsError ? cause.person : undefined
  }
}

/** Without `session`, the person was signed in already, or a new sign-in begins. */
type AfterSignIn = Redirect & {
  readonly session?: SessionKey
  readonly beginsAgain?: boolean
  /** The code with which a frame gets the session. The browser gets no cookie. */
  readonly codeForFrame?: string
  /** The key that the sign-in has made in place of a session. */
  readonly key?: MadeKey
}

/** `GET callback`: the browser returns from the provider. */
export async function callback(request: EndpointRequest, parts: SignInParts): Promise<Response> {
  parts.returns.noteReturned()
  try {
    const next = await finishSignIn(request, parts)
    if (next.beginsAgain === true) return redirect(next)
    if (next.key !== undefined)
      return withHeaders(parts.pages.keyMade(next.key, parts.prefix, request), cookies(next.setCookies))
    if (next.codeForFrame !== undefined) return parts.pages.signedInForFrame(next.codeForFrame, parts.prefix, request)
    // The browser must not keep pages of another session.
    const isBound = next.session !== undefined && parts.boundCookie.isOn
    const headers = { ...clearCache, ...(isBound && registrationHeader(next.session, parts)) }
    if (!parts.cookie.isStrict) return redirect(next, headers)
    const page = parts.pages.redirectPage(next.location, request, { signedIn: true })
    return withHeaders(page, { ...headers, ...cookies(next.setCookies) })
  } catch (error) {
    if (!(error instanceof SignInError)) throw error
    const { code, returnTo, kept, stepUp, tooManyOf } = error
    if (tooManyOf !== undefined) return await askWhichToEnd(tooManyOf, error, request, parts)
    // A callback can be used only once, so a retry begins a new sign-in.
    const retry = signInUrl(parts.prefix, returnTo, { kept, stepUp })
    // The person may have chosen the wrong provider, and chooses again next time.
    const setCookies = parts.providerCookie.expire(request.cookie)
    return parts.pages.refusal(code, {
      ...pageContext(request),
      asPage: true,
      returnTo,
      kept,
      stepUp,
      retry,
      setCookies,
    })
  }
}

/**
 * The page with the sessions of the person, of which a button ends one and begins the sign-in
 * again. The proof of the sign-in is in a cookie.
 */
async function askWhichToEnd(
  person: TooManySessionsError['person'],
  { code, returnTo, kept, stepUp }: SignInError,
  request: EndpointRequest,
  { personSessions, refusedSignIns, pages, prefix }: SignInParts,
): Promise<Response> {
  const { refused, setCookie } = refusedSignIns.prove(person)
  const list = await personSessions.list(refused)
  const signIn = signInUrl(prefix, returnTo, { kept, stepUp })
  return withHeaders(pages.tooManySessions(list, { code, prefix, signIn }, request), cookies([setCookie]))
}

/**
 * Finishes a sign-in. Each step needs the result of the previous one: the transaction, opened from
 * `state` and bound to this browser → the code, exchanged with the *configured* redirect URI →
 * UserInfo → a new session id.
 * @throws {SignInError} the reason, and the page for a new sign-in
 */
async function finishSignIn(request: EndpointRequest, parts: SignInParts): Promise<AfterSignIn> {
  let transaction: SignInTransaction | undefined
  let return_to = '/'
  try {
    const response = await authorizationResponse(new URL(request.url, request.externalUrl), parts)
    const callback = new URL(`${redirectUri(request.externalUrl, parts.prefix)}?${response}`)
    const state = stateOf(callback.searchParams, parts.provider.config.response_mode)
    transaction = transactionFromState(state, parts.keyring)
    return_to = returnToOrHome(transaction?.return_to, request.externalUrl, parts)
    const rejection = transaction && (await rejectCallback(transaction, request, parts))
    if (transaction === undefined || rejection !== undefined) {
      // The person may have reloaded the page, or signed in with another tab. A person who is
      // signed in continues.
      if (transaction !== undefined && (await isSignedIn(request, parts)))
        return { location: afterSignIn({ ...transaction, return_to }, parts), setCookies: [] }
      const isMissing = rejection?.code === 'ERR_SIGN_IN_COOKIE'
      if (transaction !== undefined && isMissing && isReplaced(transaction, request.cookie, parts.cookie))
        return { ...(await goToProvider(transaction, request, parts)), beginsAgain: true }
      const { code, why } = rejection ?? unknownState(state, parts)
      throw new GatewayError(code, why)
    }
    const { nonce, code_verifier, begun_at, stepUp, key: wanted } = transaction
    const isOffline = wanted !== undefined
    const checks = { state: state ?? '', nonce, code_verifier, begun_at, stepUp, isOffline }
    const signedIn = await parts.provider.exchangeCode(callback, checks)
    if (wanted !== undefined) return await finishKey(wanted, signedIn, transaction, request, parts)
    const record = await describePerson(signedIn, parts)
    return await createSession(record, transaction, return_to, request, parts)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const why = inSettingsOf(parts.provider.config, error.message)
    const person = error instanceof TooManySessionsError ? error.person : {}
    parts.audit.record('sign_in.failed', { code: error.code, reason: why, ...person }, request.cause)
    throw new SignInError(error, return_to, transaction ?? {})
  }
}

/**
 * Why a transaction may not continue, if so. The last check marks it as used, so that no code is
 * sent to the provider twice.
 */
async function rejectCallback(
  transaction: SignInTransaction,
  request: EndpointRequest,
  parts: SignInParts,
): Promise<Rejection | undefined> {
  const expired = (why: string): Rejection => ({ code: 'ERR_SIGN_IN_EXPIRED', why })
  if (transaction.origin !== request.externalUrl.origin)
    return expired('the sign-in began at another origin of the gateway')
  // A code must be sent only to the provider that issued it (mix-up attacks, RFC 9700 §4.4).
  if (transaction.audience !== parts.sessions.audience)
    return expired('the sign-in began at another provider, or as another client')
  if (isExpired(transaction, parts.clock.now())) return expired('the sign-in took too long')
  if (!isBoundTo(transaction, request.cookie, parts.cookie))
    return {
      code: 'ERR_SIGN_IN_COOKIE',
      why: `the cookie of the sign-in is missing: ${causeOfLostCookie(transaction)}`,
    }
  const isFirst = await parts.store.takeOnce(`sign-in:${transaction.id}`, signInLifetimeMs)
  return isFirst ? undefined : expired('this callback has been used before')
}

function causeOfLostCookie({ origin, isOverHttp }: SignInTransaction): string {
  return isOverHttp === true
    ? `the sign-in began over http, where browsers keep no cookie with Secure; let the proxy redirect http to ${origin} (external_url), and add it to trusted_proxies if TLS ends there`
    : `the sign-in began in another browser or at another address than ${origin} (external_url), or the cookie was deleted`
}

/** Why a `state` belongs to no transaction. */
function unknownState(state: string | undefined, { hasGeneratedKeys }: SignInParts): Rejection {
  const isSealed = state !== undefined && state.length >= shortestSealedState && /^[\w-]+$/.test(state)
  const why = !isSealed
    ? 'the "state" is missing or not from a gateway: the page was not opened by a sign-in'
    : hasGeneratedKeys
      ? 'the "state" is from another process: without session.keys each process has keys of its own; set session.keys and session.store.redis for several replicas; after a restart of one process, ignore this'
      : 'the "state" is from another gateway, or was sealed with a key that is not in session.keys: compare session.keys of all replicas'
  return { code: 'ERR_SIGN_IN_EXPIRED', why }
}

/** In characters. A sealed transaction has some 300. */
const shortestSealedState = 200

/**
 * The record of the person: identified by the ID Token, with the claims of UserInfo of the same
 * `sub`, and those of the APIs of `claims_from`.
 */
async function describePerson({ tokens, idToken }: SignedIn, parts: SignInParts): Promise<NewRecord> {
  const userinfo = await parts.provider.userinfo(tokens, idToken.sub)
  if (userinfo.kind === 'unauthorized')
    throw new GatewayError('ERR_SIGN_IN_RESPONSE', 'UserInfo rejects the access token that was just issued')
  const { idTokenClaims: names, renamedClaims, claimsFrom } = parts.provider.config
  const fromIdToken = { names, claims: claimsOfIdToken(tokens.id_token) }
  const claims = claimsOfSession(userinfo.claims, idToken, fromIdToken, renamedClaims)
  if (claimsFrom.length === 0) return { ...idToken, tokens, claims, userinfo_read_at: parts.clock.now() }
  const subject = { sub: idToken.sub, access_token: tokens.access_token, claims, isWaiting: true }
  const readings = await parts.provider.apis.read(claimsFrom, subject)
  const now = parts.clock.now()
  const withApis = withApiClaims(claims, claimsFrom, readings, undefined, now)
  return { ...idToken, tokens, ...withApis, userinfo_read_at: now }
}

/** The browser gets a page with the key, and keeps its session. */
async function finishKey(
  wanted: WantedKey,
  { tokens, idToken }: SignedIn,
  transaction: SignInTransaction,
  request: EndpointRequest,
  parts: SignInParts,
): Promise<AfterSignIn> {
  // No order about the session at the provider is one about the key.
  const { sid: _, session_expires_at: _end, ...who } = idToken
  const record = await describePerson({ tokens, idToken: who }, parts)
  const begun = transaction.begun_at_store ?? transaction.begun_at
  const signed_in_with = clientOf(request)
  const key = await createKey(wanted, { ...record, origin: transaction.origin, signed_in_with }, begun, request, parts)
  await rejectEndedEmail(key.session, record, begun, request, parts)
  return { key, location: transaction.return_to, setCookies: expireTransactions(request.cookie, parts.cookie) }
}

async function createSession(
  record: NewRecord,
  transaction: SignInTransaction,
  return_to: string,
  request: EndpointRequest,
  parts: SignInParts,
): Promise<AfterSignIn> {
  const begun = transaction.begun_at_store ?? transaction.begun_at
  const signed_in_with = clientOf(request)
  const challenge = challengeOfFrame(return_to, parts)
  const whole = { ...record, origin: transaction.origin, browser_cookies: [], signed_in_with }
  const created = await parts.personSessions.create({
    sub: record.sub,
    replaced: challenge === undefined ? ownSessions(request, parts) : [],
    create: () => parts.sessions.create(whole, begun, request.cause),
    cause: request.cause,
  })
  if (created.kind === 'refused') throw new TooManySessionsError(record)
  if (created.kind === 'ended')
    throw new GatewayError('ERR_SIGN_IN_ENDED', 'a Logout Token or a later sign-in ended this session meanwhile')
  const { id } = created
  await rejectEndedEmail(sessionKey(id), record, begun, request, parts)
  // The sessions of the window stay: it may be that of another person.
  if (challenge !== undefined)
    return { location: return_to, setCookies: [], codeForFrame: sealForFrame({ id, challenge }, parts) }
  const previous = await endPrevious(sessionKey(id), record, request, parts)
  const { personCookie, kept } = parts
  // What another person entered in this browser is deleted first. The page says so.
  const [other] = kept.ofOthers(personCookie.tagOf(record.sub), request.cookie)
  // Its cookie is for the host of this callback.
  const next = other === undefined ? { return_to, kept: transaction.kept } : { return_to: '/', kept: other.reference }
  return {
    session: sessionKey(id),
    location: afterSignIn(next, parts),
    setCookies: [
      ...previous,
      ...(await endFormer(request, parts)),
      parts.cookie.set(id),
      ...(kept.isOn ? [personCookie.set(record.sub)] : []),
      ...(parts.others.length > 0
        ? [...(await endOthers(request, parts)), parts.providerCookie.set(parts.provider.config.name)]
        : []),
      ...expireTransactions(request.cookie, parts.cookie),
    ],
  }
}

/** The sessions that the browser has: a new one replaces them. */
function ownSessions({ cookie: header }: EndpointRequest, { cookie }: SignInParts): readonly SessionKey[] {
  return [cookie.read(header), cookie.readFormer(header)].flatMap((id) => (id === undefined ? [] : sessionKey(id)))
}

/** The longest `User-Agent` that a session keeps, in characters. Those of browsers are shorter. */
const maxUserAgentLength = 256

function clientOf({ cause, userAgent }: EndpointRequest): SignInClient {
  const user_agent = userAgent === undefined ? undefined : printable(userAgent.slice(0, maxUserAgentLength))
  return { address: cause.client, ...(user_agent !== undefined && { user_agent }) }
}

/**
 * Ends the new session when the sessions of the e-mail address of its person, which is known only
 * now, have ended since the sign-in began. The address need not be verified: at worst, the person
 * signs in once more.
 * @throws {GatewayError} `ERR_SIGN_IN_ENDED`
 */
async function rejectEndedEmail(
  session: SessionKey,
  { claims }: Pick<NewRecord, 'claims'>,
  begun_at: number,
  request: EndpointRequest,
  { provider, store, sessions, endings }: SignInParts,
): Promise<void> {
  const email = emailOf(claims, provider.config.renamedClaims)
  const by = email === undefined ? undefined : await emailEndedSince(email, sessions.audience, begun_at, store)
  if (by === undefined) return
  await endings.endOne(session, by, request.cause)
  throw new GatewayError('ERR_SIGN_IN_ENDED', 'all sessions of this e-mail address have ended before the callback')
}

/**
 * Ends the session from before `session.cookie.domain` was set or removed. Otherwise it would be
 * valid again after the next change.
 */
async function endFormer(request: EndpointRequest, parts: SignInParts): Promise<readonly string[]> {
  const id = parts.cookie.readFormer(request.cookie)
  if (id !== undefined) await endReplaced(sessionKey(id), request, parts)
  return parts.cookie.expireFormer(request.cookie, hostName(request.host))
}

type Parts = Pick<SignInParts, 'keyring' | 'prefix' | 'provider'>

/** The longest response, in characters. A longer one, sealed, would not fit into a URL. */
const longestResponse = 8_000
const sealContext = 'gatehouse authorization response'

/**
 * `POST callback`, with `response_mode: form_post`. Redirects to `GET callback` with the form,
 * sealed, in the query: with a form from a page of another site, a browser sends no `Lax` cookie.
 * The code appears in no URL, no history and no log.
 * @throws {GatewayError} `ERR_SIGN_IN_RESPONSE` when the form is too long
 */
export async function callbackPost(request: Pick<EndpointRequest, 'form'>, parts: Parts): Promise<Response> {
  const form = request.form.toString()
  if (form.length > longestResponse)
    throw new GatewayError(
      'ERR_SIGN_IN_RESPONSE',
      `the authorization response has ${form.length} characters, more than ${longestResponse}`,
    )
  const response = parts.keyring.seal(form, sealContext).toString('base64url')
  return redirect({ location: `${parts.prefix}callback?response=${response}`, setCookies: [] })
}

/**
 * The parameters of the authorization response, decrypted; empty when it came in another response
 * mode.
 * @throws {GatewayError} when they cannot be decrypted
 */
function authorizationResponse(callback: URL, { keyring, provider }: Parts): Promise<URLSearchParams> {
  if (!provider.config.response_mode.startsWith('form_post')) return provider.decryptResponse(callback.searchParams)
  const sealed = onlyValue(callback.searchParams, 'response') ?? ''
  const form = keyring.open(Buffer.from(sealed, 'base64url'), sealContext)?.toString('utf8') ?? ''
  return provider.decryptResponse(new URLSearchParams(form))
}
