import type { GatewayConfig, RuleConfig, UpstreamConfig } from '../config/model.ts'
import type { Clock } from '../core/clock.ts'
import { matchesAny } from '../core/name-pattern.ts'
import { maxReturnToLength, signInUrl } from '../core/return-to.ts'
import { cookieNames } from '../http/cookies.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import { droppedTexts, type MissingHeader } from '../identity/claim-headers.ts'
import type { Log } from '../observe/log.ts'
import { type Unmet, unmetRequirement } from '../rules/requirement.ts'
import { createRouteTable, type Route } from '../rules/route-table.ts'
import { foreignCookies } from '../session/browser-cookies.ts'
import type { SessionCookie } from '../session/cookie.ts'
import type { StoredSession } from '../session/record.ts'
import { cookiesOf } from '../session/session-cookies.ts'
import type { SignedIdentities } from '../signing/signed-identity.ts'
import type { Admission, Pass } from './admission.ts'
import { preflightFields } from './cors.ts'
import { crossSiteReason } from './cross-site.ts'
import { HeadersForUpstream } from './headers-for-upstream.ts'
import type { EndedCookie, Identity } from './identify.ts'

/**
 * THE decision. Returns no promise when the session is in memory and needs no refresh, because this
 * is the most frequent case.
 */
export type Admit = (facts: RequestFacts) => Admission | Promise<Admission>

export interface AdmitParts {
  /** Identifies the sender of a `Cookie` header. */
  readonly identify: (cookieHeader: string | undefined) => Identity | Promise<Identity>
  readonly cookie: Pick<SessionCookie, 'expireAll' | 'expireWherever' | 'isStrict'>
  readonly identities: Pick<SignedIdentities, 'isReady' | 'of'>
  readonly clock: Clock
  readonly log: Log
}

const nothing: readonly string[] = []
/** No sign-in that begins after a request is complete within this time, in ms. */
const fastestSignInMs = 1_000

