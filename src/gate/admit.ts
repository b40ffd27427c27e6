import type { MaintenanceConfig } from '../config/model/respond.ts'
import type { RuleConfig } from '../config/model/rule.ts'
import type { CorsConfig, UpstreamConfig } from '../config/model/upstream.ts'
import { GatewayError } from '../core/errors.ts'
import type { Misuse } from '../device/misuse.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import type { Admission, CorsFields } from './admission.ts'
import { admitCaller, admitKey, presentedKey } from './callers.ts'
import { type AdmitConfig, type AdmitParts, type GateContext, whenKnown } from './context.ts'
import type { Identity } from './identify.ts'
import { HeadersForUpstream } from './identity-headers.ts'
import { admitSender } from './person.ts'
import { unmetRequirement } from './rules/requirement.ts'
import type { Route, RouteTable } from './rules/route-table.ts'

/** THE decision. No promise when the session is in memory and fresh, the most frequent case. */
export type Admit = (facts: RequestFacts) => Admission | Promise<Admission>

export function createAdmit(config: AdmitConfig, parts: AdmitParts): Admit {
  const gate = new Gate(config, parts)
  return gate.admit.bind(gate)
}

/** Decides about requests with one configuration. See {@link Admit}. */
class Gate {
  readonly #context: GateContext

  constructor(config: AdmitConfig, parts: AdmitParts) {
    const personal = config.upstreams.flatMap(({ logout }) => logout.cookies.map(({ names }) => names))
    this.#context = { ...parts, config, headers: new HeadersForUpstream(parts), personal }
  }

  admit(facts: RequestFacts): Admission | Promise<Admission> {
    const { host, method, target, forwarded, mcp } = facts
    const route = this.#context.routes.route(host, method, target, forwarded.clientAddress, undefined, mcp)
    this.#context.trace?.({ step: 'route', route })
    if (route === undefined)
      return {
        kind: 'no_route',
        why: `no upstream serves ${host} at this path: compare hosts and path of the upstreams`,
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
    if (!route.isLogout) return this.#outcome(facts, route)
    const signOut = { kind: 'sign_out', location: this.#signOutOf(route.upstream) } as const
    if (!route.upstream.logout.passFirst) return signOut
    // Without access, the application does not receive the request, and the person is signed out.
    const after = (first: Admission): Admission => (first.kind === 'pass' ? { ...signOut, first } : signOut)
    return whenKnown(this.#outcome(facts, route), after)
  }

  /**
   * The URL of the sign-out for an upstream. With several providers, it names the upstream, because
   * the person may also have a session at a provider of another one.
   */
  #signOutOf({ path, providers: [name, ...others] }: UpstreamConfig): string {
    const { providers, reservedPrefix } = this.#context.config
    const only = others.length === 0 ? providers.find((provider) => provider.name === name) : undefined
    return only === undefined
      ? `${reservedPrefix}sign-out?return_to=${encodeURIComponent(path)}`
      : `${only.prefix}sign-out`
  }

  /**
   * The access decision, and who responds to an admitted request.
   * @param passed the rules about maintenance that let the request through
   */
  #outcome(facts: RequestFacts, route: Route, passed: readonly RuleConfig[] = []): Admission | Promise<Admission> {
    const { upstream, rule, fault } = route
    const { respond, path } = rule
    // A server that takes the method and the name from the content alone could get another request
    // than the rules are about.
    if (fault !== undefined) throw new GatewayError('ERR_MCP_FIELDS', fault)
    if (respond === undefined && upstream.respondsOnly)
      return { kind: 'no_route', why: `no rule of upstreams.${upstream.name} matches, and it has no application` }
    if (respond?.kind === 'maintenance') return this.#maintenance(facts, route, respond, passed)
    const admission = this.#access(facts, route)
    if (respond === undefined) return admission
    return whenKnown(admission, (pass) => (pass.kind === 'pass' ? { kind: 'respond', respond, path, pass } : pass))
  }

  /** For those who meet `unless`, the next rule that matches decides. */
  #maintenance(
    facts: RequestFacts,
    { upstream, rule }: Route,
    { unless: require, retryAfterMs }: MaintenanceConfig,
    before: readonly RuleConfig[],
  ): Admission | Promise<Admission> {
    const { identify, routes, clock, trace } = this.#context
    const refusal = { kind: 'maintenance', upstream, retryAfterMs } as const
    if (require.length === 0) return refusal
    const { host, method, target, forwarded, mcp } = facts
    const { clientAddress } = forwarded
    return whenKnown<Identity, Admission>(identify(facts.cookie, upstream), (sender) => {
      const claims = sender.kind === 'signed_in' ? sender.record.claims : {}
      const subject = { claims, method, clientAddress, now: clock.now() }
      if (unmetRequirement({ require }, subject) !== undefined) return refusal
      const passed = [...before, rule]
      const next = routes.route(host, method, target, clientAddress, passed, mcp)
      if (next === undefined) return refusal
      trace?.({ step: 'route', route: next })
      return this.#outcome(facts, next, passed)
    })
  }

