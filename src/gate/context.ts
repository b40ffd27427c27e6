import type { Evaluated, EvaluatedRequest } from '../authzen/evaluations.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { ProviderConfig } from '../config/model/provider.ts'
import type { RequirementConfig } from '../config/model/requirement.ts'
import type { RuleConfig } from '../config/model/rule.ts'
import type {
  AccessKeysConfig,
  AccessTokensConfig,
  AuthorizeWithConfig,
  ServiceAccountsConfig,
  TokenExchangeConfig,
  UpstreamConfig,
} from '../config/model/upstream.ts'
import type { Clock } from '../core/clock.ts'
import type { Credentials } from '../core/credentials.ts'
import { matchesAny, type NamePattern } from '../core/patterns.ts'
import type { Site } from '../core/site.ts'
import { cookieNames } from '../http/cookies.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import { droppedTexts, exchangedHeaders, type MissingHeader } from '../identity/claim-headers.ts'
import type { SignedIdentities } from '../identity/signed/signed-identity.ts'
import type { Log } from '../observe/log.ts'
import type { Principal, PrincipalRecord } from '../session/record/record.ts'
import type { KeyIdentity } from '../tokens/access-keys.ts'
import type { TokenIdentity } from '../tokens/access-tokens.ts'
import type { CertificateIdentity, CertificateSource } from '../tokens/client-certificates.ts'
import type { Exchanged, ExchangeSubject } from '../tokens/exchanged-tokens.ts'
import type { AccountIdentity } from '../tokens/service-accounts.ts'
import type { Admission, CallerChallenges, Pass } from './admission.ts'
import { challengeOf } from './bearer.ts'
import type { Identity, RealmOfPerson } from './identify.ts'
import type { HeadersForUpstream } from './identity-headers.ts'
import { type Unmet, unmetRequirement, unmetStepUp } from './rules/requirement.ts'
import type { Route, RouteTable } from './rules/route-table.ts'
import type { Trace } from './trace.ts'

export interface AdmitConfig extends Pick<GatewayConfig, 'upstreams' | 'reservedPrefix'> {
  readonly session: Pick<GatewayConfig['session'], 'deviceBinding'>
  readonly providers: readonly Pick<ProviderConfig, 'name' | 'prefix'>[]
}

export interface AdmitParts {
  readonly routes: RouteTable
  /** Identifies the sender of a `Cookie` header, for an upstream. */
  readonly identify: (cookieHeader: string | undefined, upstream: UpstreamConfig) => Identity | Promise<Identity>
  /** Who sends an access token, for an upstream, from an address. Absent: no token is accepted. */
  readonly identifyToken?: Identify<string, AccessTokensConfig, TokenIdentity>
  /** The hosts that share a session. Absent: each host has a session of its own. */
  readonly site?: Site | undefined
  /** See `SessionCookie.expireFormer`. Absent: browsers have no former cookies. */
  readonly expireFormer?: (facts: Pick<RequestFacts, 'cookie' | 'host'>) => readonly string[]
  /** Who sends Basic credentials, for an upstream, from an address. Absent: no service accounts. */
  readonly identifyAccount?: Identify<Credentials, ServiceAccountsConfig, AccountIdentity>
  /** Who has made a key, for an upstream, and from which address it comes. Absent: no keys. */
  readonly identifyKey?: Identify<string, AccessKeysConfig, KeyIdentity>
  /** Who sends a request with a client certificate. Absent: no certificate is accepted. */
  readonly identifyCertificate?: (
    source: CertificateSource,
    upstream: Pick<UpstreamConfig, 'clientCertHeader'>,
  ) => CertificateIdentity | undefined
  /** The token of a subject for an upstream, in exchange for its access token. */
  readonly exchange?: (
    subject: ExchangeSubject,
    upstream: UpstreamConfig,
    wanted: TokenExchangeConfig,
  ) => Exchanged | Promise<Exchanged>
  /** Asks a policy decision point. Absent: it is not available. */
  readonly evaluate?: (request: EvaluatedRequest, config: AuthorizeWithConfig) => Evaluated | Promise<Evaluated>
  /** Whether browsers send session cookies only within the site (`SameSite=Strict`). */
  readonly isStrict: boolean
  readonly identities: Pick<SignedIdentities, 'isReady' | 'of'>
  readonly clock: Clock
  readonly log: Log
  /** Absent: nothing is told. */
  readonly trace?: Trace | undefined
}

