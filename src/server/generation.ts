import { setTimeout as wait } from 'node:timers/promises'
import { siteOf } from '../config/hosts.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import { clientOf } from '../core/addresses.ts'
import type { Clock } from '../core/clock.ts'
import { matchesAny } from '../core/name-pattern.ts'
import type { SessionKey } from '../core/names.ts'
import { Keyring } from '../core/seal.ts'
import { Challenges } from '../device/challenge.ts'
import { createDeviceMetrics } from '../device/device-metrics.ts'
import { MisuseLog } from '../device/misuse.ts'
import { ForwardAuthEndpoints } from '../check-requests/endpoints.ts'
import { createCheck } from '../check-requests/ext-authz.ts'
import { ForwardAuth } from '../check-requests/forward-auth.ts'
import type { UnaryMethod } from '../check-requests/grpc.ts'
import type { Admission } from '../gate/admission.ts'
import { type Admit, createAdmit } from '../gate/admit.ts'
import { createCors } from '../gate/cors.ts'
import { identify } from '../gate/identify.ts'
import { createLogoutLinks } from '../gate/logout-links.ts'
import { TrustedProxies } from '../http/forwarded.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import { UntrustedProxies } from '../http/untrusted-proxies.ts'
import { EventStreamLimits } from '../limits/event-stream-limits.ts'
import { Shares } from '../limits/fair-queue.ts'
import type { MemoryBudget } from '../limits/memory-budget.ts'
import type { RejectedClients } from '../limits/rejected-clients.ts'
import { LogoutCalls } from '../logout/logout-calls.ts'
import type { Audit } from '../observe/audit.ts'
import type { Log } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { RequestSink } from '../observe/request-record.ts'
import type { Tracer } from '../observe/tracing.ts'
import { Pages } from '../pages/pages.ts'
import { connectionsFor } from '../provider/outbound.ts'
import type { LiveStreams } from '../proxy/live-streams.ts'
import { callLogout } from '../proxy/logout-call.ts'
import type { ProxyParts } from '../proxy/parts.ts'
import { Upstreams } from '../proxy/upstream.ts'
import { SessionCookie } from '../session/cookies/cookie.ts'
import { createSessions } from '../session/live/create-sessions.ts'
import type { SessionEndings } from '../session/live/endings.ts'
import { ExpiredCookies } from '../session/cookies/expired-cookies.ts'
import { LogoutJobs } from '../session/live/logout-jobs.ts'
import type { NearCaches } from '../session/live/near-caches.ts'
import type { PendingEndings } from '../session/live/pending-endings.ts'
import { ProviderCookie } from '../session/cookies/provider-cookie.ts'
import { audienceOf } from '../session/record/record.ts'
import { cookiesOf, SessionCookies } from '../session/cookies/session-cookies.ts'
import type { Sessions } from '../session/live/sessions.ts'
import { hasSeveral, withOneSession } from '../session/cookies/several-cookies.ts'
import type { SessionStore } from '../session/store/store.ts'
import { SignedIdentities } from '../identity/signed/signed-identity.ts'
import { algorithmsOf, SigningKeys } from '../identity/signed/signing-keys.ts'
import { AccessTokens } from '../tokens/access-tokens.ts'
import { ExchangedTokens } from '../tokens/exchanged-tokens.ts'
import { type AccountLimits, ServiceAccounts } from '../tokens/service-accounts.ts'
import type { TokenEndings } from '../tokens/token-endings.ts'
import { AdmissionHandler } from './admission-handler.ts'
import { Decisions } from './decisions.ts'
import { createEndpoints } from './endpoints.ts'
import { KeptFormHandler } from './kept-form-handler.ts'
import type { ListenerHandlers } from '../listener/listener.ts'
import { Realms } from './realms.ts'
import { Refusals } from './refusals.ts'
import { RequestHandler } from './request-handler.ts'
import { runInOrder } from './shutdown.ts'
import { SignalReceivers } from './signal-receivers.ts'
import { type StreamSessions, watchLiveSessions } from './watch-live-sessions.ts'

