import type { GatewayConfig } from '../config/model/gateway.ts'
import type { ApplicationSignInConfig, UpstreamConfig } from '../config/model/upstream.ts'
import { GatewayError } from '../core/errors.ts'
import { keptUrl, sessionsPath, signInUrl } from '../core/return-to.ts'
import { type EndpointRequest, isFromThisSite } from '../http/endpoint-request.ts'
import { type CanonicalTarget, hostName } from '../http/request-target.ts'
import { redirect, type Response } from '../http/response.ts'
import { asReference } from '../kept-forms/kept-requests.ts'
import { type KeptParts, personIn } from '../kept-forms/send.ts'
import type { Audit } from '../observe/audit.ts'
import type { Pages } from '../pages/pages.ts'
import type { ShownSecret } from '../pages/session-list.ts'
import { applicationSessionOf } from '../session/cookies/application-cookies.ts'
import { changeSession, type Sessions } from '../session/live/live-sessions.ts'
import { personMark, type StoredSession } from '../session/record/record.ts'
import { pathOrHome } from '../sign-in/query.ts'
import { type ApplicationSecrets, type Owner, usernameOf } from './secrets.ts'

export interface OwnSecretParts extends Pick<KeptParts, 'cookie' | 'boundCookie' | 'personCookie'> {
  readonly sessions: KeptParts['sessions'] & Pick<Sessions, 'replace'>
  readonly secrets: ApplicationSecrets
  /** The applications whose people enter a password. */
  readonly asking: readonly AskingUpstream[]
  /** Whether a host serves an upstream. */
  readonly servesAt: (host: string, upstream: UpstreamConfig) => boolean
  /** Whether a target at a host is a logout link of an application. */
  readonly isLogoutLink: (host: string, target: CanonicalTarget) => boolean
  readonly reservedPrefix: string
  /** Whether people have a page with their sessions. */
  readonly showsSessions: boolean
  readonly pages: Pages
  /** The path of the endpoints of the provider. */
  readonly prefix: string
  readonly audit: Audit
}

/** An application whose people enter a password on a page of the gateway. */
export interface AskingUpstream {
  readonly upstream: UpstreamConfig
  readonly signIn: ApplicationSignInConfig
  /** What the page calls it. */
  readonly title: string
}

/** The applications of a configuration whose people enter a password. */
export function askingUpstreams({ upstreams }: Pick<GatewayConfig, 'upstreams'>): readonly AskingUpstream[] {
  return upstreams.flatMap((upstream) => {
    const { name, applicationSignIn: signIn, externalUrl, path } = upstream
    const title = `${name} (${externalUrl.host}${path.replace(/\/$/, '')})`
    return signIn?.password === 'ask' ? [{ upstream, signIn, title }] : []
  })
}

/** Finds the applications for which a password of a person is kept. */
export function createKeptSecrets(
  asking: readonly AskingUpstream[],
  secrets: ApplicationSecrets,
): (audience: string, sub: string) => Promise<readonly ShownSecret[]> {
  return async (audience, sub) => {
    const found = asking.map(async ({ upstream, signIn, title }) =>
      (await secrets.isKept({ audience, sub }, upstream, signIn))
        ? [{ upstream: upstream.name, title, person: personMark(audience, sub) }]
        : [],
    )
    return (await Promise.all(found)).flat()
  }
}

/** The longest name or password, in characters. */
const maxLength = 1024

/** `GET application-sign-in`: asks the signed-in person for the password of an application. */
export async function askForSecret(request: EndpointRequest, parts: OwnSecretParts): Promise<Response> {
  const { pages, prefix, showsSessions } = parts
  const { query } = request
  const asking = askingIn(query, request, parts)
  const returnTo = returnToIn(query, request, parts)
  const session = await confirmedSession(request, parts)
  if (session === undefined) return redirect({ location: signInUrl(prefix, returnTo), setCookies: [] })
  const username = asking && usernameOf(asking.signIn, session.record.claims)
  const lacksClaim = username === undefined && asking?.signIn.username !== 'ask'
  if (asking === undefined || lacksClaim) return redirect({ location: returnTo, setCookies: [] })
  const { upstream, signIn, title } = asking
  return pages.applicationSignIn(
    {
      title,
      action: `${prefix}application-sign-in`,
      fields: { upstream: upstream.name, return_to: returnTo, person: markOf(session) },
      username,
      wasRefused: query.get('refused') !== null,
      rememberMs: signIn.rememberMs,
      sessions: showsSessions ? sessionsPath(prefix) : undefined,
    },
    request,
  )
}