/** Who sends credentials that an upstream accepts. `client` is an address. */
type Identify<Sent, Accepts, Identity> = (
  credentials: Sent,
  upstream: UpstreamConfig,
  accepts: Accepts,
  client: string,
) => Identity | Promise<Identity>

/** What all parts of the decision share. */
export interface GateContext extends AdmitParts {
  readonly config: AdmitConfig
  readonly headers: HeadersForUpstream
  /** The names of cookies that belong to one person. */
  readonly personal: readonly NamePattern[]
}

export const nothing: readonly string[] = []

export const noKey = {
  kind: 'unavailable',
  code: 'ERR_STORE_UNAVAILABLE',
  why: 'no signing key was read from the store yet',
} as const
const noDecisionPoint: Evaluated = {
  kind: 'unavailable',
  code: 'ERR_DECISION_UNAVAILABLE',
  why: 'there is no connection to the policy decision point',
}
const noExchange = { kind: 'unavailable', code: 'ERR_TOKEN_EXCHANGE', why: 'there is no provider for it' } as const

/** Calls `next` at once, unless the value is a promise, because most requests wait for nothing. */
export function whenKnown<T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(next) : next(value)
}

/** Why the requirements of a rule are not met by a principal; `undefined` when they are. */
export function unmetBy(
  { claims, authentication }: PrincipalRecord,
  { clockToleranceMs: tolerance }: Pick<RealmOfPerson, 'clockToleranceMs'>,
  rule: Pick<RuleConfig, 'require' | 'stepUp'>,
  { method, forwarded }: RequestFacts,
  { clock, trace }: GateContext,
): Unmet | undefined {
  if (rule.require.length === 0 && rule.stepUp === undefined) return undefined
  const { clientAddress } = forwarded
  const now = clock.now()
  const tell =
    trace && ((requirement: RequirementConfig, unmet?: Unmet) => trace({ step: 'requirement', requirement, unmet }))
  const unmet = unmetRequirement(rule, { claims, method, clientAddress, now }, tell)
  if (unmet !== undefined || rule.stepUp === undefined) return unmet
  const insufficient = unmetStepUp(rule, authentication, { now, tolerance })
  trace?.({ step: 'step-up', stepUp: rule.stepUp, unmet: insufficient })
  return insufficient
}

export function withoutHeader({ missing, dropped }: MissingHeader): Unmet {
  const reasons = dropped.filter(({ name }) => name === missing)
  const code = reasons.some(({ isWithheld }) => isWithheld) ? 'ERR_CLAIM_WITHHELD' : 'ERR_FORBIDDEN'
  return reasons.length > 0
    ? { code, why: `a required header cannot be sent: ${droppedTexts(reasons).join('; ')}` }
    : { code: 'ERR_CLAIM_ABSENT', why: `the claim for the required header ${missing} is missing` }
}

/** How a request can get access without a session, if the rule allows that. */
export function challengesOf(facts: RequestFacts, { upstream, rule }: Route): CallerChallenges {
  return {
    challenge: rule.accessTokens && challengeOf(facts, upstream, rule),
    offersBasic: (rule.serviceAccounts !== undefined || rule.keys === true) && isNoBrowser(facts),
  }
}

/** The cookies of a request that may belong to another person than its sender. */
export function personalCookies({ cookie }: RequestFacts, { personal }: GateContext): readonly string[] {
  return cookieNames(cookie, '').filter((name) => matchesAny(personal, name))
}

/** Asks the policy decision point of the upstream about a request that the rules admit. */
export function withDecision(
  admission: Admission,
  facts: RequestFacts,
  { upstream, rule }: Route,
  principal: Principal,
  { evaluate }: GateContext,
): Admission | Promise<Admission> {
  const { authorizeWith } = upstream
  if (authorizeWith === undefined || rule.authorizeWith === false || admission.kind !== 'pass') return admission
  const { caller } = admission
  const evaluated =
    evaluate?.({ facts, upstream, rule, record: principal.record, caller }, authorizeWith) ?? noDecisionPoint
  return whenKnown(evaluated, (decision): Admission => {
    if (decision.kind === 'permitted') return admission
    if (decision.kind === 'unavailable') return { ...decision, pass: admission }
    const denial = { code: decision.code, why: decision.why, upstream, rule, principal, caller } as const
    return rule.mode === 'observe'
      ? { ...admission, observed: admission.observed ?? denial }
      : { kind: 'forbidden', ...denial, setCookies: nothing }
  })
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
