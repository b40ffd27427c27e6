import type { Place } from '../config/document/sources.ts'
import { endpointRefusal, endpoints } from '../config/endpoints.ts'
import type { GatewayConfig, RuleConfig, UpstreamConfig } from '../config/model.ts'
import { type ErrorCode, errorRow } from '../core/error-codes.ts'
import { GatewayError, unreachable } from '../core/errors.ts'
import type { Admission } from '../gate/admission.ts'
import { createAdmit } from '../gate/admit.ts'
import { whyCrossSite } from '../gate/cross-site.ts'
import type { Identity } from '../gate/identify.ts'
import { refusalOf } from '../gate/refused.ts'
import { upstreamsOfHost } from '../gate/upstreams-of-host.ts'
import { TrustedProxies } from '../http/forwarded.ts'
import { hasBody } from '../http/request-body.ts'
import { isScript, type RequestFacts } from '../http/request-facts.ts'
import { wholeServer } from '../http/request-target.ts'
import { isReserved, soundFacts } from '../http/sound-request.ts'
import type { Log } from '../observe/log.ts'
import { carriedProtocols, isSwitchAsked, listedProtocols } from '../proxy/upgrade.ts'
import { unmetRequirement } from '../rules/requirement.ts'
import { createRouteTable, type Route } from '../rules/route-table.ts'
import { SessionCookie } from '../session/cookie.ts'
import { requireExternalUrl, WrongHostError } from '../signin/sign-in.ts'
import { type ArrivedRequest, arrived, type SuppliedRequest } from './request.ts'
import { isExpectationUnmet, serverRefusal } from './server-refusal.ts'
import { upstreamRequest, type UpstreamRequest } from './upstream-request.ts'
import { hostsText, requirementText, ruleText } from './words.ts'

/** One step on the way to a decision, for a person. */
export interface Step {
  readonly name: 'request' | 'host' | 'path' | 'upstream' | 'rule' | 'session' | 'cross-site' | 'claims'
  readonly text: string
  /** The setting that decides here. */
  readonly place?: Place
}

/** What is to become of a request. */
export interface Decision {
  readonly outcome: Admission['kind'] | 'refused' | 'own_url'
  /**
   * What the client is answered; absent when the answer is the application's, or that of the
   * gateway's own URL.
   */
  readonly status?: number
  readonly code?: ErrorCode
  readonly location?: string
  readonly why?: string
  /** What becomes of the request besides, and may surprise. */
  readonly note?: string
}

export interface Explanation {
  readonly steps: readonly Step[]
  readonly decision: Decision
  /** When it is passed on. */
  readonly upstream?: UpstreamRequest
}

/**
 * What a gateway of this configuration makes of a request, step by step. The decision is that of
 * the code that serves requests; each step is told by the function that takes it there.
 */
export function explain(request: SuppliedRequest, who: Identity, config: GatewayConfig): Explanation {
  const req = arrived(request, config.listen.tls !== undefined)
  const steps: Step[] = []
  const switches = isSwitching(req, config)
  const early = serverRefusal(req, config.limits)
  if (early !== undefined) return { steps, decision: { outcome: 'refused', ...early } }
  try {
    const facts = soundFacts(req, config, new TrustedProxies(config.trustedProxies))
    steps.push(...aboutRequest(facts, request, switches))
    if (isExpectationUnmet(req, switches))
      throw new GatewayError('ERR_EXPECTATION', 'nothing but 100-continue can be expected (Expect)')
    if (facts.target === wholeServer && !switches)
      return {
        steps,
        decision: { outcome: 'own_url', why: 'OPTIONS * is about the gateway, which answers it with 200' },
      }
    if (facts.target === wholeServer || isReserved(facts.target, config.reservedPrefix)) {
      if (switches) throw new GatewayError('ERR_NO_ROUTE', 'nothing of ours can be upgraded')
      return { steps, decision: atOwnUrl(facts, req.headers, who, config) }
    }
    const route = createRouteTable(config.upstreams).route(facts.host, facts.method, facts.target)
    steps.push(...aboutRoute(route))
    const { log, dropped } = droppedHeaders()
    const cookie = new SessionCookie(config.session.cookie)
    const admission = createAdmit(config, { identify: () => who, cookie, log })(facts)
    if (admission instanceof Promise) throw new TypeError('a decision about somebody who is known takes no time')
    if (route !== undefined && !route.isLogout) steps.push(...aboutPerson(route, who, facts))
    const decision = {
      ...decided(admission, req, switches),
      ...lossOf(admission, facts),
      ...(admission.kind === 'sign_in' && wrongHost(facts, req.headers, config)),
    }
    if (admission.kind !== 'pass') return { steps, decision }
    if (switches && hasBody(req))
      throw new GatewayError('ERR_REQUEST_MALFORMED', 'a request to switch to another protocol has no content')
    return {
      steps,
      decision,
      upstream: upstreamRequest(request, facts, admission, dropped, {
        upstreams: config.upstreams,
        cookie,
        isTracing: config.tracing !== undefined,
      }),
    }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const { code, status, message: why } = error
    return { steps, decision: { outcome: 'refused', status, code, why } }
  }
}

