import { ForwardAuthEndpoints } from '../check-requests/endpoints.ts'
import { createCheck } from '../check-requests/ext-authz.ts'
import { ForwardAuth } from '../check-requests/forward-auth.ts'
import type { UnaryMethod } from '../check-requests/grpc.ts'
import { siteOf } from '../config/hosts.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import { matchesAny } from '../core/name-pattern.ts'
import type { SessionKey } from '../core/names.ts'
import { Challenges } from '../device/challenge.ts'
import { createDeviceMetrics } from '../device/device-metrics.ts'
import { MisuseLog } from '../device/misuse.ts'
import { createCors } from '../gate/cors.ts'
import type { RouteTable } from '../gate/rules/route-table.ts'
import type { TrustedProxies } from '../http/forwarded.ts'
import { UntrustedProxies } from '../http/untrusted-proxies.ts'
import { EventStreamLimits } from '../limits/event-stream-limits.ts'
import { Pages } from '../pages/pages.ts'
import type { ProxyParts } from '../proxy/parts.ts'
import type { Upstreams } from '../proxy/upstream.ts'
import { SessionCookies } from '../session/cookies/session-cookies.ts'
import { AdmissionHandler } from './admission-handler.ts'
import { Decisions } from './decisions.ts'
import { createEndpoints } from './endpoints.ts'
import { createGate } from './gate.ts'
import { KeptFormHandler } from './kept-form-handler.ts'
import { Refusals } from './refusals.ts'
import { RequestHandler } from './request-handler.ts'
import type { SessionParts } from './session-parts.ts'
import type { SharedParts } from './shared-parts.ts'

export interface HandlersParts extends SharedParts, SessionParts {
  readonly routes: RouteTable
  readonly upstreams: Upstreams
  readonly trusted: TrustedProxies
  /**
   * Called when a session is in use: bytes of an upload or a download have moved, or the client has
   * sent data through a tunnel.
   */
  readonly onActivity: (session: SessionKey) => void
}

export interface Handlers {
  readonly handlers: RequestHandler
  /** Responds to a check of Envoy over gRPC. */
  readonly check: UnaryMethod
}

/** Builds what serves the requests by one configuration. */
export async function createHandlers(config: GatewayConfig, parts: HandlersParts): Promise<Handlers> {
  const { realms, routes, trusted, cookie, endings, log, audit, clock, sink, tracer, memory } = parts
  const { reservedPrefix } = config
  const { admit, withOneCookie } = createGate(config, parts)
  const pages = new Pages(config.pages, reservedPrefix)
  const refusals = new Refusals(config, { pages, log })
  const deviceMetrics = createDeviceMetrics(parts.metrics)
  const misuseLog = new MisuseLog({ config: config.session.deviceBinding, endings, deviceMetrics, clock, log, audit })
  const proxy = proxyParts(config, { ...parts, pages })
  const endpoints = await createEndpoints(config, {
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
  const keptForms = new KeptFormHandler({
    ...{ reservedPrefix, realms, refusals, pages, log, audit, proxy, withOneCookie },
  })
  const forwardAuth = new ForwardAuth(config, {
    ...{ admit, trusted, pages, log, audit, misuseLog },
    isGatewayCookie: cookie.isGatewayCookie,
  })
  const handlers = new RequestHandler(config, {
    ...{ trusted, pages, endpoints, decisions, refusals, proxy, sink, tracer },
    admissions: new AdmissionHandler({ decisions, refusals, pages, proxy, keptForms, endpoints }),
    checks: forwardAuth.isUsed ? new ForwardAuthEndpoints(reservedPrefix, forwardAuth) : undefined,
    cors: createCors(config.upstreams, routes),
    untrustedProxies: new UntrustedProxies(trusted, log),
  })
  return { handlers, check: createCheck({ forwardAuth, trusted, sink }) }
}

function proxyParts(config: GatewayConfig, parts: HandlersParts & { readonly pages: Pages }): ProxyParts {
  const { upstreams, live, log, pages, clock, cookie, sessions, onActivity } = parts
  const { bodyIdleTimeoutMs, bodyRateBytesPerSecond } = config.limits
  const sessionCookies = new SessionCookies({ sessions, clock })
  const personalCookies = config.upstreams.flatMap(({ logout }) => logout.cookies.map(({ names }) => names))
  return {
    ...{ upstreams, live, log, pages, clock, onActivity, bodyIdleTimeoutMs, bodyRateBytesPerSecond },
    isGatewayCookie: cookie.isGatewayCookie,
    isNotedCookie: (name) => matchesAny(personalCookies, name),
    notesCookies: personalCookies.length > 0,
    keepCookies: (session, upstream, cookies) => sessionCookies.keep(session, upstream, cookies),
  }
}
