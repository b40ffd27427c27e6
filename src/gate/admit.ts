import type { GatewayConfig, HeaderConfig, RuleConfig, UpstreamConfig } from '../config/model.ts'
import { longestReturnTo, signInAgainUrl, signInUrl } from '../core/return-to.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import { headersWithoutValue, identityHeaders, type IdentityHeaders } from '../identity/claim-headers.ts'
import type { Log } from '../observe/log.ts'
import { type Unmet, unmetRequirement } from '../rules/requirement.ts'
import { createRouteTable } from '../rules/route-table.ts'
import type { SessionCookie } from '../session/cookie.ts'
import type { StoredSession } from '../session/record.ts'
import type { Admission } from './admission.ts'
import { crossSiteReason } from './cross-site.ts'
import type { Identity } from './identify.ts'

/**
 * THE decision. Answers without a promise when the session is in memory and nothing is due: that is
 * the hot path.
 */
export type Admit = (facts: RequestFacts) => Admission | Promise<Admission>

export interface AdmitParts {
  /** Who sends this `Cookie` header. */
  readonly identify: (cookieHeader: string | undefined) => Identity | Promise<Identity>
  readonly cookie: Pick<SessionCookie, 'forget' | 'isStrict'>
  readonly log: Log
}

const nothing: readonly string[] = []
/** A sign-in that begins after a request is hardly over within this time, in ms. */
const soonMs = 1_000