/** What all generations share: it outlives a reload. */
export interface SharedParts {
  readonly store: SessionStore
  readonly pending: PendingEndings
  readonly streamSessions: StreamSessions
  readonly caches: NearCaches
  readonly live: LiveStreams
  readonly tokenEndings: TokenEndings
  readonly accountLimits: AccountLimits
  readonly rejectedClients: RejectedClients
  readonly memory: Pick<MemoryBudget, 'admits'>
  readonly log: Log
  readonly clock: Clock
  readonly audit: Audit
  readonly sink: RequestSink
  readonly tracer: Tracer | undefined
  readonly metrics: Metrics
}

export interface GenerationParts extends SharedParts {
  /**
   * Called when a session is in use: bytes of an upload or a download have moved, or the client has
   * sent data through a tunnel.
   */
  readonly onActivity: (session: SessionKey) => void
}

/** Everything that serves requests by one configuration. A reload replaces it as a whole. */
export interface Generation {
  readonly handlers: ListenerHandlers
  readonly sessions: Sessions
  readonly endings: SessionEndings
  readonly realms: Realms
  readonly signingKeys: SigningKeys
  readonly signalReceivers: SignalReceivers
  readonly trusted: TrustedProxies
  /** Responds to a check of Envoy over gRPC. */
  readonly check: UnaryMethod
  /** Stays open after {@link Generation.retire}, because an exchange has no time limit. */
  readonly upstreams: Upstreams
  /** Lets the calls to the providers finish, then closes everything except `upstreams`. */
  retire(): Promise<void>
  /** Closes everything. Called when the gateway has no requests any more. */
  close(): Promise<void>
}

