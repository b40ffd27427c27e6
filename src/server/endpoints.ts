import { type EndpointAtPath, endpointRefusal } from '../config/endpoints.ts'
import { externalUrlAt, upstreamsOfHost, startPageOf } from '../config/hosts.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { ProviderConfig } from '../config/model/provider.ts'
import { clientOf } from '../core/addresses.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { GatewayError, reason } from '../core/errors.ts'
import { retryAfter } from '../core/retry-after.ts'
import { type EndpointContent, endpointRequest, type EndpointRequest } from '../http/endpoint-request.ts'
import { hostName } from '../http/host.ts'
import type { Incoming } from '../http/incoming.ts'
import { cookies, type Response, withHeaders } from '../http/response.ts'
import { EndpointLimits, TooManyRequests } from '../limits/endpoint-limits.ts'
import type { RejectedClients } from '../limits/rejected-clients.ts'
import type { ScriptScope } from '../pages/session-script.ts'
import { hasSeveral, SeveralSessionsError, withOneSession } from '../session/cookies/several-cookies.ts'
import type { SignInParts } from '../sign-in/parts.ts'
import { signInRequired } from '../sign-in/session.ts'
import type { SignalParts } from '../signals/parts.ts'
import { endpointHandlers, type EndpointParts } from './endpoint-handlers.ts'
import { type EndpointResponses, EndpointRouter } from './endpoint-router.ts'
import type { Meant, PageOfHost, Realm, Realms } from './realms.ts'
import type { Refusals } from './refusals.ts'
import type { SessionEventsParts } from './session-events.ts'

/** What depends on the realm that a request means. */
type OfRealm =
  | 'provider'
  | 'sessions'
  | 'cookie'
  | 'boundCookie'
  | 'upkeep'
  | 'personCookie'
  | 'personSessions'
  | 'refusedSignIns'
  | 'returns'
  | 'kept'
  | 'prefix'
  | 'streamRecord'
  | 'others'
  | 'choices'
  | 'scope'

export interface EndpointsParts extends Omit<EndpointParts, OfRealm> {
  readonly realms: Realms
  readonly store: SignInParts['store'] & SessionEventsParts['store'] & SignalParts['store']
  readonly rejectedClients: RejectedClients
}

/** Serves the requests for the endpoints of the gateway. */
export function createEndpoints(
  config: GatewayConfig,
  parts: EndpointsParts & { readonly refusals: Refusals },
): Promise<EndpointRouter> {
  return EndpointRouter.create(config, new Endpoints(config, parts), parts.refusals)
}

class Endpoints implements EndpointResponses {
  readonly #config: GatewayConfig
  readonly #parts: EndpointsParts
  readonly #limits: EndpointLimits
  readonly #partsOf: ReadonlyMap<Realm, Omit<EndpointParts, 'scope'>>

  constructor(config: GatewayConfig, parts: EndpointsParts) {
    this.#config = config
    this.#parts = parts
    this.#limits = new EndpointLimits(config.limits.perClient, parts)
    this.#partsOf = new Map(parts.realms.all.map((realm) => [realm, partsOfRealm(realm, parts)]))
  }

