import { GatewayError, reason } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import { sessionsPath, signInUrl } from '../core/return-to.ts'
import { type EndpointRequest, isFromThisSite } from '../http/endpoint-request.ts'
import { cookies, redirect, type Response, withHeaders } from '../http/response.ts'
import type { ShownNewKey } from '../pages/key-list.ts'
import { pageContext } from '../pages/pages.ts'
import { viewerOf } from '../session/cookies/viewer.ts'
import { type NewRecord, sessionKey } from '../session/record/record.ts'
import type { SignInParts } from './sign-in-parts.ts'
import { goToProvider, isElsewhere } from './sign-in.ts'
import type { WantedKey } from './transaction.ts'

/** How long ago the person may have authenticated when the sign-in for a key begins, in seconds. */
const freshSeconds = 60
const keyName = /^[^\s\p{C}](?:[^\p{C}\u2028\u2029]{0,62}[^\s\p{C}])?$/u

/** A key that is shown once. Times are in ms since the epoch. */
export interface MadeKey extends ShownNewKey {
  readonly session: SessionKey
  readonly upstream: string
}

/**
 * `POST keys`: begins a sign-in that makes a key for an upstream. The session of the browser stays.
 * @throws {GatewayError} `ERR_CROSS_SITE` for a page of another origin; `ERR_REQUEST_MALFORMED` for
 * a form that the page does not have; `ERR_STORE_UNAVAILABLE`, `ERR_PROVIDER_UNAVAILABLE`
 */
export async function makeKey(request: EndpointRequest, parts: SignInParts): Promise<Response> {
  if (!isFromThisSite(request)) throw new GatewayError('ERR_CROSS_SITE', 'a page of another origin makes a key')
  const page = sessionsPath(parts.prefix)
  const viewer = await viewerOf(request, parts)
  if (viewer === undefined)
    return redirect({ location: signInUrl(parts.prefix, page), setCookies: parts.boundCookie.expire(request.cookie) })
  if (typeof viewer === 'string') return parts.pages.refusal(viewer, { ...pageContext(request), asPage: true })
  if (isElsewhere(request, parts))
    return redirect({ location: new URL(page, parts.site?.signInUrl).href, setCookies: [] })

  const [name, upstream] = [request.form.get('name')?.trim() ?? '', request.form.get('upstream') ?? '']
  if (!parts.personSessions.isForNewKey(viewer, request.form.get('form') ?? ''))
    throw new GatewayError('ERR_CROSS_SITE', 'the form for a new key is not from the page of this browser')
  if (!keyName.test(name)) throw new GatewayError('ERR_REQUEST_MALFORMED', 'a key needs a name of 1 to 64 characters')
  const { acr_values } = upstreamFor(upstream, viewer.session.record, request, parts).keys
  const stepUp = { max_age: freshSeconds, ...(acr_values && { acr_values }) }
  const key = { name, upstream, sub: viewer.sub }
  const next = await goToProvider({ return_to: page, key, stepUp }, request, parts)
  // A redirect after a form must not leave this origin (CSP form-action), and the sign-in does.
  return withHeaders(parts.pages.redirectPage(next.location, request), cookies(next.setCookies))
}

/**
 * Stores the key that the person wanted.
 * @param record of the person who has signed in
 * @throws {GatewayError} `ERR_KEY_NOT_MADE`; `ERR_SIGN_IN_ENDED` when an order to end all sessions
 * of the person has arrived since the sign-in began
 */
export async function createKey(
  { name, upstream, sub }: WantedKey,
  record: NewRecord,
  begun: number,
  request: EndpointRequest,
  parts: SignInParts,
): Promise<MadeKey> {
  try {
    if (record.sub !== sub) throw notMade('another person has signed in at the provider')
    const { keys, address } = upstreamFor(upstream, record, request, parts)
    const key = { name, upstream, lifetime: keys.forAtMostMs, idle_timeout: keys.idleMs }
    const created = await parts.personSessions.create({
      sub,
      replaced: [],
      create: () => parts.sessions.create({ ...record, key }, begun, request.cause),
      key: { upstream, count: keys.perPerson },
      cause: request.cause,
    })
    if (created.kind === 'refused') throw notMade('the person has as many keys as keys.per_person allows')
    const stored = created.kind === 'created' ? await parts.sessions.read(sessionKey(created.id)) : undefined
    if (created.kind === 'ended' || stored === undefined)
      throw new GatewayError('ERR_SIGN_IN_ENDED', 'all sessions of this person have ended before the callback')
    const { id } = created
    const endsAt = stored.record.absolute_expires_at
    return { id, session: stored.key, name, upstream, address, header: keys.header, endsAt }
  } catch (error) {
    revokeUnused(record, parts).catch((cause: unknown) =>
      parts.log.debug('key.tokens_not_revoked', { reason: reason(cause) }),
    )
    throw error
  }
}

/** Unless sessions and other keys of the person could end with the token: see `revokeTokens`. */
async function revokeUnused(
  { sub, tokens: { refresh_token } }: Pick<NewRecord, 'sub' | 'tokens'>,
  { provider, personSessions }: Pick<SignInParts, 'provider' | 'personSessions'>,
): Promise<void> {
  if (refresh_token !== undefined && !(await personSessions.hasAny(sub))) await provider.revoke(refresh_token)
}

function upstreamFor(
  name: string,
  record: Pick<NewRecord, 'claims'>,
  { cause }: EndpointRequest,
  { keysFor, provider }: Pick<SignInParts, 'keysFor' | 'provider'>,
) {
  const upstream = keysFor(record, provider.config.name, cause.client).find((each) => each.name === name)
  if (upstream === undefined) throw notMade('the person may make no key for this upstream')
  return upstream
}

function notMade(why: string): GatewayError {
  return new GatewayError('ERR_KEY_NOT_MADE', why)
}
