import type { GatewayConfig } from '../config/model/gateway.ts'
import type { ProviderConfig } from '../config/model/provider.ts'
import type { RuleConfig } from '../config/model/rule.ts'
import type {
  AccessTokensConfig,
  ServiceAccountsConfig,
  TokenExchangeConfig,
  UpstreamConfig,
} from '../config/model/upstream.ts'
import type { Caller } from '../core/caller.ts'
import { type Clock, isWithin } from '../core/clock.ts'
import { matchesAny, type NamePattern } from '../core/name-pattern.ts'
import { maxReturnToLength, signInUrl } from '../core/return-to.ts'
import type { Site } from '../core/site.ts'
import { cookieNames } from '../http/cookies.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import { droppedTexts, exchangedHeaders, type MissingHeader } from '../identity/claim-headers.ts'
import type { SignedIdentities } from '../identity/signed/signed-identity.ts'
import type { Log } from '../observe/log.ts'
import { foreignCookies } from '../session/cookies/browser-cookies.ts'
import { cookiesOf } from '../session/cookies/session-cookies.ts'
import type { StoredSession } from '../session/record/record.ts'
import type { TokenIdentity } from '../tokens/access-tokens.ts'
import type { Exchanged } from '../tokens/exchanged-tokens.ts'
import type { AccountIdentity, Credentials } from '../tokens/service-accounts.ts'
import type { Admission, CallerChallenges, Pass } from './admission.ts'
import { basicCredentials, isNoBrowser } from './basic.ts'
import { bearerToken, challengeOf, missingScopes } from './bearer.ts'
import { preflightFields } from './cors.ts'
import { crossSiteReason } from './cross-site.ts'
import { HeadersForUpstream } from './headers-for-upstream.ts'
import type { AnonymousIdentity, Identity, RealmOfPerson } from './identify.ts'
import { type Unmet, unmetRequirement, unmetStepUp } from './rules/requirement.ts'
import type { Route, RouteTable } from './rules/route-table.ts'

/**
 * THE decision. Returns no promise when the session is in memory and needs no refresh, because this
 * is the most frequent case.
 */
export type Admit = (facts: RequestFacts) => Admission | Promise<Admission>

interface AdmitConfig extends Pick<GatewayConfig, 'upstreams' | 'reservedPrefix'> {
  readonly session: Pick<GatewayConfig['session'], 'deviceBinding'>
  readonly providers: readonly Pick<ProviderConfig, 'name' | 'prefix'>[]
}

export interface AdmitParts {
  readonly routes: RouteTable
  /** Identifies the sender of a `Cookie` header, for an upstream. */
  readonly identify: (cookieHeader: string | undefined, upstream: UpstreamConfig) => Identity | Promise<Identity>
  /**
   * Who sends a request with an access token, for an upstream. `client` is the address. Absent: no
   * token is accepted.
   */
  readonly identifyToken?: (
    token: string,
    upstream: UpstreamConfig,
    accepts: AccessTokensConfig,
    client: string,
  ) => TokenIdentity | Promise<TokenIdentity>
  /** The hosts that share a session. Absent: each host has a session of its own. */
  readonly site?: Site | undefined
  /** See `SessionCookie.expireFormer`. Absent: browsers have no former cookies. */
  readonly expireFormer?: (facts: Pick<RequestFacts, 'cookie' | 'host'>) => readonly string[]
  /**
   * Who sends a request with Basic credentials, for an upstream. `client` is the address. Absent:
   * there are no service accounts.
   */
  readonly identifyAccount?: (
    credentials: Credentials,
    upstream: UpstreamConfig,
    accepts: ServiceAccountsConfig,
    client: string,
  ) => AccountIdentity | Promise<AccountIdentity>
  /** The token of a session for an upstream, in exchange for its access token. */
  readonly exchange?: (
    session: StoredSession,
    upstream: UpstreamConfig,
    wanted: TokenExchangeConfig,
  ) => Exchanged | Promise<Exchanged>
  /** Whether browsers send session cookies only within the site (`SameSite=Strict`). */
  readonly isStrict: boolean
  readonly identities: Pick<SignedIdentities, 'isReady' | 'of'>
  readonly clock: Clock
  readonly log: Log
}

