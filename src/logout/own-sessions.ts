import { GatewayError } from '../core/errors.ts'
import { sessionsPath, signInUrl } from '../core/return-to.ts'
import { type EndpointRequest, isFromThisSite } from '../http/endpoint-request.ts'
import { cookies, redirect, type Response, withHeaders } from '../http/response.ts'
import { pageContext, type Pages, type SessionsOutcome } from '../pages/pages.ts'
import type { ShownSecret } from '../pages/session-list.ts'
import type { Provider } from '../provider/provider.ts'
import type { RefusedSignIns } from '../session/cookies/gateway-cookies.ts'
import { type SignedInViewer, viewerOf, type ViewerParts } from '../session/cookies/viewer.ts'
import type { Ended } from '../session/live/endings.ts'
import type { SessionsOfAudience } from '../session/live/live-sessions.ts'
import type { KeysFor, KeyUpstream, PersonSessions, Viewer } from '../session/people/person-sessions.ts'
import { endAllAtProvider, type EndAtProviderParts } from './end-at-provider.ts'

export interface OwnSessionsParts extends EndAtProviderParts, ViewerParts {
  readonly provider: EndAtProviderParts['provider'] & Pick<Provider, 'endSessionOrigin' | 'config'>
  readonly sessions: Pick<SessionsOfAudience, 'audience' | 'read'>
  readonly personSessions: Pick<PersonSessions, 'list' | 'listKeys' | 'hasKeys' | 'end'>
  readonly keysFor: KeysFor
  /** Whether people have a page with their sessions. */
  readonly showsSessions: boolean
  /** The applications for which a password of a person is kept. */
  readonly keptSecrets: (audience: string, sub: string) => Promise<readonly ShownSecret[]>
  readonly refusedSignIns: Pick<RefusedSignIns, 'read' | 'take' | 'expire'>
  readonly pages: Pages
  /** The path of the endpoints of the provider. */
  readonly prefix: string
}

/** `GET sessions`: the sessions of the person at this client. Throws `ERR_STORE_UNAVAILABLE`. */
export async function ownSessions(request: EndpointRequest, parts: OwnSessionsParts): Promise<Response> {
  const viewer = await viewerOf(request, parts)
  if (viewer === undefined) {
    // Without the bound cookie, the browser of the session proves its device again.
    const setCookies = parts.boundCookie.expire(request.cookie)
    return redirect({ location: signInUrl(parts.prefix, sessionsPath(parts.prefix)), setCookies })
  }
  if (typeof viewer === 'string') return parts.pages.refusal(viewer, { ...pageContext(request), asPage: true })
  return sessionsPage(viewer, request, parts)
}

/**
 * `POST sessions`: ends the sessions that `session` names, of a person who is signed in, or was
 * just refused a session. The token in the form is derived from a secret of the browser, and leads
 * only to sessions of this person, so forms of other pages or people end nothing.
 * @throws {GatewayError} `ERR_CROSS_SITE` for a page of another origin; `ERR_STORE_UNAVAILABLE`
 */
export async function endOwnSessions(request: EndpointRequest, parts: OwnSessionsParts): Promise<Response> {
  if (!isFromThisSite(request)) throw new GatewayError('ERR_CROSS_SITE', 'a page of another origin ends a session')
  const token = request.form.get('session') ?? ''
  // The browser may have the session of another person at the same time. Without the page, only a
  // refused sign-in has forms.
  const viewer = request.form.has('sign_in') ? undefined : await viewerOf(request, parts)
  if (typeof viewer !== 'object' || !parts.showsSessions) return endAndSignIn(token, request, parts)
  return sessionsPage(viewer, request, parts, outcomeOf(await endEverywhere(viewer, token, request, parts)))
}

function outcomeOf([first, ...others]: readonly Ended[]): SessionsOutcome {
  if (first === undefined) return 'gone'
  if (first.record?.key !== undefined) return others.length > 0 ? 'keysEnded' : 'keyEnded'
  return others.length > 0 ? 'othersEnded' : 'ended'
}

/**
 * Ends sessions here and at the provider, except that of this browser. Otherwise their browsers
 * could sign in again without a question. Returns which have ended.
 */
async function endEverywhere(viewer: Viewer, token: string, { cause }: EndpointRequest, parts: OwnSessionsParts) {
  const ended = await parts.personSessions.end(viewer, token, cause)
  const records = ended.flatMap(({ record }) => record ?? [])
  // The person does not wait for the provider.
  void endAllAtProvider(records, parts, { cause, keptSid: viewer.sid })
  return ended
}

/** Ends sessions of a person who was refused a session, and begins the sign-in again. */
async function endAndSignIn(token: string, request: EndpointRequest, parts: OwnSessionsParts): Promise<Response> {
  const { refusedSignIns, pages, prefix } = parts
  const refused = refusedSignIns.read(request.cookie)
  if (refused !== undefined && (await refusedSignIns.take(refused))) await endEverywhere(refused, token, request, parts)
  // A redirect after a form must not leave this origin (CSP form-action), and the sign-in does.
  const page = pages.redirectPage(signInAgain(request, prefix), request)
  return withHeaders(page, cookies(refusedSignIns.expire(request.cookie)))
}

/** The sign-in that the form names, at the sign-in endpoint in any case. */
function signInAgain({ form }: EndpointRequest, prefix: string): string {
  const query = new URLSearchParams(/\?(.*)$/s.exec(form.get('sign_in') ?? '')?.[1])
  return `${prefix}sign-in?${query.toString()}`
}

async function sessionsPage(
  viewer: SignedInViewer,
  request: EndpointRequest,
  { personSessions, keysFor, pages, provider, prefix, sessions, keptSecrets }: OwnSessionsParts,
  outcome?: SessionsOutcome,
): Promise<Response> {
  const [list, ownKeys, secrets] = await Promise.all([
    personSessions.list(viewer),
    personSessions.listKeys(viewer),
    keptSecrets(sessions.audience, viewer.sub),
  ])
  const { name: providerName } = provider.config
  const all = keysFor(viewer.session.record, providerName, request.cause.client)
  const isFull = ({ name, keys }: KeyUpstream) =>
    ownKeys.keys.filter(({ upstream }) => upstream === name).length >= keys.perPerson
  const full = all.filter(isFull).map(({ name }) => name)
  const keys = { ...ownKeys, upstreams: all.filter((each) => !isFull(each)), full }
  const formTargets = [provider.endSessionOrigin ?? []].flat()
  return pages.sessions(list, { prefix, outcome, keys, secrets, formTargets }, request)
}