/** Builds a generation, and starts the discovery of its providers. */
export async function createGeneration(config: GatewayConfig, parts: GenerationParts): Promise<Generation> {
  const { store, pending, caches, live, tokenEndings, accountLimits, rejectedClients, log, clock, audit, metrics } =
    parts
  const keyring = new Keyring(config.session.keys)
  const audiences = config.providers.map(audienceOf)
  const cookie = new SessionCookie(config.session.cookie)
  const trusted = new TrustedProxies(config.trustedProxies)
  const jobs = createJobs(config, keyring)
  const { sessions, endings } = createSessions({
    ...{ store, pending, caches, keyring, clock, log, audit, audiences, jobs },
    config: config.session,
  })
  const signingKeys = new SigningKeys({
    ...{ store, keyring, clock, log },
    audience: audienceOf(config.providers[0]),
    config: config.signingKeys,
    algorithms: algorithmsOf(config.upstreams),
  })
  const sessionCookies = new SessionCookies({ sessions, clock })
  const personalCookies = config.upstreams.flatMap(({ logout }) => logout.cookies.map(({ names }) => names))
  const expiredCookies = new ExpiredCookies()
  endings.onEnded((keys, where) => {
    live.closeAll(keys)
    // The browser may have signed in again at that process: its cookie is of the new session.
    if (where === 'elsewhere') for (const key of keys) expiredCookies.add(key)
  })
  const providerCookie = new ProviderCookie(cookie)
  const realms = new Realms(config, {
    ...{ store, sessions, endings, keyring, providerCookie, clock, log, audit, metrics },
  })
  const deviceMetrics = createDeviceMetrics(metrics)
  const misuseLog = new MisuseLog({ config: config.session.deviceBinding, endings, deviceMetrics, clock, log, audit })
  const accessTokens = new AccessTokens({
    ...{ clock, endings: tokenEndings },
    introspections: new Shares(connectionsFor.introspections),
  })
  if (config.upstreams.some((upstream) => upstream.accessTokens !== undefined)) {
    endings.onEnded((keys) => tokenEndings.noteEnded(keys))
    endings.onLogoutOrder((order) => tokenEndings.noteOrder(order))
  }
  const exchangedTokens = new ExchangedTokens({ clock, log })
  if (config.upstreams.some((upstream) => upstream.tokenExchange !== undefined))
    endings.onEnded((keys) => exchangedTokens.noteEnded(keys))
  const serviceAccounts = new ServiceAccounts({
    clock,
    limits: accountLimits,
    issuer: config.externalUrl.origin,
  })
  const pages = new Pages(config.pages, config.reservedPrefix)
  const upstreams = new Upstreams(config.upstreams, {
    isTracing: parts.tracer !== undefined,
    reservedPrefix: config.reservedPrefix,
  })
  const logoutCalls = [...jobs.values()].map((each) => startLogoutCalls(config, { ...parts, jobs: each, upstreams }))
  endings.onEnded((keys, where) => logoutCalls.forEach((calls) => calls.noteEnded(keys, where)))
  const watch = watchLiveSessions({ live, sessions, known: parts.streamSessions, store, clock, log })

  const { reservedPrefix } = config

  const site = siteOf(config)
  const refusals = new Refusals(config, { pages, log })
  const endpoints = await createEndpoints(config, {
    ...{ realms, store, endings, expiredCookies, providerCookie, keyring, clock, log, audit, rejectedClients },
    hasGeneratedKeys: config.session.isKeyGenerated,
    ...{ pages, signingKeys, live, site, deviceMetrics, misuseLog, challenges: new Challenges({ keyring, clock }) },
    eventStreams: new EventStreamLimits(config.limits, rejectedClients),
    reservedPrefix,
    showsSessions: config.session.page,
    stepUps: config.upstreams.flatMap(({ rules }) => rules.flatMap(({ stepUp }) => stepUp ?? [])),
    isLogoutLink: createLogoutLinks(config.upstreams),
    refusals,
  })
  const admitOne = createAdmit(config, {
    site,
    expireFormer: (facts) => realms.all.flatMap((realm) => realm.cookie.expireFormer(facts.cookie, facts.host)),
    identify: (header, upstream) => identify(header, realms.ofUpstream(upstream), expiredCookies),
    identifyToken: (token, upstream, accepts, client) =>
      accessTokens.identify(token, upstream, accepts, realms.ofUpstream(upstream), clientOf(client)),
    identifyAccount: (credentials, upstream, accepts, client) =>
      serviceAccounts.identify(credentials, upstream, accepts, clientOf(client)),
    exchange: (session, upstream, wanted) => {
      const realm = realms.ofUpstream(upstream).find(({ audience }) => audience === session.audience)
      return realm === undefined ? unknownProvider : exchangedTokens.of(session, upstream, wanted, realm.provider)
    },
    identities: new SignedIdentities(config, { keys: signingKeys, clock }),
    isStrict: cookie.isStrict,
    ...{ clock, log },
  })
  const oneSessionOf = (facts: RequestFacts) => withOneSession({ ...facts, path: facts.target.path }, realms.all)
  const admitWithOne = async (facts: RequestFacts): Promise<Admission> => {
    const { cookie: one, expireAdded } = await oneSessionOf(facts)
    const admission = await admitOne({ ...facts, cookie: one })
    if (admission.kind !== 'pass' || expireAdded.length === 0) return admission
    return { ...admission, expire: () => [...expireAdded, ...(admission.expire?.() ?? [])] }
  }
  const admit: Admit = (facts) => (hasSeveral(facts.cookie, realms.all) ? admitWithOne(facts) : admitOne(facts))
  const forwardAuth = new ForwardAuth(config, {
    ...{ admit, trusted, pages, log, audit, misuseLog },
    isGatewayCookie: cookie.isGatewayCookie,
  })
  const proxy: ProxyParts = {
    ...{ upstreams, live, log, pages, clock },
    isGatewayCookie: cookie.isGatewayCookie,
    isNotedCookie: (name) => matchesAny(personalCookies, name),
    notesCookies: personalCookies.length > 0,
    keepCookies: (session, upstream, cookies) => sessionCookies.keep(session, upstream, cookies),
    bodyIdleTimeoutMs: config.limits.bodyIdleTimeoutMs,
    bodyRateBytesPerSecond: config.limits.bodyRateBytesPerSecond,
    onActivity: parts.onActivity,
  }
  const decisions = new Decisions({ admit, audit, misuseLog, memory: parts.memory }, refusals)
  const keptForms = new KeptFormHandler({
    ...{ reservedPrefix, realms, refusals, pages, log, audit, proxy },
    withOneCookie: async (facts) =>
      hasSeveral(facts.cookie, realms.all) ? { ...facts, cookie: (await oneSessionOf(facts)).cookie } : facts,
  })
  const handlers = new RequestHandler(config, {
    ...{ trusted, pages, endpoints, decisions, refusals, proxy, sink: parts.sink, tracer: parts.tracer },
    admissions: new AdmissionHandler({ decisions, refusals, pages, proxy, keptForms, endpoints }),
    checks: forwardAuth.isUsed ? new ForwardAuthEndpoints(reservedPrefix, forwardAuth) : undefined,
    cors: createCors(config.upstreams),
    untrustedProxies: new UntrustedProxies(trusted, log),
  })
  const check = createCheck({ forwardAuth, trusted, sink: parts.sink })
  const signalReceivers = new SignalReceivers(config, realms, { store, endings, clock, log, audit })
  realms.start()
  signingKeys.start()
  signalReceivers.start()

  const finishLogoutCalls = () => Promise.all(logoutCalls.map((calls) => calls.finish()))
  let closing: Promise<void> | undefined
  const closeParts = () => {
    sessions.close()
    signingKeys.stop()
    return (closing ??= realms.close())
  }
  return {
    ...{ handlers, sessions, endings, realms, signingKeys, signalReceivers, trusted, check, upstreams },
    retire: async () => {
      watch.stop()
      // At once, so that the next generation can take the lease.
      await signalReceivers.stop()
      await realms.callsEnd()
      await realms.settled()
      await finishLogoutCalls()
      await closeParts()
    },
    close: async () => {
      watch.stop()
      await Promise.race([signalReceivers.stop(), realms.callsEnd()])
      await Promise.race([realms.settled(), realms.callsEnd()])
      await Promise.race([finishLogoutCalls(), wait(config.shutdown.drainTimeoutMs, undefined, { ref: false })])
      await closeParts()
      await runInOrder([() => upstreams.destroy()], log)
      // Calls that were cut off are stored again, for another process or the next start.
      await finishLogoutCalls()
    },
  }
}