  #access(facts: RequestFacts, route: Route): Admission | Promise<Admission> {
    const { upstream, rule } = route
    const { headers, identify, trace } = this.#context
    if (rule.access === 'public') {
      trace?.({ step: 'anybody' })
      const identity = headers.forAnybody(facts, upstream, rule)
      return { kind: 'pass', upstream, identity, session: undefined, caching: 'anybody' }
    }
    const key = presentedKey(facts, route)
    if (key !== undefined) return admitKey(facts, route, key, this.#context)
    if (facts.authorization !== undefined || rule.clientCertificates === true) {
      const ofCaller = admitCaller(facts, route, this.#context)
      if (ofCaller !== undefined) return ofCaller
    }
    const sender = identify(facts.cookie, upstream)
    return sender instanceof Promise
      ? sender.then((found) => admitSender(facts, route, found, this.#context))
      : admitSender(facts, route, sender, this.#context)
  }
}

/** The request that an admission is about misuses the cookie of a bound session. */
export function misuseIn(admission: Admission): Misuse | undefined {
  if (admission.kind === 'sign_out') return admission.first?.misuse
  if (admission.kind === 'respond') return admission.pass.misuse
  return 'misuse' in admission ? admission.misuse : undefined
}

/**
 * The fields with which a response permits pages of this origin to read it (Fetch §3.2.3). For an
 * origin that is not listed there is only `Vary`, because caches must not give its response to
 * pages of other origins.
 */
export function corsFields({ origins, expose, credentials }: CorsConfig, origin: string | undefined): CorsFields {
  if (origin === undefined || !origins.includes(origin)) return { Vary: 'Origin' }
  return {
    'Access-Control-Allow-Origin': origin,
    ...(credentials && { 'Access-Control-Allow-Credentials': 'true' }),
    ...(expose.length > 0 && { 'Access-Control-Expose-Headers': expose.join(', ') }),
    Vary: 'Origin',
  }
}

/** The fields of the response to a preflight: which requests pages of the origin may send. */
function preflightFields(cors: CorsConfig, origin: string | undefined): CorsFields {
  const { 'Access-Control-Expose-Headers': _, ...fields } = corsFields(cors, origin)
  if (fields['Access-Control-Allow-Origin'] === undefined) return fields
  return {
    ...fields,
    'Access-Control-Allow-Methods': cors.methods.join(', '),
    ...(cors.headers.length > 0 && { 'Access-Control-Allow-Headers': cors.headers.join(', ') }),
    'Access-Control-Max-Age': String(Math.floor(cors.maxAgeMs / 1000)),
  }
}

/**
 * Returns a function that finds the fields for the gateway's own responses to a request. There are
 * none for a request without `Origin`, for a preflight, and for an upstream without `cors`.
 * `undefined`: no upstream has it.
 */
export function createCors(
  upstreams: readonly UpstreamConfig[],
  routes: RouteTable,
): ((facts: RequestFacts) => CorsFields | undefined) | undefined {
  if (upstreams.every(({ cors }) => cors === undefined)) return undefined
  return ({ origin, isPreflight, host, method, target, forwarded }) => {
    if (origin === undefined || isPreflight === true) return undefined
    try {
      const cors = routes.route(host, method, target, forwarded.clientAddress)?.upstream.cors
      return cors && corsFields(cors, origin)
    } catch (error) {
      // The path is ambiguous, so the gateway refuses the request later.
      if (error instanceof GatewayError) return undefined
      throw error
    }
  }
}
