import { askingUpstreams, createKeptSecrets } from '../application-sign-in/own-secret.ts'
import { ApplicationSignIns } from '../application-sign-in/sign-in.ts'
import { ForwardAuthEndpoints } from '../check-requests/check-endpoints.ts'
import { createCheck } from '../check-requests/ext-authz.ts'
import { ForwardAuth } from '../check-requests/forward-auth.ts'
import type { UnaryMethod } from '../check-requests/grpc.ts'
import { siteOf } from '../config/hosts.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import { clientOf } from '../core/addresses.ts'
import { reason } from '../core/errors.ts'
import { matchesAny } from '../core/patterns.ts'
import { createDeviceMetrics, MisuseLog } from '../device/misuse.ts'
import { Challenges } from '../device/proof.ts'
import type { Admission, Pass } from '../gate/admission.ts'
import { type Admit, createAdmit, createCors } from '../gate/admit.ts'
import type { AdmitParts } from '../gate/context.ts'
import { identify } from '../gate/identify.ts'
import { unmetRequirement } from '../gate/rules/requirement.ts'
import { UntrustedProxies } from '../http/forwarded.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import { canonicalTarget } from '../http/request-target.ts'
import { SignedIdentities } from '../identity/signed/signed-identity.ts'
import { EventStreamLimits } from '../limits/endpoint-limits.ts'
import { Shares } from '../limits/fair-queue.ts'
import type { Log } from '../observe/log.ts'
import { Pages } from '../pages/pages.ts'
import { connectionsFor } from '../provider/outbound.ts'
import type { ProxyParts } from '../proxy/proxy-parts.ts'
import { SessionCookies } from '../session/cookies/application-cookies.ts'
import { withOneSession } from '../session/cookies/one-session.ts'
import { hasSeveral } from '../session/cookies/session-cookie.ts'
import type { KeysFor } from '../session/people/person-sessions.ts'
import { AccessKeys } from '../tokens/access-keys.ts'
import { AccessTokens } from '../tokens/access-tokens.ts'
import { ClientCertificates } from '../tokens/client-certificates.ts'
import type { Exchanged } from '../tokens/exchanged-tokens.ts'
import { ServiceAccounts } from '../tokens/service-accounts.ts'
import { AdmissionHandler, Decisions } from './admission-handler.ts'
import { Endpoints } from './endpoints.ts'
import type { GenerationParts } from './generation-parts.ts'
import { RequestHandler } from './request-handler.ts'
import { Refusals } from './responses.ts'
import { LiveSessionsWatch } from './watch-live-sessions.ts'

/** Everything that serves requests by one configuration. A reload replaces it as a whole. */
export class Generation {
  readonly parts: GenerationParts
  readonly handlers: RequestHandler
  /** Responds to a check of Envoy over gRPC. */
  readonly check: UnaryMethod
  readonly #watch: LiveSessionsWatch
  readonly #drainTimeoutMs: number
  #closing: Promise<void> | undefined

  /** Builds a generation, and starts the discovery of its providers. */
  constructor(config: GatewayConfig, parts: GenerationParts) {
    const { handlers, check } = createHandlers(config, parts)
    this.parts = parts
    this.handlers = handlers
    this.check = check
    this.#watch = new LiveSessionsWatch(parts)
    this.#drainTimeoutMs = config.shutdown.drainTimeoutMs
    parts.realms.start()
    parts.upstreams.start()
    parts.signingKeys.start()
  }

  /** Closes the streams of sessions that are no longer valid with this configuration. */
  checkStreams(): void {
    this.#watch.check()
  }

  /**
   * Lets the calls to the providers finish, then closes everything except `upstreams`, because an
   * exchange has no time limit.
   */
  async retire(): Promise<void> {
    const { realms, logoutCalls } = this.parts
    this.#watch.stop()
    // At once, so that the next generation can take the lease.
    await realms.stopReceivers()
    await realms.callsEnd()
    await realms.settled()
    await logoutCalls.finish()
    await this.#closeParts()
  }

