import type { UpstreamConfig } from '../config/model/upstream.ts'
import { isSoonAfter } from '../core/clock.ts'
import { maxReturnToLength, signInUrl } from '../core/return-to.ts'
import type { Site } from '../core/site.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import { applicationSessionOf, cookiesOf, foreignCookies } from '../session/cookies/application-cookies.ts'
import type { Admission, Pass } from './admission.ts'
import {
  challengesOf,
  type GateContext,
  noKey,
  nothing,
  personalCookies,
  unmetBy,
  whenKnown,
  withDecision,
  withExchanged,
  withoutHeader,
} from './context.ts'
import { crossSiteReason } from './cross-site.ts'
import type { AnonymousIdentity, Identity, RealmOfPerson, SignedIn } from './identify.ts'
import type { Unmet } from './rules/requirement.ts'
import type { Route } from './rules/route-table.ts'

/** Decides about a request with or without a session. */
export function admitSender(
  facts: RequestFacts,
  route: Route,
  sender: Identity,
  context: GateContext,
): Admission | Promise<Admission> {
  const { upstream, rule } = route
  const { signedIdentity } = upstream
  const lacksKey = signedIdentity !== undefined && !context.identities.isReady(signedIdentity)
  const identity = sender.kind === 'signed_in' && lacksKey ? noKey : sender
  context.trace?.({ step: 'session', isOptional: rule.access === 'optional', identity })
  if (identity.kind === 'signed_in') {
    const admitted = admitPerson(facts, route, identity, context)
    const admission =
      upstream.authorizeWith === undefined ? admitted : withDecision(admitted, facts, route, identity, context)
    return upstream.tokenExchange === undefined
      ? admission
      : whenKnown(admission, (decided) => withExchanged(decided, rule, identity.session, context))
  }
  // Optional paths stay open when the store is unavailable. The request then has no identity.
  if (rule.access === 'optional') return admitAnybody(facts, route, identity, context)
  return identity.kind === 'unavailable' ? identity : signInFirst(facts, route, identity, context)
}

/** Admits a request without a session to a path that does not require one. */
function admitAnybody(
  facts: RequestFacts,
  { upstream, rule }: Route,
  identity: Exclude<Identity, SignedIn>,
  context: GateContext,
): Pass {
  const anybody = context.headers.forAnybody(facts, upstream, rule)
  const pass = { kind: 'pass', upstream, identity: anybody, session: undefined, caching: 'varies' } as const
  if (identity.kind !== 'anonymous') return pass
  const { misuse } = identity
  if (misuse !== undefined) return { ...pass, misuse, expire: () => misuse.setCookies }
  if (identity.ended === undefined) return pass
  // The application must not take anybody for the person whose session has ended.
  const withheldCookies = personalCookies(facts, context)
  return { ...pass, withheldCookies, expire: expiryOf(identity, facts, upstream) }
}

function admitPerson(facts: RequestFacts, route: Route, identity: SignedIn, context: GateContext): Admission {
  const { upstream, rule } = route
  const { session, realm } = identity
  const crossSite = crossSiteReason(facts, upstream)
  context.trace?.({ step: 'cross-site', facts, why: crossSite })
  if (crossSite !== undefined) return { kind: 'cross_site', why: crossSite, upstream, rule, principal: identity }
  const isUnbound = (rule.needsDeviceBinding ?? upstream.needsDeviceBinding) && session.record.device === undefined
  const unmet =
    (isUnbound ? unmetDevice(facts, identity, context) : undefined) ??
    unmetBy(identity.record, realm, rule, facts, context)
  if (unmet !== undefined && (rule.mode !== 'observe' || unmet.code === 'ERR_DEVICE_BINDING'))
    return unmet.code === 'ERR_STEP_UP'
      ? signInFirst(facts, route, { realm, staleCookie: false }, context, unmet.why)
      : { kind: 'forbidden', ...unmet, setCookies: nothing, upstream, rule, principal: identity }
  const sent = context.headers.forPerson(facts, upstream, rule, identity)
  if ('missing' in sent)
    return { kind: 'forbidden', ...withoutHeader(sent), setCookies: nothing, upstream, rule, principal: identity }
  const foreign = withoutForeign(facts, route, identity, context)
  // All requests of signed-in people get an object of the same shape, and no copy of another one,
  // because both make the hot path slower.
  return {
    kind: 'pass',
    upstream,
    identity: sent.fields,
    dropped: sent.dropped,
    session: session.key,
    endsAt: session.record.absolute_expires_at,
    caller: undefined,
    caching: upstream.cache,
    cookies: upstream.sessionCookies.length > 0 ? cookiesOf(session.record, upstream.name) : undefined,
    application: upstream.applicationSignIn && applicationSessionOf(session.record, upstream.name),
    withheldCookies: foreign?.withheldCookies,
    expire: foreign?.expire,
    observed: unmet && { ...unmet, upstream, rule, principal: identity },
  }
}

