import type { RuleConfig } from '../config/model/rule.ts'
import type { UpstreamConfig } from '../config/model/upstream.ts'
import { matchesAny } from '../core/name-pattern.ts'
import { cookieNames } from '../http/cookies.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import { droppedTexts, exchangedHeaders, type MissingHeader } from '../identity/claim-headers.ts'
import type { PrincipalRecord } from '../session/record/principal.ts'
import type { Exchanged, ExchangeSubject } from '../tokens/exchanged-tokens.ts'
import type { Admission, CallerChallenges, Pass } from './admission.ts'
import type { GateContext } from './admit-parts.ts'
import { challengeOf } from './bearer.ts'
import type { RealmOfPerson } from './identify.ts'
import { type Unmet, unmetRequirement, unmetStepUp } from './rules/requirement.ts'

export const nothing: readonly string[] = []

export const noKey = {
  kind: 'unavailable',
  code: 'ERR_STORE_UNAVAILABLE',
  why: 'no signing key was read from the store yet',
} as const
const noExchange = { kind: 'unavailable', code: 'ERR_TOKEN_EXCHANGE', why: 'there is no provider for it' } as const

/** Calls `next` at once, unless the value is a promise, because most requests wait for nothing. */
export function whenKnown<T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(next) : next(value)
}

/**
 * Whether the upstream expects a signed identity, and its key is missing. Requests of signed-in
 * people then fail.
 */
export function lacksKey({ signedIdentity }: UpstreamConfig, { identities }: GateContext): boolean {
  return signedIdentity !== undefined && !identities.isReady(signedIdentity)
}

/** Why the requirements of a rule are not met by a principal; `undefined` when they are. */
export function unmetBy(
  { claims, authentication }: PrincipalRecord,
  { clockToleranceMs: tolerance }: Pick<RealmOfPerson, 'clockToleranceMs'>,
  rule: RuleConfig,
  { method, forwarded }: RequestFacts,
  { clock }: GateContext,
): Unmet | undefined {
  if (rule.require.length === 0 && rule.stepUp === undefined) return undefined
  const { clientAddress } = forwarded
  const now = clock.now()
  return (
    unmetRequirement(rule, { claims, method, clientAddress, now }) ??
    unmetStepUp(rule, authentication, { now, tolerance })
  )
}

export function withoutHeader({ missing, dropped }: MissingHeader): Unmet {
  const reasons = dropped.filter(({ name }) => name === missing)
  const code = reasons.some(({ isWithheld }) => isWithheld) ? 'ERR_CLAIM_WITHHELD' : 'ERR_FORBIDDEN'
  return reasons.length > 0
    ? { code, why: `a required header cannot be sent: ${droppedTexts(reasons).join('; ')}` }
    : { code: 'ERR_CLAIM_ABSENT', why: `the claim for the required header ${missing} is missing` }
}

/** How a request can get access without a session, if the rule allows that. */
export function challengesOf(facts: RequestFacts, upstream: UpstreamConfig, rule: RuleConfig): CallerChallenges {
  return {
    challenge: rule.accessTokens && challengeOf(upstream, rule),
    offersBasic: rule.serviceAccounts !== undefined && isNoBrowser(facts),
  }
}

/** The cookies of a request that may belong to another person than its sender. */
export function personalCookies({ cookie }: RequestFacts, { personal }: GateContext): readonly string[] {
  return cookieNames(cookie, '').filter((name) => matchesAny(personal, name))
}

/**
 * Adds the exchanged token to a request that the upstream gets. Without one, the upstream does not
 * get the request, because the access token must not take its place.
 */
export function withExchanged(
  admission: Admission,
  rule: RuleConfig,
  subject: ExchangeSubject,
  { exchange }: GateContext,
): Admission | Promise<Admission> {
  if (admission.kind !== 'pass') return admission
  const { upstream } = admission
  const headers = rule.headers ?? upstream.headers
  if (upstream.tokenExchange === undefined || !headers.some(({ source }) => source.kind === 'exchanged'))
    return admission
  const exchanged = exchange?.(subject, upstream, upstream.tokenExchange) ?? noExchange
  return whenKnown(exchanged, (found) => withToken(admission, headers, found))
}

function withToken(admission: Pass, headers: UpstreamConfig['headers'], exchanged: Exchanged): Admission {
  if (exchanged.kind === 'unavailable') return exchanged
  const added = exchangedHeaders(headers, exchanged.token)
  if (added === undefined)
    return { kind: 'unavailable', code: 'ERR_TOKEN_EXCHANGE', why: 'the token cannot be sent as a bearer token' }
  return { ...admission, identity: [...admission.identity, ...added] }
}

/**
 * Whether a challenge may offer Basic. Browsers show a dialog for it, also for the requests of
 * scripts, and send `Sec-Fetch-Site` with each request.
 */
function isNoBrowser({
  isPage,
  isFrame,
  secFetchSite,
  cookie,
  origin,
}: Pick<RequestFacts, 'isPage' | 'isFrame' | 'secFetchSite' | 'cookie' | 'origin'>): boolean {
  return !isPage && !isFrame && secFetchSite === undefined && cookie === undefined && origin === undefined
}