function atOwnUrl(
  facts: RequestFacts,
  headers: ArrivedRequest['headers'],
  who: Identity,
  config: GatewayConfig,
): Decision {
  const { method, target } = facts
  const why = `what lies below ${config.reservedPrefix} belongs to the gateway itself`
  const refusal = endpointRefusal(method, target.path, config)
  if (refusal === undefined) {
    const name = target.path.slice(config.reservedPrefix.length)
    const beginsSignIn = [endpoints.signIn.name, endpoints.initiateLogin.name].some((each) => each === name)
    const wrong = beginsSignIn && who.kind !== 'signed_in' ? wrongHost(facts, headers, config) : undefined
    if (wrong === undefined) return { outcome: 'own_url', why }
    return { outcome: 'refused', status: errorRow(wrong.code).status, code: wrong.code, why: wrong.why }
  }
  const fault =
    refusal.code === 'ERR_NO_ROUTE' ? 'it has no such URL' : `this URL takes ${refusal.allowed.join(', ')} only`
  const { code } = refusal
  return { outcome: 'refused', status: errorRow(code).status, code, why: `${why}, and ${fault}` }
}

/**
 * What a sign-in that begins at the host of this request is refused with; `undefined`: it is not
 * refused for its host.
 */
function wrongHost(
  { host, forwarded }: RequestFacts,
  { referer }: ArrivedRequest['headers'],
  { externalUrl, upstreams }: GatewayConfig,
): { readonly code: ErrorCode; readonly why: string; readonly note: string } | undefined {
  const own = upstreamsOfHost(host, upstreams)[0]?.externalUrl ?? externalUrl
  try {
    requireExternalUrl({ host: forwarded.host, referer, externalUrl: own }, '/')
    return undefined
  } catch (error) {
    if (!(error instanceof WrongHostError)) throw error
    const { code, status, message: why } = error
    return { code, why, note: `the sign-in is refused with ${status} ${code}` }
  }
}

/** A redirect to the sign-in takes the address along, and nothing else. */
function lossOf({ kind }: Admission, { method, isPage }: RequestFacts): Pick<Decision, 'note'> {
  const isLost = isPage && !['GET', 'HEAD'].includes(method) && (kind === 'sign_in' || kind === 'ask_again')
  return isLost ? { note: `the content of the ${method} is lost: the browser comes back with GET` } : {}
}

/** A log that keeps what is said of headers that were left out. */
function droppedHeaders(): { readonly log: Log; readonly dropped: string[] } {
  const dropped: string[] = []
  const silent = () => {}
  const log: Log = {
    debug: silent,
    info: silent,
    error: silent,
    announce: silent,
    warn: (_message, fields) => void dropped.push(...((fields?.['headers'] as readonly string[] | undefined) ?? [])),
  }
  return { log, dropped }
}

/**
 * Whether the gateway takes it for a request to switch to another protocol; any other is answered
 * like one that does not ask.
 */
function isSwitching({ headers }: ArrivedRequest, { upstreams }: Pick<GatewayConfig, 'upstreams'>): boolean {
  const { connection, upgrade } = headers
  return isSwitchAsked({ connection, upgrade }) && carriedProtocols(upgrade, listedProtocols(upstreams)) !== ''
}

