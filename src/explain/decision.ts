import { evaluationsOf } from '../authzen/evaluations.ts'
import { asAsked } from '../check-requests/check-request.ts'
import { endpointRefusal, endpoints, endpointsOf } from '../config/endpoints.ts'
import { externalUrlAt } from '../config/hosts.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { OwnResponseConfig } from '../config/model/respond.ts'
import type { RuleConfig } from '../config/model/rule.ts'
import type { UpstreamConfig } from '../config/model/upstream.ts'
import { type Clock, systemClock } from '../core/clock.ts'
import { type ErrorCode, errorRow } from '../core/error-codes.ts'
import { GatewayError, unreachable } from '../core/errors.ts'
import type { Admission, CorsFields, Pass } from '../gate/admission.ts'
import { resourceMetadata } from '../gate/bearer.ts'
import { refusalOf } from '../gate/refusal.ts'
import { createRouteTable, type RouteTable } from '../gate/rules/route-table.ts'
import { isByPerson } from '../http/endpoint-request.ts'
import { TrustedProxies } from '../http/forwarded.ts'
import type { McpRequest } from '../http/mcp-request.ts'
import { hasBody } from '../http/request-body.ts'
import { isReserved, isScript, type RequestFacts, unambiguousFacts } from '../http/request-facts.ts'
import { wholeServer } from '../http/request-target.ts'
import { carriedProtocols, listedProtocols, requestsUpgrade } from '../http/upgrade-field.ts'
import { SessionCookie } from '../session/cookies/session-cookie.ts'
import { hostFault } from '../sign-in/sign-in.ts'
import { arrived, type ArrivedRequest, isExpectationUnmet, serverRefusal, type SuppliedRequest } from './request.ts'
import { type Step, stepsOf } from './steps.ts'
import { accountOf, trialAdmit, type Who } from './trial.ts'
import { type UpstreamRequest, upstreamRequest } from './upstream-request.ts'

/** How the gateway would handle a request. */
export interface Decision {
  readonly outcome: Admission['kind'] | 'refused' | 'own_url'
  /** The status; absent when the upstream or an endpoint of the gateway responds. */
  readonly status?: number
  readonly code?: ErrorCode
  readonly location?: string
  readonly why?: string
  /** A further effect that a reader of the decision may not expect. */
  readonly note?: string
}

export interface Explanation {
  readonly steps: readonly Step[]
  readonly decision: Decision
  /** Present when the request is forwarded. */
  readonly upstream?: UpstreamRequest
}

/** A request that is explained, with what decides about it. */
interface ExplainedRequest {
  readonly supplied: SuppliedRequest
  readonly req: ArrivedRequest
  readonly who: Who
  readonly config: GatewayConfig
  readonly clock: Clock
  /** Whether the gateway handles the request as an upgrade, and does not ignore `Upgrade`. */
  readonly switches: boolean
}

/**
 * Explains step by step how a gateway with this configuration would handle a request. The decision
 * comes from the code that serves requests, and each step from the functions that it calls.
 */
export function explain(
  supplied: SuppliedRequest,
  who: Who,
  config: GatewayConfig,
  clock: Clock = systemClock,
): Explanation {
  const req = arrived(supplied, config.listen.tls !== undefined)
  const steps: Step[] = []
  const early = serverRefusal(req, config.limits)
  if (early !== undefined) return { steps, decision: { outcome: 'refused', ...early } }
  try {
    const explained = { supplied, req, who, config, clock, switches: isSwitching(req, config) }
    const received = unambiguousFacts(req, config, new TrustedProxies(config.trustedProxies))
    steps.push(...aboutRequest(received, explained))
    const own = byGateway(received, explained)
    return own === undefined ? explainRoute(received, explained, steps) : { steps, decision: own }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const { code, status, message: why } = error
    return { steps, decision: { outcome: 'refused', status, code, why } }
  }
}

/** The decision about a request that is not for an upstream. */
function byGateway(facts: RequestFacts, { req, who, config, switches }: ExplainedRequest): Decision | undefined {
  const { target } = facts
  if (isExpectationUnmet(req, switches))
    throw new GatewayError('ERR_EXPECTATION', 'the only supported value of Expect is 100-continue')
  if (target === wholeServer && !switches)
    return { outcome: 'own_url', why: 'OPTIONS * is a request to the gateway itself, which responds with 200' }
  if (target !== wholeServer && !isReserved(target, config.reservedPrefix)) return undefined
  if (switches) throw new GatewayError('ERR_NO_ROUTE', 'an endpoint of the gateway cannot be upgraded')
  return atEndpoint(facts, req.headers, who, config)
}