/**
 * `POST application-sign-in`: keeps what the person has entered, deletes it, or leaves the sign-in
 * to the person.
 * @throws {GatewayError} `ERR_CROSS_SITE`, `ERR_STORE_UNAVAILABLE`
 */
export async function keepSecret(request: EndpointRequest, parts: OwnSecretParts): Promise<Response> {
  if (!isFromThisSite(request)) throw new GatewayError('ERR_CROSS_SITE', 'a page of another site enters a password')
  const { secrets, prefix } = parts
  const { form } = request
  const asking = askingIn(form, request, parts)
  const returnTo = returnToIn(form, request, parts)
  const session = await confirmedSession(request, parts)
  // Meanwhile another person may have signed in in this browser, who must not get the password.
  if (session === undefined || form.get('person') !== markOf(session) || asking === undefined)
    return redirect({ location: returnTo, setCookies: [] })
  const owner = ownerOf(session)
  const { upstream, signIn } = asking
  if (form.has('remove')) {
    await secrets.drop(owner, upstream)
    record('removed', session, asking, request, parts)
    return redirect({ location: sessionsPath(prefix), setCookies: [] })
  }
  const [username = '', password = ''] = ['username', 'password'].map((name) => form.get(name) ?? '')
  const isComplete = password !== '' && (signIn.username !== 'ask' || username !== '')
  const isEntered = isComplete && Math.max(username.length, password.length) <= maxLength
  if (isEntered) {
    await secrets.keep(owner, upstream, signIn, { password, ...(signIn.username === 'ask' && { username }) })
    record('kept', session, asking, request, parts)
  }
  const isLeft = form.has('decline')
  if (isEntered || isLeft)
    await changeSession(session.key, parts.sessions, (known) => withLeft(known, upstream, isLeft))
  return redirect({ location: returnTo, setCookies: [] })
}

/** Whether the person uses the form of the application, in this session. */
function withLeft(known: StoredSession['record'], { name }: UpstreamConfig, isLeft: boolean): StoredSession['record'] {
  const { stopped: _, ...state } = applicationSessionOf(known, name) ?? {}
  const next = isLeft ? { stopped: true as const } : state
  return { ...known, application_sessions: { ...known.application_sessions, [name]: next } }
}

function record(
  outcome: 'kept' | 'removed',
  { key: session, record: { iss, sub, sid } }: StoredSession,
  { upstream }: AskingUpstream,
  { cause }: EndpointRequest,
  { audit }: OwnSecretParts,
): void {
  audit.record('application.secret', { session, iss, sub, sid, upstream: upstream.name, outcome }, cause)
}

function ownerOf({ audience, record: { sub } }: StoredSession): Owner {
  return { audience, sub }
}

/**
 * The session of a browser. One that may have ended (see `isDoubtful`) does not count until a
 * request for an application has confirmed it.
 */
async function confirmedSession(
  { cookie }: EndpointRequest,
  parts: OwnSecretParts,
): Promise<StoredSession | undefined> {
  const { session } = (await personIn(cookie, parts)) ?? {}
  return session?.isDoubtful === true ? undefined : session
}

/** Names the person in a form. */
function markOf({ audience, record: { sub } }: StoredSession): string {
  return personMark(audience, sub)
}

/**
 * An application at the requested host, because the scripts of an application can send any form to
 * its own host. Passwords for others can be removed only.
 */
function askingIn(
  parameters: URLSearchParams,
  { host }: EndpointRequest,
  { asking, servesAt }: OwnSecretParts,
): AskingUpstream | undefined {
  return asking.find(
    ({ upstream }) =>
      upstream.name === parameters.get('upstream') && (parameters.has('remove') || servesAt(hostName(host), upstream)),
  )
}

/** A page of this origin: of an application, or about a kept form. Otherwise, the start page. */
function returnToIn(parameters: URLSearchParams, { externalUrl }: EndpointRequest, parts: OwnSecretParts): string {
  const value = parameters.get('return_to') ?? ''
  const kept = keptUrl(parts.prefix, '')
  const isKept = value.startsWith(kept) && asReference(value.slice(kept.length)) !== undefined
  return isKept ? value : pathOrHome(value, externalUrl, parts)
}
