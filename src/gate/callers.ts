import type { RequirementConfig } from '../config/model/requirement.ts'
import {
  accessKeyIn,
  accessKeyPrefix,
  basicCredentials,
  bearerToken,
  type Caller,
  hasAccessKey,
  type PresentedKey,
} from '../core/credentials.ts'
import { textOf } from '../http/forwarded.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import { applicationSessionOf, cookiesOf } from '../session/cookies/application-cookies.ts'
import type { Principal } from '../session/record/record.ts'
import type { KeyIdentity } from '../tokens/access-keys.ts'
import type { TokenIdentity } from '../tokens/access-tokens.ts'
import type { CertificateIdentity } from '../tokens/client-certificates.ts'
import type { AccountIdentity } from '../tokens/service-accounts.ts'
import type { Admission } from './admission.ts'
import { challengeOf, missingScopes } from './bearer.ts'
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
import { type Unmet, unmetRequirement } from './rules/requirement.ts'
import type { Route } from './rules/route-table.ts'

/**
 * The decision about a request with credentials of its own. Its session cookie, if any, does not
 * count. `undefined`: it has none that the rule accepts.
 */
export function admitCaller(
  facts: RequestFacts,
  route: Route,
  context: GateContext,
): Admission | Promise<Admission> | undefined {
  const byAuthorization = facts.authorization === undefined ? undefined : admitAuthorized(facts, route, context)
  if (byAuthorization !== undefined || route.rule.clientCertificates !== true) return byAuthorization
  const identity = context.identifyCertificate?.(facts, route.upstream)
  return identity && admitCertificate(facts, route, identity, context)
}

/**
 * The access key of a request, also where the rule accepts none. `malformed`: it has several, or
 * credentials that could be one.
 */
export function presentedKey(
  { authorization, headers }: RequestFacts,
  { upstream, rule }: Route,
): PresentedKey | 'malformed' | undefined {
  const field = upstream.keys?.header?.toLowerCase()
  const text = field === undefined ? undefined : textOf(headers, field)
  const inHeader = text !== undefined && (rule.keys === true || text.startsWith(accessKeyPrefix))
  const found = authorization === undefined ? undefined : accessKeyIn(authorization)
  // Where the rule accepts other callers, credentials in Authorization are those of a second one.
  const isOther =
    (rule.accessTokens !== undefined && bearerToken(authorization) !== undefined) ||
    (rule.serviceAccounts !== undefined && basicCredentials(authorization) !== undefined)
  if (inHeader) return found === undefined && !isOther ? { text, by: 'header' } : 'malformed'
  const acceptsOthers = rule.keys !== true || rule.accessTokens || rule.serviceAccounts
  // Other callers, and the application, have their own answer to malformed credentials without
  // keys.
  return found === 'malformed' && acceptsOthers && !hasAccessKey('authorization', authorization ?? '')
    ? undefined
    : found
}

/** The decision about a request with an access key. Its session cookie, if any, does not count. */
export function admitKey(
  facts: RequestFacts,
  route: Route,
  presented: PresentedKey | 'malformed',
  context: GateContext,
): Admission | Promise<Admission> {
  return whenKnown(identifyKey(presented, facts, route, context), (identity) => {
    context.trace?.({ step: 'key', identity })
    return admitHolder(
      facts,
      route,
      { identity, isBasic: presented !== 'malformed' && presented.by === 'basic' },
      context,
    )
  })
}

function identifyKey(
  presented: PresentedKey | 'malformed',
  { forwarded }: RequestFacts,
  { upstream, rule }: Route,
  context: GateContext,
): KeyIdentity | Promise<KeyIdentity> {
  if (presented === 'malformed') return { kind: 'refused', why: 'the request has not exactly one key' }
  if (rule.keys !== true || upstream.keys === undefined || context.identifyKey === undefined)
    return { kind: 'refused', why: 'the rule accepts no keys' }
  return context.identifyKey(presented.text, upstream, forwarded.clientAddress)
}