/** Explains a request for an upstream. Adds the steps while it decides, because it may throw. */
function explainRoute(received: RequestFacts, explained: ExplainedRequest, steps: Step[]): Explanation {
  const { supplied, req, who, config, clock, switches } = explained
  const routes = createRouteTable(config.upstreams)
  const facts = askedWhereNeeded(received, pathAsSent(supplied.target), routes)
  if (!switches && resourceMetadata({ ...facts, path: facts.target.path }, config) !== undefined)
    return {
      steps,
      decision: { outcome: 'own_url', why: 'the gateway itself publishes metadata here (access_tokens.metadata)' },
    }
  const cookie = new SessionCookie(config.session.cookie)
  const identify = (upstream: UpstreamConfig) => who.at(upstream)
  let isAsked = false
  let rule: RuleConfig | undefined
  const admission = trialAdmit(config, {
    evaluate: (request, decisionPoint) => {
      isAsked = true
      const evaluations = evaluationsOf(request, decisionPoint).map((each) => JSON.stringify(each))
      const text = `${decisionPoint.url} decides, which explain does not ask: ${evaluations.join(', ')}`
      steps.push({ name: 'authorize_with', text })
      return { kind: 'permitted' }
    },
    trace: (step) => {
      if (step.step === 'route') rule = step.route?.rule
      steps.push(...stepsOf(step))
    },
    routes,
    clock,
    session: identify,
    token: identify,
    isStrict: cookie.isStrict,
    identifyAccount: ({ name }, _upstream, accepts) => accountOf(name, accepts, config),
  })(facts)
  const outcome = decided(admission, req, switches)
  // A form, and a request that is upgraded, are not redirected to the sign-in.
  const note = [outcome.note ?? [], isAsked ? askedNote : []].flat().join('; ')
  const isRedirected = admission.kind === 'sign_in' && outcome.status === 303
  const decision = {
    ...outcome,
    ...(note !== '' && { note }),
    ...(isRedirected && wrongHost(facts, req.headers, config)),
  }
  if (admission.kind !== 'pass') return { steps, decision }
  if (switches && hasBody(req))
    throw new GatewayError('ERR_REQUEST_MALFORMED', 'a request with Upgrade must not have content')
  const configured = rule?.headers ?? admission.upstream.headers
  return { steps, decision, upstream: upstreamRequest(supplied, facts, admission, { configured, config, cookie }) }
}

/**
 * The facts about the request, as another proxy describes it if such a proxy carries the requests
 * of the upstream.
 */
function askedWhereNeeded(facts: RequestFacts, sent: string, routes: RouteTable): RequestFacts {
  const { host, method, target, forwarded } = facts
  const route = routes.route(host, method, target, forwarded.clientAddress)
  return route?.upstream.forwardAuth === true ? asAsked(facts, sent) : facts
}

/** Path and query of a request target, not normalized. */
function pathAsSent(target: string): string {
  return target.startsWith('/') ? target : target.replace(/^[a-z]+:\/\/[^/?]*/i, '')
}

function atEndpoint(
  facts: RequestFacts,
  headers: ArrivedRequest['headers'],
  who: Who,
  config: GatewayConfig,
): Decision {
  const { method, target } = facts
  const why = `URLs below ${config.reservedPrefix} belong to the gateway itself`
  const refusal = endpointRefusal(method, target.path, config)
  if (refusal !== undefined) {
    const fault =
      refusal.code === 'ERR_NO_ROUTE'
        ? 'this is not one of its endpoints'
        : `this endpoint allows ${refusal.allowed.join(', ')} only`
    return refusedBecause(refusal.code, `${why}, and ${fault}`)
  }
  const endpoint = endpointsOf(config).find(
    (at) => at.path === target.path && at.endpoint.methods.some((each) => each === method),
  )?.endpoint
  if (endpoint?.isForPageLoads && !isByPerson(facts.isPage, headers))
    return refusedBecause('ERR_UNAUTHENTICATED', `${why}, and this one serves page loads only`)
  const beginsSignIn = [endpoints.signIn.name, endpoints.initiateLogin.name].some((each) => each === endpoint?.name)
  const wrong = beginsSignIn && !who.isSignedIn ? wrongHost(facts, headers, config) : undefined
  return wrong === undefined ? { outcome: 'own_url', why } : refusedBecause(wrong.code, wrong.why)
}

function refusedBecause(code: ErrorCode, why: string): Decision {
  return { outcome: 'refused', status: errorRow(code).status, code, why }
}

/** The error of a sign-in that begins at a host other than `external_url`, or `undefined`. */
function wrongHost(
  { host, forwarded }: RequestFacts,
  { referer }: ArrivedRequest['headers'],
  config: GatewayConfig,
): { readonly code: ErrorCode; readonly why: string; readonly note: string } | undefined {
  const fault = hostFault({ host: forwarded.host, referer, externalUrl: externalUrlAt(host, config) }, '/')
  if (fault === undefined) return undefined
  const { code, status, message: why } = fault
  return { code, why, note: `the sign-in is refused with ${status} ${code}` }
}

