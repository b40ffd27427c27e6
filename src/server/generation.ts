import { ForwardAuthEndpoints } from '../check-requests/endpoints.ts'
import { createCheck } from '../check-requests/ext-authz.ts'
import { ForwardAuth } from '../check-requests/forward-auth.ts'
import type { UnaryMethod } from '../check-requests/grpc.ts'
import { siteOf } from '../config/hosts.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import { reason } from '../core/errors.ts'
import { matchesAny } from '../core/patterns.ts'
import { createDeviceMetrics, MisuseLog } from '../device/misuse.ts'
import { Challenges } from '../device/proof.ts'
import { createCors } from '../gate/cors.ts'
import { UntrustedProxies } from '../http/forwarded.ts'
import { EventStreamLimits } from '../limits/endpoint-limits.ts'
import type { Log } from '../observe/log.ts'
import { Pages } from '../pages/pages.ts'
import type { ProxyParts } from '../proxy/parts.ts'
import { SessionCookies } from '../session/cookies/application-cookies.ts'
import { AdmissionHandler } from './admission-handler.ts'
import { createGate, Decisions } from './decisions.ts'
import { Endpoints } from './endpoints.ts'
import type { GenerationParts } from './parts.ts'
import { RequestHandler } from './request-handler.ts'
import { Refusals } from './responses.ts'
import { LiveSessionsWatch } from './watch-live-sessions.ts'

/** Everything that serves requests by one configuration. A reload replaces it as a whole. */
export class Generation {
  readonly handlers: RequestHandler
  /** Responds to a check of Envoy over gRPC. */
  readonly check: UnaryMethod
  readonly sessions: GenerationParts['sessions']
  readonly endings: GenerationParts['endings']
  readonly realms: GenerationParts['realms']
  readonly signingKeys: GenerationParts['signingKeys']
  readonly trusted: GenerationParts['trusted']
  /** Stays open after {@link Generation.retire}, because an exchange has no time limit. */
  readonly upstreams: GenerationParts['upstreams']
  readonly #logoutCalls: GenerationParts['logoutCalls']
  readonly #watch: LiveSessionsWatch
  readonly #drainTimeoutMs: number
  readonly #log: Log
  #closing: Promise<void> | undefined

  /** Builds a generation, and starts the discovery of its providers. */
  static async create(config: GatewayConfig, parts: GenerationParts): Promise<Generation> {
    const generation = new Generation(config, parts, await createHandlers(config, parts))
    generation.realms.start()
    generation.signingKeys.start()
    return generation
  }

  private constructor(config: GatewayConfig, parts: GenerationParts, { handlers, check }: Handlers) {
    this.handlers = handlers
    this.check = check
    this.sessions = parts.sessions
    this.endings = parts.endings
    this.realms = parts.realms
    this.signingKeys = parts.signingKeys
    this.trusted = parts.trusted
    this.upstreams = parts.upstreams
    this.#logoutCalls = parts.logoutCalls
    this.#watch = new LiveSessionsWatch(parts)
    this.#drainTimeoutMs = config.shutdown.drainTimeoutMs
    this.#log = parts.log
  }

  /** Lets the calls to the providers finish, then closes everything except `upstreams`. */
  async retire(): Promise<void> {
    this.#watch.stop()
    // At once, so that the next generation can take the lease.
    await this.realms.stopReceivers()
    await this.realms.callsEnd()
    await this.realms.settled()
    await this.#logoutCalls.finish()
    await this.#closeParts()
  }