function admitHolder(
  facts: RequestFacts,
  route: Route,
  { identity, isBasic }: { readonly identity: KeyIdentity; readonly isBasic: boolean },
  context: GateContext,
): Admission | Promise<Admission> {
  const { upstream, rule } = route
  if (identity.kind === 'unavailable') return identity
  const caller = 'key'
  if (identity.kind !== 'accepted') {
    const refused = { kind: 'caller_refused', caller, why: identity.why, upstream } as const
    return identity.kind === 'limited'
      ? { ...refused, code: 'ERR_TOO_MANY_REQUESTS', waitMs: identity.waitMs }
      : { ...refused, code: 'ERR_KEY_INVALID', ...challengesOf(facts, upstream, rule) }
  }
  const about = { upstream, rule, principal: identity, caller } as const
  // A browser repeats Basic credentials by itself once a person has entered them for this host.
  const crossSite = isBasic ? crossSiteReason(facts, upstream) : undefined
  if (crossSite !== undefined) return { kind: 'cross_site', why: crossSite, ...about }
  const unmet = unmetByHolder(facts, route, identity, context)
  if (unmet !== undefined) return { kind: 'forbidden', ...unmet, setCookies: nothing, ...about }
  return whenKnown(admitKnown(facts, route, identity, caller, context), (decided) =>
    withExchanged(decided, rule, identity.session, context),
  )
}

/** Why a person with a key has no access that the person has with a bound session. */
function unmetByHolder(
  { method, forwarded: { clientAddress } }: RequestFacts,
  { upstream, rule }: Route,
  { record: { claims } }: Principal,
  { clock, trace }: GateContext,
): Unmet | undefined {
  if (rule.needsDeviceBinding ?? upstream.needsDeviceBinding)
    return { code: 'ERR_DEVICE_BINDING', why: 'a key is bound to no device' }
  const tell =
    trace && ((requirement: RequirementConfig, unmet?: Unmet) => trace({ step: 'requirement', requirement, unmet }))
  return unmetRequirement(upstream.keys ?? { require: [] }, { claims, method, clientAddress, now: clock.now() }, tell)
}

/** The decision about a request with an `Authorization` header. */
function admitAuthorized(
  facts: RequestFacts,
  route: Route,
  context: GateContext,
): Admission | Promise<Admission> | undefined {
  const bearer = route.rule.accessTokens && bearerToken(facts.authorization)
  if (bearer !== undefined)
    return whenKnown(identifyToken(bearer, facts, route, context), (found) => admitToken(facts, route, found, context))
  const basic = route.rule.serviceAccounts && basicCredentials(facts.authorization)
  if (basic === undefined) return undefined
  return whenKnown(identifyAccount(basic, facts, route, context), (found) => {
    context.trace?.({ step: 'account', name: basic === 'malformed' ? undefined : basic.name, identity: found })
    return admitAccount(facts, route, found, context)
  })
}

function identifyToken(
  bearer: Exclude<ReturnType<typeof bearerToken>, undefined>,
  { forwarded }: RequestFacts,
  { upstream }: Route,
  context: GateContext,
): TokenIdentity | Promise<TokenIdentity> {
  if (bearer === 'malformed')
    return { kind: 'refused', why: 'Authorization is not exactly one bearer token (RFC 6750 §2.1)' }
  if (upstream.accessTokens === undefined || context.identifyToken === undefined)
    return { kind: 'refused', why: 'the upstream accepts no access tokens' }
  return context.identifyToken(bearer.token, upstream, upstream.accessTokens, forwarded.clientAddress)
}

function admitToken(
  facts: RequestFacts,
  route: Route,
  identity: TokenIdentity,
  context: GateContext,
): Admission | Promise<Admission> {
  const { upstream, rule } = route
  if (identity.kind === 'unavailable') return identity
  if (identity.kind === 'refused') {
    context.trace?.({ step: 'token', missing: [] })
    const challenge = challengeOf(facts, upstream, rule, 'invalid_token')
    const { why } = identity
    return { kind: 'caller_refused', caller: 'access_token', upstream, code: 'ERR_TOKEN_INVALID', why, challenge }
  }
  const missing = missingScopes(identity.record.claims, upstream, rule)
  context.trace?.({ step: 'token', record: identity.record, missing })
  if (missing.length > 0) {
    const why = `the access token lacks the scope ${missing.join(', ')}`
    const challenge = challengeOf(facts, upstream, rule, 'insufficient_scope')
    const denial = { setCookies: nothing, upstream, rule, principal: identity, caller: 'access_token' } as const
    return { kind: 'forbidden', code: 'ERR_TOKEN_SCOPE', why, challenge, ...denial }
  }
  return whenKnown(admitKnown(facts, route, identity, 'access_token', context), (decided) =>
    withExchanged(decided, rule, identity, context),
  )
}

