import type { RuleConfig } from '../config/model/rule.ts'
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
import type { ExchangeSubject } from '../tokens/exchanged-tokens.ts'
import type { AccountIdentity } from '../tokens/service-accounts.ts'
import type { Admission, CallerChallenges, CallerRefused, LacksScope } from './admission.ts'
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
import type { Unmet } from './rules/requirement.ts'
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
  const caller = 'client_certificate'
  const identity = context.identifyCertificate?.(facts, route.upstream)
  if (identity?.kind === 'refused') return refused(route, caller, identity, { code: 'ERR_CERTIFICATE_INVALID' })
  // A browser shows a certificate with each request, also with those of other sites.
  return identity && admitKnown(facts, route, identity, { caller, isByBrowser: true }, context)
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
  const { upstream, rule } = route
  return whenKnown(identifyKey(presented, facts, route, context), (identity) => {
    context.trace?.({ step: 'key', identity })
    const caller = 'key'
    if (identity.kind !== 'accepted')
      return refused(route, caller, identity, { code: 'ERR_KEY_INVALID', ...challengesOf(facts, route) })
    // A browser repeats Basic credentials by itself once a person has entered them for this host.
    const isByBrowser = presented !== 'malformed' && presented.by === 'basic'
    const unmet = (): Unmet | undefined =>
      (rule.needsDeviceBinding ?? upstream.needsDeviceBinding)
        ? { code: 'ERR_DEVICE_BINDING', why: 'a key is bound to no device' }
        : unmetBy(identity.record, identity, upstream.keys ?? { require: [] }, facts, context)
    return admitKnown(facts, route, identity, { caller, isByBrowser, unmet, subject: identity.session }, context)
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
  return context.identifyKey(presented.text, upstream, upstream.keys, forwarded.clientAddress)
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
  return whenKnown(identifyAccount(basic, facts, route, context), (identity) => {
    context.trace?.({ step: 'account', name: basic === 'malformed' ? undefined : basic.name, identity })
    const caller = 'service_account'
    if (identity.kind !== 'accepted')
      return refused(route, caller, identity, { code: 'ERR_ACCOUNT_INVALID', ...challengesOf(facts, route) })
    const unmet = () => unmetByAccount(route.rule, identity)
    // As with a key: a browser repeats Basic credentials.
    return admitKnown(facts, route, identity, { caller, isByBrowser: true, unmet }, context)
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
  const caller = 'access_token'
  if (identity.kind === 'refused') context.trace?.({ step: 'token', missing: [] })
  if (identity.kind !== 'accepted') {
    const challenge = challengeOf(facts, upstream, rule, 'invalid_token')
    return refused(route, caller, identity, { code: 'ERR_TOKEN_INVALID', challenge })
  }
  const missing = missingScopes(identity.record.claims, upstream, rule)
  context.trace?.({ step: 'token', record: identity.record, missing })
  const unmet = (): LacksScope | undefined => {
    if (missing.length === 0) return undefined
    const why = `the access token lacks the scope ${missing.join(', ')}`
    return { code: 'ERR_TOKEN_SCOPE', why, challenge: challengeOf(facts, upstream, rule, 'insufficient_scope') }
  }
  return admitKnown(facts, route, identity, { caller, unmet, subject: identity }, context)
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

/** Why a service account has no access: the rule names others. */
function unmetByAccount({ serviceAccounts }: RuleConfig, { record }: Principal): Unmet | undefined {
  const name = String(record.claims['client_id'])
  if (serviceAccounts === 'all' || serviceAccounts?.includes(name) === true) return undefined
  return { code: 'ERR_FORBIDDEN', why: `service_accounts of the rule lacks ${name}` }
}

/** The credentials are not accepted. `refusal`: what the client learns, unless it has to wait. */
function refused(
  { upstream }: Route,
  caller: Caller,
  identity: Exclude<CallerIdentity, { kind: 'accepted' }>,
  refusal: Pick<CallerRefused, 'code'> & CallerChallenges,
): Admission {
  if (identity.kind === 'unavailable') return identity
  const { kind, ...about } = identity
  const known = { kind: 'caller_refused', caller, upstream, ...about } as const
  return kind === 'limited' ? { ...known, code: 'ERR_TOO_MANY_REQUESTS' } : { ...known, ...refusal }
}

type CallerIdentity = TokenIdentity | AccountIdentity | CertificateIdentity | KeyIdentity

/** What depends on the kind of the credentials. */
interface Accepted {
  readonly caller: Caller
  /** Browsers send the credentials by themselves, also with requests of pages of other sites. */
  readonly isByBrowser?: boolean
  /** Why these credentials do not suffice, whatever the rule requires. */
  readonly unmet?: () => Unmet | LacksScope | undefined
  /** Whose token the upstream may get in exchange. Absent: the credentials are no token. */
  readonly subject?: ExchangeSubject
}

/** A caller whose credentials are accepted: the requirements of the rule decide. */
function admitKnown(
  facts: RequestFacts,
  route: Route,
  identity: Principal & { readonly clockToleranceMs: number; readonly isOver?: () => boolean },
  { caller, isByBrowser = false, unmet: unmetByCaller, subject }: Accepted,
  context: GateContext,
): Admission | Promise<Admission> {
  const { upstream, rule } = route
  const { session } = identity
  const { signedIdentity } = upstream
  const about = { upstream, rule, principal: identity, caller } as const
  const crossSite = isByBrowser ? crossSiteReason(facts, upstream) : undefined
  if (crossSite !== undefined) return { kind: 'cross_site', why: crossSite, ...about }
  const denial = { setCookies: nothing, ...about } as const
  const insufficient = unmetByCaller?.()
  if (insufficient !== undefined) return { kind: 'forbidden', ...insufficient, ...denial }
  if (signedIdentity !== undefined && !context.identities.isReady(signedIdentity)) return noKey
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
    endsAt: session?.record.absolute_expires_at,
    caller,
    isOver: identity.isOver,
    cookies: session && upstream.sessionCookies.length > 0 ? cookiesOf(session.record, upstream.name) : undefined,
    application: session && upstream.applicationSignIn && applicationSessionOf(session.record, upstream.name),
    caching: upstream.cache,
    // The cookies in the client may belong to another person than the credentials.
    withheldCookies: personalCookies(facts, context),
    observed: unmet && { ...unmet, ...denial },
  } as const
  const decided = withDecision(pass, facts, route, identity, context)
  return subject === undefined
    ? decided
    : whenKnown(decided, (admission) => withExchanged(admission, rule, subject, context))
}
