import type { UpstreamConfig } from '../config/model/upstream.ts'
import { maxReturnToLength, signInUrl } from '../core/return-to.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import type { Admission } from './admission.ts'
import type { GateContext } from './admit-parts.ts'
import type { AnonymousIdentity, RealmOfPerson } from './identify.ts'
import { challengesOf, nothing } from './outcome.ts'
import type { Route } from './rules/route-table.ts'

/** No sign-in that begins after a request is complete within this time, in ms. */
const fastestSignInMs = 1_000

/**
 * The person has to sign in before the upstream gets the request.
 * @param insufficient the person is signed in, but has to authenticate as the rule requires
 */
export function signInFirst(
  facts: RequestFacts,
  { upstream, rule }: Route,
  identity: Omit<AnonymousIdentity, 'kind'>,
  context: GateContext,
  insufficient?: string,
): Admission {
  const { realm, staleCookie: sessionEnded, ended, misuse } = identity
  const prefix = realm?.prefix ?? context.config.reservedPrefix
  const stepUp = rule.mode === 'observe' ? undefined : rule.stepUp
  const needed = { prefix, sessionEnded, stepUp, insufficient, misuse, ...challengesOf(facts, upstream, rule) }
  const signIn = signInUrl(prefix, undefined, { stepUp })
  const mayRedirect =
    !facts.isFrame && (rule.unauthenticated === 'redirect' || (rule.unauthenticated === 'auto' && facts.isPage))
  // After a sign-in the browser uses GET, which must not go to the URL that a form was sent to.
  if (mayRedirect && facts.isPage && facts.method === 'POST') {
    const form = { upstream, expire: expiryOf(identity, facts, upstream), stepUp }
    return { kind: 'sign_in', location: signIn, setCookies: nothing, leavesPage: sessionEnded, form, ...needed }
  }
  // The browser may have the cookie of a new session already.
  const isStale = sessionEnded && ended?.isExpired() !== true
  // The cookies of a first response do not reach the browser.
  if (facts.isAsked !== 'first') ended?.noteExpired()
  const former = context.expireFormer?.(facts) ?? nothing
  const stale = isStale ? expireAll(realm, facts, upstream) : (misuse?.setCookies ?? nothing)
  const setCookies = former.length === 0 ? stale : [...former, ...stale]
  if (!mayRedirect) return { kind: 'unauthorized', location: signIn, setCookies, ...needed }
  const return_to = facts.target.path + facts.target.query
  // The sign-in would ignore a longer return_to, and such a long URL may exceed the limit for a
  // request head.
  if (return_to.length > maxReturnToLength) return { kind: 'sign_in', location: signIn, setCookies, ...needed }
  if (insufficient === undefined && context.isStrict && isLinkOnOtherSite(facts))
    return { kind: 'reload', location: return_to }
  const again = sessionEnded && facts.isPage && facts.secFetchSite === 'same-origin'
  const options = { again, endedElsewhere: isStale && ended?.isElsewhere === true, stepUp }
  const location = signInAt(facts.host, return_to, (to) => signInUrl(prefix, to, options), context)
  return { kind: 'sign_in', location, setCookies, ...(again && { leavesPage: true }), ...needed }
}

/**
 * The URL of a sign-in. If another host of the site is the one where people sign in, the browser
 * goes there at once. The endpoint at this host would redirect it, too.
 */
function signInAt(host: string, path: string, signIn: (returnTo: string) => string, { site }: GateContext): string {
  const origin = site?.originOf(host)
  const isElsewhere = origin !== undefined && origin !== site?.signInUrl.origin
  return isElsewhere && origin.length + path.length <= maxReturnToLength
    ? new URL(signIn(origin + path), site?.signInUrl).href
    : signIn(path)
}

/**
 * Returns what expires the cookie when the response begins. A late response does not expire it,
 * because the browser may have signed in again at another process.
 */
export function expiryOf(
  { ended, realm }: Pick<AnonymousIdentity, 'ended' | 'realm'>,
  facts: RequestFacts,
  upstream: UpstreamConfig,
): (() => readonly string[]) | undefined {
  if (ended === undefined) return undefined
  const end = performance.now() + fastestSignInMs
  return () => {
    if (performance.now() > end || ended.isExpired()) return nothing
    ended.noteExpired()
    return expireAll(realm, facts, upstream)
  }
}

function expireAll(
  realm: RealmOfPerson | undefined,
  { cookie, target }: RequestFacts,
  { logout }: UpstreamConfig,
): readonly string[] {
  return realm?.cookie.expireAll(cookie, logout.cookies, { path: target.path }) ?? nothing
}

/**
 * Whether the browser follows a link on another site. For the load that a page of the gateway
 * repeats, the result is `false`, because that page is on this site.
 */
function isLinkOnOtherSite({ method, isPage, secFetchSite }: RequestFacts): boolean {
  return isPage && method === 'GET' && secFetchSite === 'cross-site'
}