function identifyAccount(
  basic: Exclude<ReturnType<typeof basicCredentials>, undefined>,
  { forwarded }: RequestFacts,
  { upstream }: Route,
  context: GateContext,
): AccountIdentity | Promise<AccountIdentity> {
  if (basic === 'malformed' || basic.name === '')
    return { kind: 'refused', why: 'Authorization is not exactly one name and secret in UTF-8 (RFC 7617 §2)' }
  if (upstream.serviceAccounts === undefined || context.identifyAccount === undefined)
    return { kind: 'refused', why: 'the upstream accepts no service accounts' }
  return context.identifyAccount(basic, upstream, upstream.serviceAccounts, forwarded.clientAddress)
}

function admitAccount(
  facts: RequestFacts,
  route: Route,
  identity: AccountIdentity,
  context: GateContext,
): Admission | Promise<Admission> {
  const { upstream, rule } = route
  if (identity.kind === 'unavailable') return identity
  const caller = 'service_account'
  if (identity.kind === 'limited' || identity.kind === 'refused') {
    const refused = { kind: 'caller_refused', caller, why: identity.why, upstream } as const
    return identity.kind === 'limited'
      ? { ...refused, code: 'ERR_TOO_MANY_REQUESTS', waitMs: identity.waitMs }
      : { ...refused, code: 'ERR_ACCOUNT_INVALID', account: identity.account, ...challengesOf(facts, upstream, rule) }
  }
  const about = { upstream, rule, principal: identity, caller } as const
  const name = String(identity.record.claims['client_id'])
  if (rule.serviceAccounts !== 'all' && rule.serviceAccounts?.includes(name) !== true) {
    const why = `service_accounts of the rule lacks ${name}`
    return { kind: 'forbidden', code: 'ERR_FORBIDDEN', why, setCookies: nothing, ...about }
  }
  // A browser repeats Basic credentials by itself once a person has entered them for this host.
  const crossSite = crossSiteReason(facts, upstream)
  if (crossSite !== undefined) return { kind: 'cross_site', why: crossSite, ...about }
  return admitKnown(facts, route, identity, caller, context)
}

function admitCertificate(
  facts: RequestFacts,
  route: Route,
  identity: CertificateIdentity,
  context: GateContext,
): Admission | Promise<Admission> {
  const { upstream, rule } = route
  const caller = 'client_certificate'
  if (identity.kind === 'refused') {
    const { why, subject } = identity
    return { kind: 'caller_refused', caller, code: 'ERR_CERTIFICATE_INVALID', why, upstream, subject }
  }
  // A browser shows a certificate with each request, also with those of other sites.
  const crossSite = crossSiteReason(facts, upstream)
  if (crossSite !== undefined)
    return { kind: 'cross_site', why: crossSite, upstream, rule, principal: identity, caller }
  return admitKnown(facts, route, identity, caller, context)
}

/** A caller whose credentials are accepted: the requirements of the rule decide. */
function admitKnown(
  facts: RequestFacts,
  route: Route,
  identity: Principal & { readonly clockToleranceMs: number; readonly isOver?: () => boolean },
  caller: Caller,
  context: GateContext,
): Admission | Promise<Admission> {
  const { upstream, rule } = route
  const { session } = identity
  const { signedIdentity } = upstream
  if (signedIdentity !== undefined && !context.identities.isReady(signedIdentity)) return noKey
  const denial = { setCookies: nothing, upstream, rule, principal: identity, caller } as const
  const unmet = unmetBy(identity.record, identity, rule, facts, context)
  if (unmet?.code === 'ERR_STEP_UP' && rule.mode !== 'observe') {
    const challenge = challengeOf(facts, upstream, rule, 'insufficient_user_authentication')
    return { kind: 'caller_refused', caller, code: 'ERR_STEP_UP', why: unmet.why, challenge, upstream }
  }
  if (unmet !== undefined && rule.mode !== 'observe') return { kind: 'forbidden', ...unmet, ...denial }
  const sent = context.headers.forPerson(facts, upstream, rule, identity)
  if ('missing' in sent) return { kind: 'forbidden', ...withoutHeader(sent), ...denial }
  const pass = {
    kind: 'pass',
    upstream,
    identity: sent.fields,
    dropped: sent.dropped,
    session: session?.key,
    caller,
    isOver: identity.isOver,
    cookies: session && upstream.sessionCookies.length > 0 ? cookiesOf(session.record, upstream.name) : undefined,
    application: session && upstream.applicationSignIn && applicationSessionOf(session.record, upstream.name),
    caching: upstream.cache,
    // The cookies in the client may belong to another person than the credentials.
    withheldCookies: personalCookies(facts, context),
    observed: unmet && { ...unmet, ...denial },
  } as const
  return withDecision(pass, facts, route, identity, context)
}