  async respond(at: EndpointAtPath, incoming: Incoming, content: EndpointContent): Promise<Response> {
    const { key, endpoint, provider } = at
    const { handle, reject } = endpointHandlers[key]
    const received = await this.#withOneCookie(this.#requestOf(incoming, content), incoming)
    const { realm, choices, candidates } = await this.#meant(provider, received)
    const request = { ...received, applicationCookies: this.#applicationCookiesOf(realm, incoming.facts.host) }
    const known = { ...(this.#partsOf.get(realm) as Omit<EndpointParts, 'scope'>), scope: this.#scopeOf(candidates) }
    // Until the person has chosen a provider, links lead to the choice.
    const ofRealm = choices.length === 0 ? known : { ...known, choices, prefix: this.#config.reservedPrefix }
    // These requests do not count against the limit. Otherwise a page of another site could use up
    // the limit of a client address.
    if (endpoint.isForPageLoads && !request.isByPerson) return signInRequired(request, ofRealm)
    try {
      return await this.#limits.within(endpoint.limit, clientOf(request.cause.client), () => handle(request, ofRealm))
    } catch (error) {
      if (reject === undefined || !(error instanceof GatewayError) || error instanceof TooManyRequests) throw error
      return reject(error, request, ofRealm)
    }
  }

  notFound(incoming: Incoming): Response {
    const { method, target } = incoming.facts
    const refusal = endpointRefusal(method, target.path, this.#config)
    const headers = refusal?.code === 'ERR_METHOD_NOT_ALLOWED' ? { Allow: refusal.allowed.join(', ') } : {}
    return this.#refused(incoming, refusal?.code ?? 'ERR_NO_ROUTE', headers)
  }

  failed(error: unknown, incoming: Incoming): Response {
    const code = codeOf(error)
    if (error instanceof TooManyRequests) return this.#refused(incoming, code, retryAfter(error.waitMs))
    const fields = { url: incoming.facts.target.path, code, reason: reason(error), request: incoming.record.id }
    if (code === 'ERR_INTERNAL') this.#parts.log.error('request.failed', fields)
    else this.#parts.log.warn('request.refused', fields)
    const response = this.#refused(incoming, code)
    return error instanceof SeveralSessionsError ? withHeaders(response, cookies(error.setCookies)) : response
  }

  #refused({ req, facts, record }: Incoming, code: ErrorCode, headers: Response['headers'] = {}): Response {
    const { isPage: asPage, isFrame: inFrame, host } = facts
    const home = startPageOf(host, this.#config.upstreams)
    const context = { requestId: record.id, acceptLanguage: req.headers['accept-language'], home }
    return this.#parts.pages.refusal(code, { ...context, asPage, inFrame, headers })
  }

  #requestOf(incoming: Incoming, content: EndpointContent): EndpointRequest {
    const { host } = incoming.facts
    return endpointRequest(incoming, content, {
      externalUrl: externalUrlAt(host, this.#config),
      home: startPageOf(host, this.#config.upstreams),
    })
  }

  async #withOneCookie(request: EndpointRequest, { facts }: Incoming): Promise<EndpointRequest> {
    const realms = this.#parts.realms.all
    if (!hasSeveral(facts.cookie, realms)) return request
    const { cookie } = await withOneSession({ ...facts, path: facts.target.path }, realms)
    return { ...request, cookie }
  }

  /** The realm that a request means: that of its path, or the one that the gateway finds. */
  #meant(provider: ProviderConfig | undefined, request: EndpointRequest): Promise<Meant> | Meant {
    const { realms } = this.#parts
    if (provider !== undefined) return ofProvider(realms.of(provider))
    const { host, cookie, query, embeddingPage: from } = request
    const own = hostName(host)
    const pages = [query.get('return_to') ?? [], from ?? []].flat().map((page) => pageIn(page, own))
    return realms.meant({ host: own, cookie, pages })
  }

  /** The pages that have a session in common with a page of these realms. */
  #scopeOf([only, ...others]: readonly Realm[]): ScriptScope {
    if (only !== undefined && others.length === 0) return { prefix: only.prefix, providers: [] }
    const providers = [only, ...others].flatMap((realm) => realm?.config.name ?? [])
    return { prefix: this.#config.reservedPrefix, providers }
  }

  #applicationCookiesOf(realm: Realm, host: string): EndpointRequest['applicationCookies'] {
    const own = this.#config.upstreams.filter(({ providers }) => providers.includes(realm.config.name))
    return upstreamsOfHost(host, own).flatMap(({ logout }) => logout.cookies)
  }
}

/** The page that a `return_to` names, at a host that shares the session or at the requested one. */
function pageIn(text: string, own: string): PageOfHost {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) return { host: own, path: text }
  const { hostname, pathname, search } = new URL(text)
  return { host: hostname, path: pathname + search }
}

function ofProvider(realm: Realm): Meant {
  return { realm, choices: [], candidates: [realm] }
}

/** The parts of the endpoints of a provider. */
function partsOfRealm(realm: Realm, parts: EndpointsParts): Omit<EndpointParts, 'scope'> {
  const { provider, sessions, cookie, boundCookie, upkeep, personCookie, kept, prefix } = realm
  const { personSessions, refusedSignIns, returns, streamRecord } = realm
  return {
    ...parts,
    ...{ provider, sessions, cookie, boundCookie, upkeep, personCookie, kept, prefix, personSessions, refusedSignIns },
    ...{ returns, streamRecord, others: parts.realms.besides(realm), choices: [] },
  }
}

function codeOf(error: unknown): ErrorCode {
  if (error instanceof GatewayError) return error.code
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : 500
  if (status === 413) return 'ERR_PAYLOAD_TOO_LARGE'
  if (status === 415) return 'ERR_MEDIA_TYPE'
  return typeof status === 'number' && status < 500 ? 'ERR_REQUEST_MALFORMED' : 'ERR_INTERNAL'
}