export function createAdmit(config: Pick<GatewayConfig, 'upstreams' | 'reservedPrefix'>, parts: AdmitParts): Admit {
  const routes = createRouteTable(config.upstreams)
  const headers = new HeadersForUpstream(parts)
  const personal = config.upstreams.flatMap(({ logout }) => logout.cookies.map(({ names }) => names))
  const signOut = { kind: 'sign_out', location: `${config.reservedPrefix}sign-out` } as const

  function admit(facts: RequestFacts): Admission | Promise<Admission> {
    const route = routes.route(facts.host, facts.method, facts.target, facts.forwarded.clientAddress)
    if (route === undefined)
      return {
        kind: 'no_route',
        why: `no upstream serves ${facts.host} at this path: compare hosts and path of the upstreams`,
      }
    const { cors } = route.upstream
    if (cors !== undefined && facts.isPreflight === true)
      return { kind: 'preflight', fields: preflightFields(cors, facts.origin) }
    if (!route.isLogout) return access(facts, route)
    if (!route.upstream.logout.passFirst) return signOut
    const admission = access(facts, route)
    return admission instanceof Promise ? admission.then(signOutAfter) : signOutAfter(admission)
  }

  function signOutAfter(first: Admission): Admission {
    // Without access, the application does not receive the request, and the person is signed out.
    return first.kind === 'pass' ? { ...signOut, first } : signOut
  }

  function access(facts: RequestFacts, { upstream, rule }: Route): Admission | Promise<Admission> {
    if (rule.access === 'public')
      return {
        kind: 'pass',
        upstream,
        identity: headers.forAnybody(facts, upstream, rule),
        session: undefined,
        caching: 'anybody',
      }
    const identity = parts.identify(facts.cookie)
    return identity instanceof Promise
      ? identity.then((found) => decide(facts, upstream, rule, withKey(found, upstream)))
      : decide(facts, upstream, rule, withKey(identity, upstream))
  }

  /** Without a key, nobody can be named to an upstream that gets a signed identity. */
  function withKey(identity: Identity, { signedIdentity }: UpstreamConfig): Identity {
    if (signedIdentity === undefined || identity.kind !== 'signed_in' || parts.identities.isReady(signedIdentity))
      return identity
    return { kind: 'unavailable', code: 'ERR_STORE_UNAVAILABLE', why: 'no signing key was read from the store yet' }
  }

  function decide(facts: RequestFacts, upstream: UpstreamConfig, rule: RuleConfig, identity: Identity): Admission {
    if (identity.kind === 'signed_in') return admitPerson(facts, upstream, rule, identity.session)
    // Optional paths stay open when the store is unavailable. The request then has no identity.
    if (rule.access === 'optional') {
      const anybody = headers.forAnybody(facts, upstream, rule)
      const pass = { kind: 'pass', upstream, identity: anybody, session: undefined, caching: 'varies' } as const
      if (identity.kind !== 'anonymous' || identity.ended === undefined) return pass
      // The application must not take anybody for the person whose session has ended.
      const withheldCookies = cookieNames(facts.cookie, '').filter((name) => matchesAny(personal, name))
      return { ...pass, withheldCookies, expire: expiry(identity.ended, facts, upstream) }
    }
    if (identity.kind === 'unavailable') return identity
    const mayRedirect =
      !facts.isFrame && (rule.unauthenticated === 'redirect' || (rule.unauthenticated === 'auto' && facts.isPage))
    const sessionEnded = identity.staleCookie
    const signIn = signInUrl(config.reservedPrefix, undefined)
    // After a sign-in the browser uses GET, which must not go to the URL that a form was sent to.
    if (mayRedirect && facts.isPage && facts.method === 'POST') {
      const form = { upstream, expire: identity.ended && expiry(identity.ended, facts, upstream) }
      return { kind: 'sign_in', location: signIn, setCookies: nothing, sessionEnded, leavesPage: sessionEnded, form }
    }
    // The browser may have the cookie of a new session already.
    const isStale = sessionEnded && identity.ended?.isExpired() !== true
    identity.ended?.noteExpired()
    const setCookies = isStale ? expireAll(facts, upstream) : nothing
    if (!mayRedirect) return { kind: 'unauthorized', location: signIn, setCookies, sessionEnded }
    const return_to = facts.target.path + facts.target.query
    // The sign-in would ignore a longer return_to, and such a long URL may exceed the limit for a
    // request head.
    if (return_to.length > maxReturnToLength) return { kind: 'sign_in', location: signIn, setCookies, sessionEnded }
    if (parts.cookie.isStrict && isLinkOnOtherSite(facts)) return { kind: 'reload', location: return_to }
    if (sessionEnded && facts.isPage && facts.secFetchSite === 'same-origin') {
      const location = signInUrl(config.reservedPrefix, return_to, { again: true })
      return { kind: 'sign_in', location, setCookies, sessionEnded, leavesPage: true }
    }
    return { kind: 'sign_in', location: signInUrl(config.reservedPrefix, return_to), setCookies, sessionEnded }
  }

  /**
   * Returns what expires the cookie when the response begins. A late response does not expire it,
   * because the browser may have signed in again at another process.
   */
  function expiry(ended: EndedCookie, facts: RequestFacts, upstream: UpstreamConfig): () => readonly string[] {
    const end = performance.now() + fastestSignInMs
    return () => {
      if (performance.now() > end || ended.isExpired()) return nothing
      ended.noteExpired()
      return expireAll(facts, upstream)
    }
  }

  function expireAll({ cookie, target }: RequestFacts, { logout }: UpstreamConfig): readonly string[] {
    return parts.cookie.expireAll(cookie, logout.cookies, { path: target.path })
  }

  function admitPerson(
    facts: RequestFacts,
    upstream: UpstreamConfig,
    rule: RuleConfig,
    session: StoredSession,
  ): Admission {
    const crossSite = crossSiteReason(facts, upstream)
    if (crossSite !== undefined) return { kind: 'cross_site', why: crossSite, upstream, rule, session }
    const unmet = unmetOf(rule, facts, session)
    if (unmet !== undefined && rule.mode !== 'observe')
      return { kind: 'forbidden', ...unmet, setCookies: nothing, upstream, rule, session }
    const sent = headers.forPerson(facts, upstream, rule, session)
    if ('missing' in sent)
      return { kind: 'forbidden', ...withoutHeader(sent), setCookies: nothing, upstream, rule, session }
    const foreign = withoutForeign(facts, upstream, session)
    // All requests of signed-in people get an object of the same shape, and no copy of another one,
    // because both make the hot path slower.
    return {
      kind: 'pass',
      upstream,
      identity: sent.fields,
      dropped: sent.dropped,
      session: session.key,
      caching: upstream.cache,
      cookies: upstream.sessionCookies.length > 0 ? cookiesOf(session.record, upstream.name) : undefined,
      withheldCookies: foreign?.withheldCookies,
      expire: foreign?.expire,
      observed: unmet && { ...unmet, upstream, rule, session },
    }
  }

  function unmetOf(
    rule: RuleConfig,
    { method, forwarded }: RequestFacts,
    { record }: StoredSession,
  ): Unmet | undefined {
    if (rule.require.length === 0) return undefined
    const { clientAddress } = forwarded
    return unmetRequirement(rule, { claims: record.claims, method, clientAddress, now: parts.clock.now() })
  }

  /** Withholds the application cookies of other people, and expires them in the browser. */
  function withoutForeign(
    { cookie, host, target }: RequestFacts,
    { logout }: UpstreamConfig,
    { record }: StoredSession,
  ): Pick<Pass, 'withheldCookies' | 'expire'> | undefined {
    if (personal.length === 0) return undefined
    const withheldCookies = foreignCookies(cookie, record, personal, { host, path: target.path })
    if (withheldCookies.length === 0) return undefined
    const options = { applicationCookies: logout.cookies, kept: record.browser_cookies ?? [] }
    return { withheldCookies, expire: () => parts.cookie.expireWherever(withheldCookies, target.path, options) }
  }

  return admit
}

function withoutHeader({ missing, dropped }: MissingHeader): Unmet {
  const reasons = dropped.filter(({ name }) => name === missing)
  return reasons.length > 0
    ? { code: 'ERR_FORBIDDEN', why: `a required header cannot be sent: ${droppedTexts(reasons).join('; ')}` }
    : { code: 'ERR_CLAIM_ABSENT', why: `the claim for the required header ${missing} is missing` }
}

/**
 * Whether the browser follows a link on another site. For the load that a page of the gateway
 * repeats, the result is `false`, because that page is on this site.
 */
function isLinkOnOtherSite({ method, isPage, secFetchSite }: RequestFacts): boolean {
  return isPage && method === 'GET' && secFetchSite === 'cross-site'
}