export function createAdmit(config: Pick<GatewayConfig, 'upstreams' | 'reservedPrefix'>, parts: AdmitParts): Admit {
  const routes = createRouteTable(config.upstreams)
  const headersOf = createHeaderCache(parts.log)

  function admit(facts: RequestFacts): Admission | Promise<Admission> {
    const route = routes.route(facts.host, facts.method, facts.target)
    if (route === undefined)
      return {
        kind: 'no_route',
        why: `no upstream serves ${facts.host} at this path: compare hosts and path of the upstreams`,
      }
    const { upstream, rule, isLogout } = route
    if (isLogout) return { kind: 'sign_out', location: `${config.reservedPrefix}sign-out` }
    if (rule.access === 'public')
      return { kind: 'pass', upstream, identity: nothing, session: undefined, caching: 'anybody' }
    const identity = parts.identify(facts.cookie)
    return identity instanceof Promise
      ? identity.then((found) => decide(facts, upstream, rule, found))
      : decide(facts, upstream, rule, identity)
  }

  function decide(facts: RequestFacts, upstream: UpstreamConfig, rule: RuleConfig, identity: Identity): Admission {
    if (identity.kind === 'signed_in') return admitPerson(facts, upstream, rule, identity.session)
    // What is open to everybody, known or not, stays open when sessions cannot be looked up; the
    // person is unknown then.
    if (rule.access === 'optional') {
      const pass = { kind: 'pass', upstream, identity: nothing, session: undefined, caching: 'varies' } as const
      const expire = identity.kind === 'anonymous' ? expiry(identity, facts, upstream) : undefined
      return expire === undefined ? pass : { ...pass, expire }
    }
    if (identity.kind === 'unavailable') return identity
    identity.ended?.noteExpired()
    const setCookies = identity.staleCookie ? parts.cookie.forget(facts.cookie, upstream.logout.cookies) : nothing
    const mayRedirect =
      !facts.isFrame && (rule.unauthenticated === 'redirect' || (rule.unauthenticated === 'auto' && facts.isPage))
    const signIn = signInUrl(config.reservedPrefix, undefined)
    if (!mayRedirect) return { kind: 'unauthorized', location: signIn, setCookies }
    // After signing in the page is asked for anew, with GET: what a form had posted is not kept.
    const return_to = facts.target.path + facts.target.query
    // The sign-in would not go there anyway, and a Location this long may be more than a request
    // head can hold.
    if (return_to.length > longestReturnTo) return { kind: 'sign_in', location: signIn, setCookies }
    if (parts.cookie.isStrict && isFromElsewhere(facts)) return { kind: 'reload', location: return_to }
    if (identity.staleCookie && facts.isPage && facts.secFetchSite === 'same-origin') {
      const location = signInAgainUrl(config.reservedPrefix, return_to)
      return { kind: 'sign_in', location, setCookies, leavesPage: true }
    }
    return { kind: 'sign_in', location: signInUrl(config.reservedPrefix, return_to), setCookies }
  }

  /**
   * Another process may have signed the browser in again, so that only a response that begins soon
   * expires the cookie.
   */
  function expiry(
    { ended }: Extract<Identity, { kind: 'anonymous' }>,
    { cookie }: RequestFacts,
    { logout }: UpstreamConfig,
  ): (() => readonly string[]) | undefined {
    if (ended === undefined) return undefined
    const end = performance.now() + soonMs
    return () => {
      if (performance.now() > end || ended.isExpired()) return nothing
      ended.noteExpired()
      return parts.cookie.forget(cookie, logout.cookies)
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
    const headers = headersOf(upstream, session)
    if ('missing' in headers)
      return { kind: 'forbidden', ...withoutHeader(headers), setCookies: nothing, upstream, rule, session }
    return { kind: 'pass', upstream, identity: headers.lines, session: session.key, caching: upstream.cache }
  }

  return admit
}

function withoutHeader({ missing, dropped }: Extract<IdentityHeaders, { missing: string }>): Unmet {
  const left = dropped.filter((why) => why.startsWith(`${missing}: `))
  return left.length > 0
    ? { code: 'ERR_FORBIDDEN', why: `a required header cannot be sent: ${left.join('; ')}` }
    : { code: 'ERR_CLAIM_ABSENT', why: `the claim for the required header ${missing} is missing` }
}

/** A link on another site; what the browser loads then is said to come from this one. */
function isFromElsewhere({ method, isPage, secFetchSite }: RequestFacts): boolean {
  return isPage && method === 'GET' && secFetchSite === 'cross-site'
}

/**
 * Logs a header without a value once, unless a session has had a value for it before: a claim that
 * never comes is a mistake in the configuration or at the provider, a claim that some people lack
 * is not.
 */
function createAbsenceLog(
  log: Log,
): (upstream: UpstreamConfig, headers: Extract<IdentityHeaders, { lines: unknown }>) => void {
  const settled = new WeakSet<HeaderConfig>()
  return (upstream, headers) => {
    const absent = headersWithoutValue(upstream.headers, headers)
    for (const header of upstream.headers) {
      if (absent.includes(header) && !settled.has(header))
        log.info('headers.claim_absent', {
          upstream: upstream.name,
          header: header.name,
          hint: 'if nobody has a value for it: compare the claim with what the provider sends (provider.scopes, provider.id_token_claims)',
        })
      settled.add(header)
    }
  }
}

/** The headers of a session are made once for each version of its record. */
function createHeaderCache(log: Log): (upstream: UpstreamConfig, session: StoredSession) => IdentityHeaders {
  const cache = new WeakMap<StoredSession['record'], Map<UpstreamConfig, IdentityHeaders>>()
  const logAbsence = createAbsenceLog(log)
  return (upstream, { key, record }) => {
    const byUpstream = cache.get(record) ?? new Map<UpstreamConfig, IdentityHeaders>()
    cache.set(record, byUpstream)
    let headers = byUpstream.get(upstream)
    if (headers === undefined) {
      headers = identityHeaders(upstream.headers, record.claims)
      byUpstream.set(upstream, headers)
      if ('lines' in headers) logAbsence(upstream, headers)
      if ('dropped' in headers && headers.dropped.length > 0)
        log.warn('headers.dropped', { session: key, upstream: upstream.name, headers: headers.dropped })
    }
    return headers
  }
}