const nothing: readonly string[] = []
const noKey = {
  kind: 'unavailable',
  code: 'ERR_STORE_UNAVAILABLE',
  why: 'no signing key was read from the store yet',
} as const
const noExchange = { kind: 'unavailable', code: 'ERR_TOKEN_EXCHANGE', why: 'there is no provider for it' } as const
/** No sign-in that begins after a request is complete within this time, in ms. */
const fastestSignInMs = 1_000

export function createAdmit(config: AdmitConfig, parts: AdmitParts): Admit {
  const gate = new Gate(config, parts)
  return (facts) => gate.admit(facts)
}

/** Decides about requests with one configuration. See {@link Admit}. */
class Gate {
  readonly #config: AdmitConfig
  readonly #parts: AdmitParts
  readonly #headers: HeadersForUpstream
  /** The names of cookies that belong to one person. */
  readonly #personal: readonly NamePattern[]

  constructor(config: AdmitConfig, parts: AdmitParts) {
    this.#config = config
    this.#parts = parts
    this.#headers = new HeadersForUpstream(parts)
    this.#personal = config.upstreams.flatMap(({ logout }) => logout.cookies.map(({ names }) => names))
  }

  admit(facts: RequestFacts): Admission | Promise<Admission> {
    const route = this.#parts.routes.route(facts.host, facts.method, facts.target, facts.forwarded.clientAddress)
    if (route === undefined)
      return {
        kind: 'no_route',
        why: `no upstream serves ${facts.host} at this path: compare hosts and path of the upstreams`,
      }
    const { cors, forwardAuth, name } = route.upstream
    if (forwardAuth !== (facts.isAsked !== undefined))
      return {
        kind: 'no_route',
        why: forwardAuth
          ? `another proxy carries the requests of upstreams.${name} (forward_auth): send them there`
          : `the gateway carries the requests of upstreams.${name}: send them here, or set forward_auth`,
      }
    if (cors !== undefined && facts.isPreflight === true)
      return { kind: 'preflight', fields: preflightFields(cors, facts.origin) }
    if (!route.isLogout) return this.#access(facts, route)
    const signOut = { kind: 'sign_out', location: this.#signOutOf(route.upstream) } as const
    if (!route.upstream.logout.passFirst) return signOut
    // Without access, the application does not receive the request, and the person is signed out.
    const after = (first: Admission): Admission => (first.kind === 'pass' ? { ...signOut, first } : signOut)
    const admission = this.#access(facts, route)
    return admission instanceof Promise ? admission.then(after) : after(admission)
  }

  /**
   * The URL of the sign-out for an upstream. With several providers, it names the upstream, because
   * the person may also have a session at a provider of another one.
   */
  #signOutOf({ path, providers: [name, ...others] }: UpstreamConfig): string {
    const { providers, reservedPrefix } = this.#config
    const only = others.length === 0 ? providers.find((provider) => provider.name === name) : undefined
    return only === undefined
      ? `${reservedPrefix}sign-out?return_to=${encodeURIComponent(path)}`
      : `${only.prefix}sign-out`
  }

  #access(facts: RequestFacts, { upstream, rule }: Route): Admission | Promise<Admission> {
    if (rule.access === 'public')
      return {
        kind: 'pass',
        upstream,
        identity: this.#headers.forAnybody(facts, upstream, rule),
        session: undefined,
        caching: 'anybody',
      }
    if (facts.authorization !== undefined) {
      const bearer = rule.accessTokens && bearerToken(facts.authorization)
      if (bearer !== undefined) return this.#accessWithToken(facts, { upstream, rule }, bearer)
      const basic = rule.serviceAccounts && basicCredentials(facts.authorization)
      if (basic !== undefined) return this.#accessOfAccount(facts, { upstream, rule }, basic)
    }
    const identity = this.#parts.identify(facts.cookie, upstream)
    return identity instanceof Promise
      ? identity.then((found) => this.#decide(facts, upstream, rule, this.#withKey(found, upstream)))
      : this.#decide(facts, upstream, rule, this.#withKey(identity, upstream))
  }