  /** Closes everything. Called when the gateway has no requests any more. */
  async close(): Promise<void> {
    const { realms, upstreams } = this
    this.#watch.stop()
    const steps = [
      () => Promise.race([realms.stopReceivers(), realms.callsEnd()]),
      () => Promise.race([realms.settled(), realms.callsEnd()]),
      () => this.#logoutCalls.finish(this.#drainTimeoutMs),
      () => this.#closeParts(),
      () => upstreams.destroy(),
      // Calls that were cut off are stored again, for another process or the next start.
      () => this.#logoutCalls.finish(),
    ]
    await runInOrder(steps, this.#log)
  }

  #closeParts(): Promise<void> {
    this.sessions.close()
    this.signingKeys.stop()
    const steps = this.realms.all.map(
      ({ provider }) =>
        () =>
          provider.close(),
    )
    return (this.#closing ??= runInOrder(steps, this.#log))
  }
}

/** Runs the steps in order. A step that fails is logged, and the next one runs. */
export async function runInOrder(steps: readonly (() => Promise<unknown>)[], log: Log): Promise<void> {
  for (const step of steps)
    await step().catch((error: unknown) => log.warn('shutdown.step_failed', { reason: reason(error) }))
}

type Handlers = Pick<Generation, 'handlers' | 'check'>

/** Builds what serves the requests by one configuration. */
async function createHandlers(config: GatewayConfig, parts: GenerationParts): Promise<Handlers> {
  const { realms, routes, trusted, cookie, log, audit, sink, tracer, memory } = parts
  const { reservedPrefix } = config
  const { admit, withOneCookie } = createGate(config, parts)
  const pages = new Pages(config.pages, reservedPrefix)
  const refusals = new Refusals(config, { pages, log })
  const deviceMetrics = createDeviceMetrics(parts.metrics)
  const misuseLog = new MisuseLog({ ...parts, config: config.session.deviceBinding, deviceMetrics })
  const proxy = proxyParts(config, parts, pages)
  const endpoints = await Endpoints.create(config, {
    ...{ ...parts, reservedPrefix, pages, refusals, deviceMetrics, misuseLog },
    hasGeneratedKeys: config.session.isKeyGenerated,
    site: siteOf(config),
    challenges: new Challenges(parts),
    eventStreams: new EventStreamLimits(config.limits, parts.rejectedClients),
    showsSessions: config.session.page,
    stepUps: config.upstreams.flatMap(({ rules }) => rules.flatMap(({ stepUp }) => stepUp ?? [])),
    isLogoutLink: (host, target) => routes.route(host, 'GET', target)?.isLogout === true,
  })
  const decisions = new Decisions({ admit, audit, misuseLog, memory }, refusals)
  const forwardAuth = new ForwardAuth(config, {
    ...{ admit, trusted, pages, log, audit, misuseLog },
    isGatewayCookie: cookie.isGatewayCookie,
  })
  const handlers = new RequestHandler(config, {
    ...{ trusted, pages, endpoints, decisions, refusals, proxy, sink, tracer },
    admissions: new AdmissionHandler({
      ...{ decisions, refusals, pages, proxy, endpoints, reservedPrefix, realms, log, audit, withOneCookie },
    }),
    checks: forwardAuth.isUsed ? new ForwardAuthEndpoints(reservedPrefix, forwardAuth) : undefined,
    cors: createCors(config.upstreams, routes),
    untrustedProxies: new UntrustedProxies(trusted, log),
  })
  return { handlers, check: createCheck({ forwardAuth, trusted, sink }) }
}

function proxyParts(config: GatewayConfig, parts: GenerationParts, pages: Pages): ProxyParts {
  const { upstreams, live, log, clock, cookie, onActivity } = parts
  const { bodyIdleTimeoutMs, bodyRateBytesPerSecond } = config.limits
  const sessionCookies = new SessionCookies(parts)
  const personalCookies = config.upstreams.flatMap(({ logout }) => logout.cookies.map(({ names }) => names))
  return {
    ...{ upstreams, live, log, pages, clock, onActivity, bodyIdleTimeoutMs, bodyRateBytesPerSecond },
    isGatewayCookie: cookie.isGatewayCookie,
    isNotedCookie: (name) => matchesAny(personalCookies, name),
    notesCookies: personalCookies.length > 0,
    keepCookies: (session, upstream, cookies) => sessionCookies.keep(session, upstream, cookies),
  }
}