function aboutRequest(facts: RequestFacts, { target, peer }: SuppliedRequest, switches: boolean): Step[] {
  const { isPage, isFrame, forwarded, host } = facts
  const kind = switches
    ? 'asks for another protocol (Upgrade): no page, and never redirected'
    : isFrame
      ? 'a page load in a frame: a page with a link that opens the whole window, instead of a redirect to the sign-in'
      : isPage
        ? 'a page load: the browser may be redirected'
        : 'no page load: 401 instead of a redirect to the sign-in'
  const client = peer === undefined ? '' : `; from ${forwarded.clientAddress}, by ${forwarded.proto}`
  const { path, query, otherReadings = [] } = facts.target
  const sent = target.startsWith('/') ? target : target.replace(/^[a-z]+:\/\/[^/?]*/i, '')
  const written = sent === path + query ? '' : `, sent as ${sent}`
  const others = otherReadings.map((segments) => `/${segments.join('/')}`)
  const readings = others.length === 0 ? '' : `; could also be read as ${others.join(', ')}`
  return [
    { name: 'request', text: `${kind}${client}` },
    { name: 'host', text: host },
    { name: 'path', text: `${path}${written}${readings}` },
  ]
}

function aboutRoute(route: Route | undefined): Step[] {
  if (route === undefined) return [{ name: 'upstream', text: 'none serves this host and path' }]
  const { upstream, rule, isLogout } = route
  const found: Step = { name: 'upstream', text: `${upstream.name}: ${hostsText(upstream)}`, ...placeOf(upstream) }
  if (isLogout) return [found, { name: 'rule', text: 'the application’s own logout link (logout.paths)' }]
  return [found, { name: 'rule', text: ruleText(rule), ...placeOf(rule) }]
}

function placeOf({ place }: UpstreamConfig | RuleConfig): { readonly place?: Place } {
  return place === undefined ? {} : { place }
}

function aboutPerson({ rule, upstream }: Route, who: Identity, facts: RequestFacts): Step[] {
  if (rule.access === 'public') return [{ name: 'session', text: 'not looked at' }]
  const isNeeded = rule.access === 'optional' ? 'used when there is one' : 'needed'
  if (who.kind !== 'signed_in') return [{ name: 'session', text: `${isNeeded}; there is none` }]
  const { claims, sub } = who.session.record
  const crossSite = whyCrossSite(facts, upstream)
  return [
    { name: 'session', text: `${isNeeded}; there is one, of ${sub}` },
    { name: 'cross-site', text: crossSite ?? whyNotCrossSite(facts) },
    ...rule.require.map((requirement): Step => {
      const unmet = unmetRequirement({ require: [requirement] }, claims)
      return { name: 'claims', text: unmet === undefined ? `${requirementText(requirement)}: met` : unmet.why }
    }),
  ]
}

function whyNotCrossSite({ method, isUpgrade, secFetchSite, origin }: RequestFacts): string {
  if (!isUpgrade && ['GET', 'HEAD', 'OPTIONS'].includes(method))
    return `${method} changes nothing: whose page asks does not matter`
  if (secFetchSite === undefined && origin === undefined)
    return 'neither Sec-Fetch-Site nor Origin was sent: it is no page of another site that asks'
  return 'the page that asks is this site’s own, or trusted'
}

function decided(admission: Admission, req: ArrivedRequest, switches: boolean): Decision {
  const { kind: outcome } = admission
  if (outcome === 'pass') return { outcome }
  const [code, why] = refusalOf(admission)
  const refused = { outcome, status: errorRow(code).status, code, why }
  if (switches) return refused
  switch (outcome) {
    case 'sign_in':
      return { outcome, status: 303, location: admission.location }
    case 'sign_out':
      return isScript(req.method ?? '', req.headers)
        ? { outcome, note: `it is carried out as POST ${admission.location}, for a script of this site` }
        : { outcome, status: 303, location: admission.location }
    case 'ask_again':
      return { outcome, status: 200, location: admission.location }
    case 'unauthorized':
      return { ...refused, location: admission.location }
    case 'forbidden':
    case 'cross_site':
    case 'no_route':
    case 'unavailable':
      return refused
    default:
      return unreachable(admission)
  }
}