  /** A request with an access token. Its session cookie, if any, does not count. */
  #accessWithToken(
    facts: RequestFacts,
    route: Pick<Route, 'upstream' | 'rule'>,
    bearer: Exclude<ReturnType<typeof bearerToken>, undefined>,
  ): Admission | Promise<Admission> {
    const { accessTokens } = route.upstream
    const { identifyToken } = this.#parts
    const identity: TokenIdentity | Promise<TokenIdentity> =
      bearer === 'malformed'
        ? { kind: 'refused', why: 'Authorization is not exactly one bearer token (RFC 6750 §2.1)' }
        : accessTokens === undefined || identifyToken === undefined
          ? { kind: 'refused', why: 'the upstream accepts no access tokens' }
          : identifyToken(bearer.token, route.upstream, accessTokens, facts.forwarded.clientAddress)
    return identity instanceof Promise
      ? identity.then((found) => this.#admitToken(facts, route, found))
      : this.#admitToken(facts, route, identity)
  }

  #admitToken(
    facts: RequestFacts,
    route: Pick<Route, 'upstream' | 'rule'>,
    identity: TokenIdentity,
  ): Admission | Promise<Admission> {
    const { upstream, rule } = route
    if (identity.kind === 'unavailable') return identity
    const refused = { kind: 'caller_refused', caller: 'access_token', upstream } as const
    if (identity.kind === 'refused') {
      const challenge = challengeOf(upstream, rule, 'invalid_token')
      return { ...refused, code: 'ERR_TOKEN_INVALID', why: identity.why, challenge }
    }
    const { session } = identity
    const missing = missingScopes(session.record.claims, upstream, rule)
    if (missing.length > 0) {
      const why = `the access token lacks the scope ${missing.join(', ')}`
      const challenge = challengeOf(upstream, rule, 'insufficient_scope')
      const denial = { setCookies: nothing, upstream, rule, session, caller: 'access_token' } as const
      return { kind: 'forbidden', code: 'ERR_TOKEN_SCOPE', why, challenge, ...denial }
    }
    return this.#withExchanged(this.#admitCaller(facts, route, identity, 'access_token'), rule, session)
  }

  /** A request with Basic credentials. Its session cookie, if any, does not count. */
  #accessOfAccount(
    facts: RequestFacts,
    route: Pick<Route, 'upstream' | 'rule'>,
    basic: Exclude<ReturnType<typeof basicCredentials>, undefined>,
  ): Admission | Promise<Admission> {
    const { serviceAccounts } = route.upstream
    const { identifyAccount } = this.#parts
    const identity: AccountIdentity | Promise<AccountIdentity> =
      basic === 'malformed'
        ? { kind: 'refused', why: 'Authorization is not exactly one name and secret in UTF-8 (RFC 7617 §2)' }
        : serviceAccounts === undefined || identifyAccount === undefined
          ? { kind: 'refused', why: 'the upstream accepts no service accounts' }
          : identifyAccount(basic, route.upstream, serviceAccounts, facts.forwarded.clientAddress)
    return identity instanceof Promise
      ? identity.then((found) => this.#admitAccount(facts, route, found))
      : this.#admitAccount(facts, route, identity)
  }

  #admitAccount(facts: RequestFacts, route: Pick<Route, 'upstream' | 'rule'>, identity: AccountIdentity): Admission {
    const { upstream, rule } = route
    if (identity.kind === 'unavailable') return identity
    if (identity.kind === 'refused' || identity.kind === 'limited') {
      const { why } = identity
      const refused = { kind: 'caller_refused', caller: 'service_account', why, upstream } as const
      return identity.kind === 'limited'
        ? { ...refused, code: 'ERR_TOO_MANY_REQUESTS', waitMs: identity.waitMs }
        : { ...refused, code: 'ERR_ACCOUNT_INVALID', account: identity.account, ...challengesOf(facts, upstream, rule) }
    }
    const { session } = identity
    const name = String(session.record.claims['client_id'])
    if (rule.serviceAccounts !== 'all' && rule.serviceAccounts?.includes(name) !== true) {
      const denial = { setCookies: nothing, upstream, rule, session, caller: 'service_account' } as const
      return { kind: 'forbidden', code: 'ERR_FORBIDDEN', why: `service_accounts of the rule lacks ${name}`, ...denial }
    }
    // A browser repeats Basic credentials by itself once a person has entered them for this host.
    const crossSite = crossSiteReason(facts, upstream)
    if (crossSite !== undefined)
      return { kind: 'cross_site', why: crossSite, upstream, rule, session, caller: 'service_account' }
    return this.#admitCaller(facts, route, identity, 'service_account')
  }

  /** A caller whose credentials are accepted: the requirements of the rule decide. */
  #admitCaller(
    facts: RequestFacts,
    { upstream, rule }: Pick<Route, 'upstream' | 'rule'>,
    identity: { readonly session: StoredSession; readonly clockToleranceMs: number },
    caller: Caller,
  ): Admission {
    if (upstream.signedIdentity !== undefined && !this.#parts.identities.isReady(upstream.signedIdentity)) return noKey
    const { session } = identity
    const denial = { setCookies: nothing, upstream, rule, session, caller } as const
    const unmet = this.#unmetOf(rule, facts, session, identity)
    if (unmet?.code === 'ERR_STEP_UP' && rule.mode !== 'observe') {
      const challenge = challengeOf(upstream, rule, 'insufficient_user_authentication')
      return { kind: 'caller_refused', caller, code: 'ERR_STEP_UP', why: unmet.why, challenge, upstream }
    }
    if (unmet !== undefined && rule.mode !== 'observe') return { kind: 'forbidden', ...unmet, ...denial }
    const sent = this.#headers.forPerson(facts, upstream, rule, session)
    if ('missing' in sent) return { kind: 'forbidden', ...withoutHeader(sent), ...denial }
    return {
      kind: 'pass',
      upstream,
      identity: sent.fields,
      dropped: sent.dropped,
      session: undefined,
      caller,
      caching: upstream.cache,
      // The cookies in the client may belong to another person than the credentials.
      withheldCookies: cookieNames(facts.cookie, '').filter((name) => matchesAny(this.#personal, name)),
      observed: unmet && { ...unmet, ...denial },
    }
  }

  /**
   * Adds the exchanged token to a request that the upstream gets. Without one, the upstream does
   * not get the request, because the access token must not take its place.
   */
  #withExchanged(admission: Admission, rule: RuleConfig, session: StoredSession): Admission | Promise<Admission> {
    if (admission.kind !== 'pass') return admission
    const { upstream } = admission
    const headers = rule.headers ?? upstream.headers
    if (upstream.tokenExchange === undefined || !headers.some(({ source }) => source.kind === 'exchanged'))
      return admission
    const exchanged = this.#parts.exchange?.(session, upstream, upstream.tokenExchange) ?? noExchange
    return exchanged instanceof Promise
      ? exchanged.then((found) => withToken(admission, headers, found))
      : withToken(admission, headers, exchanged)
  }

  /** Without a key, nobody can be named to an upstream that gets a signed identity. */
  #withKey(identity: Identity, { signedIdentity }: UpstreamConfig): Identity {
    if (signedIdentity === undefined || identity.kind !== 'signed_in' || this.#parts.identities.isReady(signedIdentity))
      return identity
    return noKey
  }

  #decide(
    facts: RequestFacts,
    upstream: UpstreamConfig,
    rule: RuleConfig,
    identity: Identity,
  ): Admission | Promise<Admission> {
    if (identity.kind === 'signed_in') {
      const admission = this.#admitPerson(facts, upstream, rule, identity)
      return upstream.tokenExchange === undefined ? admission : this.#withExchanged(admission, rule, identity.session)
    }
    // Optional paths stay open when the store is unavailable. The request then has no identity.
    if (rule.access === 'optional') {
      const anybody = this.#headers.forAnybody(facts, upstream, rule)
      const pass = { kind: 'pass', upstream, identity: anybody, session: undefined, caching: 'varies' } as const
      if (identity.kind !== 'anonymous') return pass
      const { misuse } = identity
      if (misuse !== undefined) return { ...pass, misuse, expire: () => misuse.setCookies }
      if (identity.ended === undefined) return pass
      // The application must not take anybody for the person whose session has ended.
      const withheldCookies = cookieNames(facts.cookie, '').filter((name) => matchesAny(this.#personal, name))
      return { ...pass, withheldCookies, expire: this.#expiry(identity, facts, upstream) }
    }
    if (identity.kind === 'unavailable') return identity
    return this.#signInFirst(facts, upstream, rule, identity)
  }

  /**
   * The person has to sign in before the upstream gets the request. `insufficient`: the person is
   * signed in, but has to authenticate as the rule requires.
   */
  #signInFirst(
    facts: RequestFacts,
    upstream: UpstreamConfig,
    rule: RuleConfig,
    identity: Omit<AnonymousIdentity, 'kind'>,
    insufficient?: string,
  ): Admission {
    const { realm, staleCookie: sessionEnded, ended, misuse } = identity
    const prefix = realm?.prefix ?? this.#config.reservedPrefix
    const stepUp = rule.mode === 'observe' ? undefined : rule.stepUp
    const needed = { prefix, sessionEnded, stepUp, insufficient, misuse, ...challengesOf(facts, upstream, rule) }
    const signIn = signInUrl(prefix, undefined, { stepUp })
    const mayRedirect =
      !facts.isFrame && (rule.unauthenticated === 'redirect' || (rule.unauthenticated === 'auto' && facts.isPage))
    // After a sign-in the browser uses GET, which must not go to the URL that a form was sent to.
    if (mayRedirect && facts.isPage && facts.method === 'POST') {
      const form = { upstream, expire: this.#expiry(identity, facts, upstream), stepUp }
      return { kind: 'sign_in', location: signIn, setCookies: nothing, leavesPage: sessionEnded, form, ...needed }
    }
    // The browser may have the cookie of a new session already.
    const isStale = sessionEnded && ended?.isExpired() !== true
    // The cookies of a first response do not reach the browser.
    if (facts.isAsked !== 'first') ended?.noteExpired()
    const former = this.#parts.expireFormer?.(facts) ?? nothing
    const stale = isStale ? this.#expireAll(realm, facts, upstream) : (misuse?.setCookies ?? nothing)
    const setCookies = former.length === 0 ? stale : [...former, ...stale]
    if (!mayRedirect) return { kind: 'unauthorized', location: signIn, setCookies, ...needed }
    const return_to = facts.target.path + facts.target.query
    // The sign-in would ignore a longer return_to, and such a long URL may exceed the limit for a
    // request head.
    if (return_to.length > maxReturnToLength) return { kind: 'sign_in', location: signIn, setCookies, ...needed }
    if (insufficient === undefined && this.#parts.isStrict && isLinkOnOtherSite(facts))
      return { kind: 'reload', location: return_to }
    const again = sessionEnded && facts.isPage && facts.secFetchSite === 'same-origin'
    const options = { again, endedElsewhere: isStale && ended?.isElsewhere === true, stepUp }
    const location = this.#signInAt(facts.host, return_to, (to) => signInUrl(prefix, to, options))
    return { kind: 'sign_in', location, setCookies, ...(again && { leavesPage: true }), ...needed }
  }

  /**
   * The URL of a sign-in. If another host of the site is the one where people sign in, the browser
   * goes there at once. The endpoint at this host would redirect it, too.
   */
  #signInAt(host: string, path: string, signIn: (returnTo: string) => string): string {
    const { site } = this.#parts
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
  #expiry(
    { ended, realm }: Pick<AnonymousIdentity, 'ended' | 'realm'>,
    facts: RequestFacts,
    upstream: UpstreamConfig,
  ): (() => readonly string[]) | undefined {
    if (ended === undefined) return undefined
    const end = performance.now() + fastestSignInMs
    return () => {
      if (performance.now() > end || ended.isExpired()) return nothing
      ended.noteExpired()
      return this.#expireAll(realm, facts, upstream)
    }
  }

  #expireAll(
    realm: RealmOfPerson | undefined,
    { cookie, target }: RequestFacts,
    { logout }: UpstreamConfig,
  ): readonly string[] {
    return realm?.cookie.expireAll(cookie, logout.cookies, { path: target.path }) ?? nothing
  }

  #admitPerson(
    facts: RequestFacts,
    upstream: UpstreamConfig,
    rule: RuleConfig,
    { session, realm }: Extract<Identity, { kind: 'signed_in' }>,
  ): Admission {
    const crossSite = crossSiteReason(facts, upstream)
    if (crossSite !== undefined) return { kind: 'cross_site', why: crossSite, upstream, rule, session }
    const unmet = this.#unmetDevice(rule, upstream, session) ?? this.#unmetOf(rule, facts, session, realm)
    if (unmet !== undefined && (rule.mode !== 'observe' || unmet.code === 'ERR_DEVICE_BINDING'))
      return unmet.code === 'ERR_STEP_UP'
        ? this.#signInFirst(facts, upstream, rule, { realm, staleCookie: false }, unmet.why)
        : { kind: 'forbidden', ...unmet, setCookies: nothing, upstream, rule, session }
    const sent = this.#headers.forPerson(facts, upstream, rule, session)
    if ('missing' in sent)
      return { kind: 'forbidden', ...withoutHeader(sent), setCookies: nothing, upstream, rule, session }
    const foreign = this.#withoutForeign(facts, upstream, session, realm)
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
      observed: unmet && { ...unmet, upstream, rule, session },
    }
  }

  /** Whether the session has to be bound here, and is not. */
  #unmetDevice(rule: RuleConfig, upstream: UpstreamConfig, { record }: StoredSession): Unmet | undefined {
    const isNeeded = rule.needsDeviceBinding ?? upstream.needsDeviceBinding
    if (!isNeeded || record.device !== undefined) return undefined
    const graceMs = this.#config.session.deviceBinding.registrationGraceMs
    if (isWithin(graceMs, record.created_at, this.#parts.clock.now())) return undefined
    return { code: 'ERR_DEVICE_BINDING', why: 'the session is not bound to a key of the device' }
  }

  #unmetOf(
    rule: RuleConfig,
    { method, forwarded }: RequestFacts,
    { record }: StoredSession,
    { clockToleranceMs: tolerance }: Pick<RealmOfPerson, 'clockToleranceMs'>,
  ): Unmet | undefined {
    if (rule.require.length === 0 && rule.stepUp === undefined) return undefined
    const { clientAddress } = forwarded
    const now = this.#parts.clock.now()
    return (
      unmetRequirement(rule, { claims: record.claims, method, clientAddress, now }) ??
      unmetStepUp(rule, record.authentication, { now, tolerance })
    )
  }

  /** Withholds the application cookies of other people, and expires them in the browser. */
  #withoutForeign(
    { cookie, host, target }: RequestFacts,
    { logout }: UpstreamConfig,
    { record }: StoredSession,
    realm: RealmOfPerson,
  ): Pick<Pass, 'withheldCookies' | 'expire'> | undefined {
    if (this.#personal.length === 0) return undefined
    const withheldCookies = foreignCookies(cookie, record, this.#personal, { host, path: target.path })
    if (withheldCookies.length === 0) return undefined
    const options = { applicationCookies: logout.cookies, kept: record.browser_cookies ?? [] }
    return { withheldCookies, expire: () => realm.cookie.expireWherever(withheldCookies, target.path, options) }
  }
}

function withToken(admission: Pass, headers: UpstreamConfig['headers'], exchanged: Exchanged): Admission {
  if (exchanged.kind === 'unavailable') return exchanged
  const added = exchangedHeaders(headers, exchanged.token)
  if (added === undefined)
    return { kind: 'unavailable', code: 'ERR_TOKEN_EXCHANGE', why: 'the token cannot be sent as a bearer token' }
  return { ...admission, identity: [...admission.identity, ...added] }
}

/** How a request can get access without a session, if the rule allows that. */
function challengesOf(facts: RequestFacts, upstream: UpstreamConfig, rule: RuleConfig): CallerChallenges {
  return {
    challenge: rule.accessTokens && challengeOf(upstream, rule),
    offersBasic: rule.serviceAccounts !== undefined && isNoBrowser(facts),
  }
}

function withoutHeader({ missing, dropped }: MissingHeader): Unmet {
  const reasons = dropped.filter(({ name }) => name === missing)
  const code = reasons.some(({ isWithheld }) => isWithheld) ? 'ERR_CLAIM_WITHHELD' : 'ERR_FORBIDDEN'
  return reasons.length > 0
    ? { code, why: `a required header cannot be sent: ${droppedTexts(reasons).join('; ')}` }
    : { code: 'ERR_CLAIM_ABSENT', why: `the claim for the required header ${missing} is missing` }
}

/**
 * Whether the browser follows a link on another site. For the load that a page of the gateway
 * repeats, the result is `false`, because that page is on this site.
 */
function isLinkOnOtherSite({ method, isPage, secFetchSite }: RequestFacts): boolean {
  return isPage && method === 'GET' && secFetchSite === 'cross-site'
}