const unknownProvider = {
  kind: 'unavailable',
  code: 'ERR_TOKEN_EXCHANGE',
  why: 'the session is at a provider of another upstream',
} as const

/** The logout jobs of each audience; none when no upstream has a logout call. */
function createJobs({ providers, upstreams }: GatewayConfig, keyring: Keyring): ReadonlyMap<string, LogoutJobs> {
  const all = providers.map(audienceOf).map((audience) => new LogoutJobs({ keyring, audience, upstreams }))
  return new Map(all.flatMap((jobs) => (jobs.isEmpty ? [] : [[jobs.audience, jobs]])))
}

/** Starts the logout calls of the upstreams that have one, for the sessions of one audience. */
function startLogoutCalls(
  { upstreams: configs }: GatewayConfig,
  parts: Pick<SharedParts, 'store' | 'clock' | 'log' | 'audit'> & {
    readonly jobs: LogoutJobs
    readonly upstreams: Upstreams
  },
): LogoutCalls {
  const { store, jobs, upstreams, clock, log, audit } = parts
  return new LogoutCalls({
    ...{ store: store.jobs, jobs, log, audit },
    longestCallMs: Math.max(...configs.map(({ logout }) => logout.call?.timeoutMs ?? 0)),
    call: async (name, session, job) => {
      const config = configs.find((upstream) => upstream.name === name)
      if (config?.logout.call === undefined) return 'unknown_upstream'
      const person = { session, cookies: cookiesOf(job, name), claims: job.claims, tokens: job.tokens }
      return callLogout(config, config.logout.call, person, { upstreams, now: clock.now() })
    },
  })
}