const askedNote = 'if the policy decision point permits it (authorize_with)'

const keptNote =
  'if a page of this site sends the form, and the person has signed in before in this browser, the gateway keeps the content and redirects to the sign-in (303): see kept_requests'

function isSwitching({ headers }: ArrivedRequest, { upstreams }: Pick<GatewayConfig, 'upstreams'>): boolean {
  const { connection, upgrade } = headers
  return requestsUpgrade({ connection, upgrade }) && carriedProtocols(upgrade, listedProtocols(upstreams)) !== ''
}

function aboutRequest(facts: RequestFacts, { supplied, switches, config }: ExplainedRequest): Step[] {
  const { target, peer } = supplied
  const { isPage, isFrame, forwarded, host } = facts
  const window = config.session.embeddedIn.length > 0 ? 'a window of its own' : 'the whole window'
  const kind = switches
    ? 'an upgrade to another protocol: no page load, never redirected'
    : isFrame
      ? `a page load in a frame: a page with a link that opens the sign-in in ${window}, instead of a redirect`
      : isPage
        ? 'a page load: the browser may be redirected'
        : 'not a page load: 401 instead of a redirect to the sign-in'
  const client = peer === undefined ? '' : `; from ${forwarded.clientAddress}, over ${forwarded.proto}`
  const { path, query, otherReadings = [] } = facts.target
  const sent = pathAsSent(target)
  const asSent = sent === path + query ? '' : `, sent as ${sent}`
  const others = otherReadings.map((segments) => `/${segments.join('/')}`)
  const readings = others.length === 0 ? '' : `; could also be read as ${others.join(', ')}`
  return [
    { name: 'request', text: `${kind}${client}` },
    { name: 'host', text: host },
    { name: 'path', text: `${path}${asSent}${readings}` },
    ...(facts.mcp === undefined ? [] : [{ name: 'mcp', text: messageText(facts.mcp) } as const]),
  ]
}

function messageText({ fault, ...message }: McpRequest): string {
  return fault ?? Object.values(message).join(' ')
}

function preflightWhy(fields: CorsFields): string {
  const responds = 'the gateway itself responds to a preflight, because the upstream has cors'
  return fields['Access-Control-Allow-Origin'] === undefined ? `${responds}; cors does not list the origin` : responds
}

function aboutResponse(respond: OwnResponseConfig): Pick<Decision, 'status' | 'location'> {
  if (respond.kind === 'files') return {}
  const { status } = respond
  return respond.kind === 'redirect' ? { status, location: respond.to + (respond.rest ? '*' : '') } : { status }
}

function noteOf({ observed }: Pass): Pick<Decision, 'note'> {
  return observed === undefined ? {} : { note: `without mode: observe, the rule would deny access: ${observed.why}` }
}

function decided(admission: Admission, req: ArrivedRequest, switches: boolean): Decision {
  const { kind: outcome } = admission
  if (outcome === 'pass') return { outcome, ...noteOf(admission) }
  const { code, why } = refusalOf(admission)
  const refused = { outcome, status: errorRow(code).status, code, why }
  if (switches) return refused
  switch (outcome) {
    case 'sign_in':
      if (admission.insufficient !== undefined)
        return { outcome, status: 303, location: admission.location, why: admission.insufficient }
      if (admission.form !== undefined) return { ...refused, outcome: 'unauthorized', note: keptNote }
      return { outcome, status: 303, location: admission.location }
    case 'sign_out': {
      const passed = 'the upstream receives the request first (pass_first), if it comes from this site'
      const first = admission.first === undefined ? [] : [passed]
      if (!isScript(req.method ?? '', req.headers))
        return { outcome, status: 303, location: admission.location, ...(first.length > 0 && { note: passed }) }
      const handled = `the gateway handles it as POST ${admission.location}, because a script of this site sent it`
      return { outcome, note: [...first, handled].join('; ') }
    }
    case 'respond':
      return { outcome, ...aboutResponse(admission.respond), ...noteOf(admission.pass) }
    case 'preflight':
      return { outcome, status: 204, why: preflightWhy(admission.fields) }
    case 'reload':
      return { outcome, status: 200, location: admission.location }
    case 'unauthorized':
      return { ...refused, location: admission.location }
    case 'forbidden':
    case 'maintenance':
    case 'cross_site':
    case 'caller_refused':
    case 'no_route':
    case 'unavailable':
      return refused
    default:
      return unreachable(admission)
  }
}