  /** Closes everything. Called when the gateway has no requests any more. */
  async close(): Promise<void> {
    const { realms, upstreams, logoutCalls, log } = this.parts
    this.#watch.stop()
    const steps = [
      () => Promise.race([realms.stopReceivers(), realms.callsEnd()]),
      () => Promise.race([realms.settled(), realms.callsEnd()]),
      () => logoutCalls.finish(this.#drainTimeoutMs),
      () => this.#closeParts(),
      () => upstreams.destroy(),
      // Calls that were cut off are stored again, for another process or the next start.
      () => logoutCalls.finish(),
    ]
    await runInOrder(steps, log)
  }

  #closeParts(): Promise<void> {
    const { sessions, signingKeys, realms, evaluations, log } = this.parts
    sessions.close()
    signingKeys.stop()
    for (const { decryptionKeys } of realms.all) decryptionKeys.stop()
    const closed = [...realms.all.map(({ provider }) => provider), evaluations]
    const steps = closed.map((each) => () => each.close())
    return (this.#closing ??= runInOrder(steps, log))
  }
}

/** Runs the steps in order. A step that fails is logged, and the next one runs. */
export async function runInOrder(steps: readonly (() => Promise<unknown>)[], log: Log): Promise<void> {
  for (const step of steps)
    await step().catch((error: unknown) => log.warn('shutdown.step_failed', { reason: reason(error) }))
}

type Handlers = Pick<Generation, 'handlers' | 'check'>

/** Builds what serves the requests by one configuration. */
function createHandlers(config: GatewayConfig, parts: GenerationParts): Handlers {
  const { routes, trusted, cookie, log, sink } = parts
  const { reservedPrefix } = config
  const { admit, withOneCookie } = createGate(config, parts)
  const pages = new Pages(config.pages, reservedPrefix, config.session.embeddedIn)
  const refusals = new Refusals(config, { pages, log })
  const deviceMetrics = createDeviceMetrics(parts.metrics)
  const misuseLog = new MisuseLog({ ...parts, config: config.session.deviceBinding, deviceMetrics })
  const proxy = proxyParts(config, parts, pages)
  const asking = askingUpstreams(config)
  const endpoints = new Endpoints(config, {
    ...parts,
    reservedPrefix,
    pages,
    refusals,
    deviceMetrics,
    misuseLog,
    hasGeneratedKeys: config.session.isKeyGenerated,
    site: siteOf(config),
    challenges: new Challenges(parts),
    eventStreams: new EventStreamLimits(config.limits, parts.rejectedClients),
    showsSessions: config.session.page,
    asking,
    servesAt: (host, upstream) => routes.route(host, 'GET', canonicalTarget(upstream.path))?.upstream === upstream,
    keptSecrets: createKeptSecrets(asking, parts.secrets),
    keysFor: keysFor(config, parts),
    stepUps: config.upstreams.flatMap(({ rules }) => rules.flatMap(({ stepUp }) => stepUp ?? [])),
    isLogoutLink: (host, target) => routes.route(host, 'GET', target)?.isLogout === true,
  })
  const decisions = new Decisions({ ...parts, admit, misuseLog }, refusals)
  const signIns = new ApplicationSignIns(config.upstreams, { ...parts, admit })
  const { isGatewayCookie } = cookie
  const forwardAuth = new ForwardAuth(config, { ...parts, admit, pages, misuseLog, isGatewayCookie })
  const serving = { ...parts, pages, endpoints, decisions, refusals, proxy }
  const handlers = new RequestHandler(config, {
    ...serving,
    admissions: new AdmissionHandler({ ...serving, reservedPrefix, withOneCookie, signIns }),
    checks: forwardAuth.isUsed ? new ForwardAuthEndpoints(reservedPrefix, forwardAuth) : undefined,
    cors: createCors(config.upstreams, routes),
    untrustedProxies: new UntrustedProxies(trusted, log),
  })
  return { handlers, check: createCheck({ forwardAuth, trusted, sink }) }
}

function keysFor({ upstreams }: GatewayConfig, { clock }: GenerationParts): KeysFor {
  return ({ claims }, provider, clientAddress) =>
    upstreams.flatMap(({ name, keys, providers, externalUrl, path }) => {
      if (keys === undefined || !providers.includes(provider)) return []
      const subject = { claims, method: 'POST', clientAddress, now: clock.now() }
      const address = externalUrl.origin + path
      return unmetRequirement(keys, subject) === undefined ? { name, keys, address } : []
    })
}

function proxyParts({ limits, upstreams }: GatewayConfig, parts: GenerationParts, pages: Pages): ProxyParts {
  const sessionCookies = new SessionCookies(parts)
  const personalCookies = upstreams.flatMap(({ logout }) => logout.cookies.map(({ names }) => names))
  return {
    ...parts,
    pages,
    bodyIdleTimeoutMs: limits.bodyIdleTimeoutMs,
    bodyRateBytesPerSecond: limits.bodyRateBytesPerSecond,
    isGatewayCookie: parts.cookie.isGatewayCookie,
    isNotedCookie: (name) => matchesAny(personalCookies, name),
    notesCookies: personalCookies.length > 0,
    hasEnded: (session) => parts.sessions.hasEnded(session),
    keepCookies: (session, upstream, cookies) => sessionCookies.keep(session, upstream, cookies),
  }
}

/** Builds the decision about requests, with all that it asks. */
function createGate(config: GatewayConfig, parts: GenerationParts) {
  const { realms, signingKeys, cookie, routes, evaluations, clock, log } = parts
  const admitOne = createAdmit(config, {
    ...callers(config, parts),
    routes,
    clock,
    log,
    evaluate: (request, decisionPoint) => evaluations.evaluate(request, decisionPoint),
    site: siteOf(config),
    expireFormer: (facts) => realms.all.flatMap((realm) => realm.cookie.expireFormer(facts.cookie, facts.host)),
    identify: (header, upstream) => identify(header, realms.byUpstream.get(upstream) ?? []),
    identities: new SignedIdentities(config, { keys: signingKeys, clock }),
    isStrict: cookie.isStrict,
  })
  const oneSessionOf = (facts: RequestFacts) => withOneSession({ ...facts, path: facts.target.path }, realms.all)
  const admitWithOne = async (facts: RequestFacts): Promise<Admission> => {
    const { cookie: one, expireAdded } = await oneSessionOf(facts)
    const admission = await admitOne({ ...facts, cookie: one })
    if (expireAdded.length === 0) return admission
    const expiring = (pass: Pass): Pass => ({ ...pass, expire: () => [...expireAdded, ...(pass.expire?.() ?? [])] })
    if (admission.kind === 'respond') return { ...admission, pass: expiring(admission.pass) }
    return admission.kind === 'pass' ? expiring(admission) : admission
  }
  const admit: Admit = (facts) =>
    facts.cookie !== undefined && hasSeveral(facts.cookie, realms.all) ? admitWithOne(facts) : admitOne(facts)
  /** The facts, with one session cookie: see `withOneSession`. */
  const withOneCookie = async (facts: RequestFacts): Promise<RequestFacts> =>
    facts.cookie !== undefined && hasSeveral(facts.cookie, realms.all)
      ? { ...facts, cookie: (await oneSessionOf(facts)).cookie }
      : facts
  return { admit, withOneCookie }
}

/** Those who have credentials of their own, and the tokens that upstreams get in exchange. */
function callers(config: GatewayConfig, parts: GenerationParts) {
  const { realms, endings, tokenEndings, exchangedTokens, accountLimits, live, clock, log } = parts
  const accessTokens = new AccessTokens({
    clock,
    endings: tokenEndings,
    introspections: new Shares(connectionsFor.introspections),
  })
  const accounts = new ServiceAccounts({ clock, limits: accountLimits, issuer: config.externalUrl.origin })
  const keys = new AccessKeys({ clock, limits: accountLimits, log })
  const [isAsked, readsHeader] = [config.listen.tls?.clientCaFile !== undefined, config.clientCertHeader]
  const reads = isAsked || readsHeader || config.upstreams.some(({ clientCertHeader }) => clientCertHeader)
  const certificates = new ClientCertificates({ isAsked, readsHeader, issuer: config.externalUrl.origin, clock })
  const closeOver = () => {
    live.closeOver()
    exchangedTokens.endOver()
  }
  if (config.upstreams.some((upstream) => upstream.accessTokens !== undefined)) {
    endings.onEnded((keys) => {
      tokenEndings.noteEnded(keys)
      closeOver()
    })
    endings.onLogoutOrder((order) => {
      tokenEndings.noteOrder(order)
      closeOver()
    })
  }
  endings.onEnded((keys) => exchangedTokens.noteEnded(keys))
  return {
    ...(reads && { identifyCertificate: (source, upstream) => certificates.identify(source, upstream) }),
    identifyToken: (token, upstream, accepts, client) =>
      accessTokens.identify(token, upstream, accepts, realms.ofUpstream(upstream), clientOf(client)),
    identifyAccount: (credentials, upstream, accepts, client) =>
      accounts.identify(credentials, upstream, accepts, clientOf(client)),
    identifyKey: (text, upstream, _accepts, address) =>
      keys.identify(text, { upstream, realms: realms.ofUpstream(upstream), address }),
    exchange: (subject, upstream, wanted) => {
      const realm = realms.ofUpstream(upstream).find(({ audience }) => audience === subject.audience)
      return realm === undefined ? unknownProvider : exchangedTokens.of(subject, upstream, wanted, realm.provider)
    },
  } satisfies Pick<AdmitParts, 'identifyCertificate' | 'identifyToken' | 'identifyAccount' | 'identifyKey' | 'exchange'>
}

const unknownProvider: Exchanged = {
  kind: 'unavailable',
  code: 'ERR_TOKEN_EXCHANGE',
  why: 'the session is at a provider of another upstream',
}
