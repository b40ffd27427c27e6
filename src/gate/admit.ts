import type { GatewayConfig, RuleConfig, UpstreamConfig } from '../config/model.ts'
import { maxReturnToLength, signInUrl } from '../core/return-to.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import type { IdentityHeaders } from '../identity/claim-headers.ts'
import type { Log } from '../observe/log.ts'
import { type Unmet, unmetRequirement } from '../rules/requirement.ts'
import { createRouteTable, type Route } from '../rules/route-table.ts'
import type { SessionCookie } from '../session/cookie.ts'
import type { StoredSession } from '../session/record.ts'
import { cookiesOf } from '../session/session-cookies.ts'
import type { Admission } from './admission.ts'
import { crossSiteReason } from './cross-site.ts'
import { HeadersForUpstream } from './headers-for-upstream.ts'
import type { Identity } from './identify.ts'

/**
 * THE decision. Returns no promise when the session is in memory and needs no refresh, because this
 * is the most frequent case.
 */
export type Admit = (facts: RequestFacts) => Admission | Promise<Admission>

export interface AdmitParts {
  /** Identifies the sender of a `Cookie` header. */
  readonly identify: (cookieHeader: string | undefined) => Identity | Promise<Identity>
  readonly cookie: Pick<SessionCookie, 'expireAll' | 'isStrict'>
  readonly log: Log
}

const nothing: readonly string[] = []
/** No sign-in that begins after a request is complete within this time, in ms. */
const fastestSignInMs = 1_000

export function createAdmit(config: Pick<GatewayConfig, 'upstreams' | 'reservedPrefix'>, parts: AdmitParts): Admit {
  const routes = createRouteTable(config.upstreams)
  const headers = new HeadersForUpstream(parts.log)
  const signOut = { kind: 'sign_out', location: `${config.reservedPrefix}sign-out` } as const

  function admit(facts: RequestFacts): Admission | Promise<Admission> {
    const route = routes.route(facts.host, facts.method, facts.target)
    if (route === undefined)
      return {
        kind: 'no_route',
        why: `no upstream serves ${facts.host} at this path: compare hosts and path of the upstreams`,
      }
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
      ? identity.then((found) => decide(facts, upstream, rule, found))
      : decide(facts, upstream, rule, identity)
  }

  function decide(facts: RequestFacts, upstream: UpstreamConfig, rule: RuleConfig, identity: Identity): Admission {
    if (identity.kind === 'signed_in') return admitPerson(facts, upstream, rule, identity.session)
    // Optional paths stay open when the store is unavailable. The request then has no identity.
    if (rule.access === 'optional') {
      const anybody = headers.forAnybody(facts, upstream, rule)
      const pass = { kind: 'pass', upstream, identity: anybody, session: undefined, caching: 'varies' } as const
      const expire = identity.kind === 'anonymous' ? expiry(identity, facts, upstream) : undefined
      return expire === undefined ? pass : { ...pass, expire }
    }
    if (identity.kind === 'unavailable') return identity
    const mayRedirect =
      !facts.isFrame && (rule.unauthenticated === 'redirect' || (rule.unauthenticated === 'auto' && facts.isPage))
    const signIn = signInUrl(config.reservedPrefix, undefined)
    // After a sign-in the browser uses GET, which must not go to the URL that a form was sent to.
    if (mayRedirect && facts.isPage && facts.method === 'POST') {
      const form = { upstream, expire: expiry(identity, facts, upstream) }
      return { kind: 'sign_in', location: signIn, setCookies: nothing, leavesPage: identity.staleCookie, form }
    }
    identity.ended?.noteExpired()
    const setCookies = identity.staleCookie ? parts.cookie.expireAll(facts.cookie, upstream.logout.cookies) : nothing
    if (!mayRedirect) return { kind: 'unauthorized', location: signIn, setCookies }
    const return_to = facts.target.path + facts.target.query
    // The sign-in would ignore a longer return_to, and such a long URL may exceed the limit for a
    // request head.
    if (return_to.length > maxReturnToLength) return { kind: 'sign_in', location: signIn, setCookies }
    if (parts.cookie.isStrict && isLinkOnOtherSite(facts)) return { kind: 'reload', location: return_to }
    if (identity.staleCookie && facts.isPage && facts.secFetchSite === 'same-origin') {
      const location = signInUrl(config.reservedPrefix, return_to, { again: true })
      return { kind: 'sign_in', location, setCookies, leavesPage: true }
    }
    return { kind: 'sign_in', location: signInUrl(config.reservedPrefix, return_to), setCookies }
  }

  /**
   * Returns what expires the cookie when the response begins. A late response does not expire it,
   * because the browser may have signed in again at another process.
   */
  function expiry(
    { ended }: Extract<Identity, { kind: 'anonymous' }>,
    { cookie }: RequestFacts,
    { logout }: UpstreamConfig,
  ): (() => readonly string[]) | undefined {
    if (ended === undefined) return undefined
    const end = performance.now() + fastestSignInMs
    return () => {
      if (performance.now() > end || ended.isExpired()) return nothing
      ended.noteExpired()
      return parts.cookie.expireAll(cookie, logout.cookies)
    }
  }

  function admitPerson(
    facts: RequestFacts,
    upstream: UpstreamConfig,
    rule: RuleConfig,
    session: StoredSession,
  ): Admission {
    const crossSite = crossSiteReason(facts, upstream)
    if (crossSite !== undefined) return { kind: 'cross_site', why: crossSite, upstream, rule, session }
    const unmet = unmetRequirement(rule, session.record.claims)
    if (unmet !== undefined) return { kind: 'forbidden', ...unmet, setCookies: nothing, upstream, rule, session }
    const sent = headers.forPerson(facts, upstream, rule, session)
    if ('missing' in sent)
      return { kind: 'forbidden', ...withoutHeader(sent), setCookies: nothing, upstream, rule, session }
    const pass = {
      kind: 'pass',
      upstream,
      identity: sent.fields,
      session: session.key,
      caching: upstream.cache,
    } as const
    return upstream.sessionCookies.length === 0 ? pass : { ...pass, cookies: cookiesOf(session.record, upstream.name) }
  }

  return admit
}

function withoutHeader({ missing, dropped }: Extract<IdentityHeaders, { missing: string }>): Unmet {
  const reasons = dropped.filter((why) => why.startsWith(`${missing}: `))
  return reasons.length > 0
    ? { code: 'ERR_FORBIDDEN', why: `a required header cannot be sent: ${reasons.join('; ')}` }
    : { code: 'ERR_CLAIM_ABSENT', why: `the claim for the required header ${missing} is missing` }
}

/**
 * Whether the browser follows a link on another site. For the load that a page of the gateway
 * repeats, the result is `false`, because that page is on this site.
 */
function isLinkOnOtherSite({ method, isPage, secFetchSite }: RequestFacts): boolean {
  return isPage && method === 'GET' && secFetchSite === 'cross-site'
}