/** Whether it is too late for a session that has to be bound here, and is not. */
function unmetDevice(
  { cookie }: RequestFacts,
  { session: { record }, realm }: SignedIn,
  { config, clock }: GateContext,
): Unmet | undefined {
  const { registrationGraceMs } = config.session.deviceBinding
  // The session of a frame is never bound, so there is nothing to wait for.
  if (isSoonAfter(registrationGraceMs, record.created_at, clock.now()) && !realm.cookie.isOfFrame(cookie))
    return undefined
  return { code: 'ERR_DEVICE_BINDING', why: 'the session is not bound to a key of the device' }
}

/** Withholds the application cookies of other people, and expires them in the browser. */
function withoutForeign(
  { cookie, host, target }: RequestFacts,
  { upstream }: Route,
  { session: { record }, realm }: SignedIn,
  { personal }: GateContext,
): Pick<Pass, 'withheldCookies' | 'expire'> | undefined {
  if (personal.length === 0) return undefined
  const withheldCookies = foreignCookies(cookie, record, personal, { host, path: target.path })
  if (withheldCookies.length === 0) return undefined
  const options = { applicationCookies: upstream.logout.cookies, kept: record.browser_cookies ?? [] }
  return { withheldCookies, expire: () => realm.cookie.expiry.wherever(withheldCookies, target.path, options) }
}

/** No sign-in that begins after a request is complete within this time, in ms. */
const fastestSignInMs = 1_000

/**
 * The person has to sign in before the upstream gets the request.
 * @param insufficient the person is signed in, but has to authenticate as the rule requires
 */
function signInFirst(
  facts: RequestFacts,
  route: Route,
  identity: Omit<AnonymousIdentity, 'kind'>,
  context: GateContext,
  insufficient?: string,
): Admission {
  const { upstream, rule } = route
  const { realm, staleCookie: sessionEnded, ended, misuse } = identity
  const prefix = realm?.prefix ?? context.config.reservedPrefix
  const stepUp = rule.mode === 'observe' ? undefined : rule.stepUp
  const needed = { prefix, sessionEnded, stepUp, insufficient, misuse, ...challengesOf(facts, route) }
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
  const { site } = context
  const location =
    site === undefined
      ? signInUrl(prefix, return_to, options)
      : signInAt(facts.host, return_to, (to) => signInUrl(prefix, to, options), site)
  return { kind: 'sign_in', location, setCookies, ...(again && { leavesPage: true }), ...needed }
}

/**
 * The URL of a sign-in. If another host of the site is the one where people sign in, the browser
 * goes there at once. The endpoint at this host would redirect it, too.
 */
function signInAt(host: string, path: string, signIn: (returnTo: string) => string, site: Site): string {
  const origin = site.originOf(host)
  const isElsewhere = origin !== undefined && origin !== site.signInUrl.origin
  return isElsewhere && origin.length + path.length <= maxReturnToLength
    ? new URL(signIn(origin + path), site.signInUrl).href
    : signIn(path)
}

/**
 * Returns what expires the cookie when the response begins. A late response does not expire it,
 * because the browser may have signed in again at another process.
 */
function expiryOf(
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
