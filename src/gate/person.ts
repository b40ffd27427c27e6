import { isWithin } from '../core/clock.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import { foreignCookies } from '../session/cookies/browser-cookies.ts'
import { cookiesOf } from '../session/cookies/session-cookies.ts'
import type { Admission, Pass } from './admission.ts'
import type { GateContext } from './admit-parts.ts'
import { crossSiteReason } from './cross-site.ts'
import type { Identity, SignedIn } from './identify.ts'
import { lacksKey, noKey, nothing, personalCookies, unmetBy, withExchanged, withoutHeader } from './outcome.ts'
import type { Unmet } from './rules/requirement.ts'
import type { Route } from './rules/route-table.ts'
import { expiryOf, signInFirst } from './sign-in-first.ts'

/** Decides about a request with or without a session. */
export function admitSender(
  facts: RequestFacts,
  route: Route,
  sender: Identity,
  context: GateContext,
): Admission | Promise<Admission> {
  const { upstream, rule } = route
  const identity = sender.kind === 'signed_in' && lacksKey(upstream, context) ? noKey : sender
  if (identity.kind === 'signed_in') {
    const admission = admitPerson(facts, route, identity, context)
    return upstream.tokenExchange === undefined ? admission : withExchanged(admission, rule, identity.session, context)
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
  if (crossSite !== undefined) return { kind: 'cross_site', why: crossSite, upstream, rule, principal: identity }
  const unmet = unmetDevice(route, identity, context) ?? unmetBy(identity.record, realm, rule, facts, context)
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
    caller: undefined,
    caching: upstream.cache,
    cookies: upstream.sessionCookies.length > 0 ? cookiesOf(session.record, upstream.name) : undefined,
    withheldCookies: foreign?.withheldCookies,
    expire: foreign?.expire,
    observed: unmet && { ...unmet, upstream, rule, principal: identity },
  }
}

/** Whether the session has to be bound here, and is not. */
function unmetDevice(
  { rule, upstream }: Route,
  { session: { record } }: SignedIn,
  { config, clock }: GateContext,
): Unmet | undefined {
  const isNeeded = rule.needsDeviceBinding ?? upstream.needsDeviceBinding
  if (!isNeeded || record.device !== undefined) return undefined
  if (isWithin(config.session.deviceBinding.registrationGraceMs, record.created_at, clock.now())) return undefined
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
  return { withheldCookies, expire: () => realm.cookie.expireWherever(withheldCookies, target.path, options) }
}
