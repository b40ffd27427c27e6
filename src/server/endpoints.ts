import { askForSecret, keepSecret, type OwnSecretParts } from '../application-sign-in/own-secret.ts'
import { refuseOtherSpelling } from '../check-requests/check-endpoints.ts'
import {
  type EndpointAtPath,
  endpointRefusal,
  type EndpointKey,
  endpointsOf,
  maxFormBytes,
} from '../config/endpoints.ts'
import { externalUrlAt, upstreamsOfHost, startPageOf } from '../config/hosts.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import { clientOf } from '../core/addresses.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { GatewayError, reason } from '../core/errors.ts'
import { retryAfter } from '../core/repeating.ts'
import { type DeviceParts, deviceRefresh, deviceRegistration } from '../device/device-endpoints.ts'
import { type EndpointContent, endpointRequest, type EndpointRequest } from '../http/endpoint-request.ts'
import { mediaTypeOf, readContent } from '../http/read-content.ts'
import { hasBody } from '../http/request-body.ts'
import { hostName } from '../http/request-target.ts'
import { type Incoming, cookies, type Response, withHeaders } from '../http/response.ts'
import { jwks, type JwksParts } from '../identity/signed/signing-key.ts'
import { declineKeptRequest, keptRequest } from '../kept-forms/kept-request.ts'
import type { KeptParts } from '../kept-forms/send.ts'
import { clientJwks, type ClientJwksParts } from '../keys/decryption-keys.ts'
import { EndpointLimits, TooManyRequests } from '../limits/endpoint-limits.ts'
import type { RejectedClients } from '../limits/rejected-clients.ts'
import { backchannelLogout, type BackchannelParts, rejectLogoutToken } from '../logout/backchannel.ts'
import { frontchannelLogout, type FrontchannelParts, rejectFrontchannelLogout } from '../logout/frontchannel.ts'
import { endOwnSessions, ownSessions, type OwnSessionsParts } from '../logout/own-sessions.ts'
import { signedOut, signOut, type SignOutParts } from '../logout/sign-out.ts'
import type { ScriptScope } from '../pages/scripts.ts'
import { SeveralSessionsError, withOneSession } from '../session/cookies/one-session.ts'
import { hasSeveral } from '../session/cookies/session-cookie.ts'
import { makeKey } from '../sign-in/access-keys.ts'
import { callback, callbackPost } from '../sign-in/callback.ts'
import { frameSession } from '../sign-in/frame.ts'
import { initiateLogin, initiateLoginPost } from '../sign-in/initiate-login.ts'
import { extendSession, session, signedIn, signInRequired } from '../sign-in/session-endpoints.ts'
import type { SignInParts } from '../sign-in/sign-in-parts.ts'
import { signIn } from '../sign-in/sign-in.ts'
import type { SignalParts } from '../signals/carry-out.ts'
import { rejectSecurityEvent, securityEvents } from '../signals/delivery.ts'
import { globalTokenRevocation, rejectRevocation } from '../signals/revocation.ts'
import type { Realm } from './realm.ts'
import type { Meant, PageOfHost, Realms } from './realms.ts'
import { codeOf, endRecord, type Refusals, respond } from './responses.ts'
import { type SessionEventsParts, sessionEvents } from './session-events.ts'

/** What the handlers of the endpoints need. */
export type EndpointParts = SignInParts &
  BackchannelParts &
  FrontchannelParts &
  SignOutParts &
  OwnSessionsParts &
  JwksParts &
  ClientJwksParts &
  KeptParts &
  OwnSecretParts &
  DeviceParts &
  SignalParts &
  SessionEventsParts & { readonly scope: ScriptScope }

export interface EndpointHandler {
  /** @throws {GatewayError} */
  handle(request: EndpointRequest, parts: EndpointParts): Promise<Response>
  /** The response to an error of `handle`. Absent: as for any error. */
  reject?(error: GatewayError, request: EndpointRequest, parts: EndpointParts): Response
}

/** The handler of each endpoint. */
const endpointHandlers: Readonly<Record<EndpointKey, EndpointHandler>> = {
  signIn: { handle: signIn },
  initiateLogin: { handle: initiateLogin },
  initiateLoginPost: { handle: initiateLoginPost },
  callback: { handle: callback },
  callbackPost: { handle: callbackPost },
  signOut: { handle: signOut },
  signedOut: { handle: signedOut },
  backchannelLogout: { handle: backchannelLogout, reject: rejectLogoutToken },
  securityEvents: { handle: securityEvents, reject: rejectSecurityEvent },
  globalTokenRevocation: { handle: globalTokenRevocation, reject: rejectRevocation },
  frontchannelLogout: { handle: frontchannelLogout, reject: rejectFrontchannelLogout },
  signedIn: { handle: signedIn },
  frameSession: { handle: frameSession },
  keptRequest: { handle: keptRequest },
  declineKeptRequest: { handle: declineKeptRequest },
  askForSecret: { handle: askForSecret },
  keepSecret: { handle: keepSecret },
  deviceRegistration: { handle: deviceRegistration },
  deviceRefresh: { handle: deviceRefresh },
  session: { handle: session },
  extendSession: { handle: extendSession },
  ownSessions: { handle: ownSessions },
  endOwnSessions: { handle: endOwnSessions },
  makeKey: { handle: makeKey },
  sessionScript: {
    handle: async (request, { pages, scope }) => pages.sessionScript(request, scope, request.ifNoneMatch),
  },
  events: { handle: sessionEvents },
  jwks: { handle: jwks },
  clientJwks: { handle: clientJwks },
  // The request handler serves these.
  forwardAuth: { handle: refuseOtherSpelling },
  authRequest: { handle: refuseOtherSpelling },
  extAuthz: { handle: refuseOtherSpelling },
  authResponse: { handle: refuseOtherSpelling },
}

/** An endpoint at its path. `realm` is that of the path; absent: the gateway finds it. */
interface ServedEndpoint extends Pick<EndpointAtPath, 'key' | 'endpoint'> {
  readonly realm: Realm | undefined
}

/** What depends on the realm that a request means. */
type OfRealm = keyof Realm | 'others' | 'choices' | 'scope'

export interface EndpointsParts extends Omit<EndpointParts, OfRealm> {
  readonly realms: Realms
  readonly store: SignInParts['store'] & SessionEventsParts['store'] & SignalParts['store']
  readonly rejectedClients: RejectedClients
  readonly refusals: Pick<Refusals, 'limitFormTime'>
}

/**
 * Serves the requests for the endpoints of the gateway: finds the endpoint, reads the content, and
 * sends the response.
 */
export class Endpoints {
  readonly #config: GatewayConfig
  readonly #parts: EndpointsParts
  readonly #limits: EndpointLimits
  readonly #partsOf: ReadonlyMap<Realm, EndpointParts>
  /** By method and canonical path, such as `GET /.gatehouse/session`. */
  readonly #endpoints: ReadonlyMap<string, ServedEndpoint>

  constructor(config: GatewayConfig, parts: EndpointsParts) {
    this.#config = config
    this.#parts = parts
    this.#limits = new EndpointLimits(config.limits.perClient, parts)
    const { realms } = parts
    const partsOf = (realm: Realm): EndpointParts => {
      const ofRealm = { others: realms.besides(realm), choices: [], scope: this.#scopeOf([realm]) }
      return { ...parts, ...realm, ...ofRealm }
    }
    this.#partsOf = new Map(realms.all.map((realm) => [realm, partsOf(realm)]))
    this.#endpoints = new Map(
      endpointsOf(config).flatMap(({ key, endpoint, path, provider }) => {
        const served = { key, endpoint, realm: provider && realms.of(provider) }
        return endpoint.methods.map((method) => [`${method} ${path}`, served] as const)
      }),
    )
  }

  /** Serves a request by its method and canonical target. */
  serve(incoming: Incoming): void {
    endRecord(incoming)
    if (hasBody(incoming.req)) this.#parts.refusals.limitFormTime(incoming)
    this.#respond(incoming)
      .then((response) => send(incoming, response))
      .catch((error: unknown) => send(incoming, this.#failed(error, incoming)))
  }

  /** `undefined`: the content did not arrive completely. */
  async #respond(incoming: Incoming): Promise<Response | undefined> {
    const { method, target } = incoming.facts
    const content = await contentOf(incoming)
    if (content === undefined || incoming.res.headersSent) return undefined
    const at = this.#endpoints.get(`${method} ${target.path}`)
    return at === undefined ? this.#notFound(incoming) : this.#handle(at, incoming, content)
  }

  async #handle(
    { key, endpoint, realm: own }: ServedEndpoint,
    incoming: Incoming,
    content: EndpointContent,
  ): Promise<Response> {
    const { handle, reject } = endpointHandlers[key]
    const received = await this.#requestOf(incoming, content)
    const meant = own && { realm: own, choices: [], candidates: [own] }
    const { realm, choices, candidates } = meant ?? (await this.#meant(received))
    const upstreams = this.#config.upstreams.filter(({ providers }) => providers.includes(realm.config.name))
    const ofHost = upstreamsOfHost(incoming.facts.host, upstreams)
    const request = { ...received, applicationCookies: ofHost.flatMap(({ logout }) => logout.cookies) }
    const ofOne = this.#partsOf.get(realm) as EndpointParts
    const known = candidates.length === 1 ? ofOne : { ...ofOne, scope: this.#scopeOf(candidates) }
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

  /** No endpoint has this path and method. */
  #notFound(incoming: Incoming): Response {
    const { method, target } = incoming.facts
    if (!isUtf8(target.path)) throw new GatewayError('ERR_REQUEST_MALFORMED', 'the path is not UTF-8')
    const refusal = endpointRefusal(method, target.path, this.#config)
    const headers = refusal?.code === 'ERR_METHOD_NOT_ALLOWED' ? { Allow: refusal.allowed.join(', ') } : {}
    return this.#refused(incoming, refusal?.code ?? 'ERR_NO_ROUTE', headers)
  }

  #failed(error: unknown, incoming: Incoming): Response {
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

  async #requestOf(incoming: Incoming, content: EndpointContent): Promise<EndpointRequest> {
    const { facts } = incoming
    const { all } = this.#parts.realms
    const request = endpointRequest(incoming, content, {
      externalUrl: externalUrlAt(facts.host, this.#config),
      home: startPageOf(facts.host, this.#config.upstreams),
    })
    if (facts.cookie === undefined || !hasSeveral(facts.cookie, all)) return request
    const { cookie } = await withOneSession({ ...facts, path: facts.target.path }, all)
    return { ...request, cookie }
  }

  /** The realm that a request means at a path of no provider. */
  #meant({ host, cookie, query, embeddingPage: from }: EndpointRequest): Promise<Meant> {
    const own = hostName(host)
    const pages = [query.get('return_to') ?? [], from ?? []].flat().map((page) => pageIn(page, own))
    return this.#parts.realms.meant({ host: own, cookie, pages })
  }

  /** The pages that have a session in common with a page of these realms. */
  #scopeOf([only, ...others]: readonly Realm[]): ScriptScope {
    if (only !== undefined && others.length === 0) return { prefix: only.prefix, providers: [] }
    const providers = [only, ...others].flatMap((realm) => realm?.config.name ?? [])
    return { prefix: this.#config.reservedPrefix, providers }
  }
}

/** The page that a `return_to` names, at a host that shares the session or at the requested one. */
function pageIn(text: string, own: string): PageOfHost {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) return { host: own, path: text }
  const { hostname, pathname, search } = new URL(text)
  return { host: hostname, path: pathname + search }
}

function isUtf8(path: string): boolean {
  try {
    return decodeURIComponent(path) !== ''
  } catch {
    return false
  }
}

/** Sends a response, unless the time for the content is over. */
function send(incoming: Incoming, response: Response | undefined): void {
  if (response === undefined || incoming.res.headersSent) return
  if (response.stream !== undefined) incoming.record.markAsStream('event_stream')
  respond(incoming, response)
}

/**
 * The content of a request; `undefined` when it is incomplete. Content of other types than those of
 * endpoints is read within the limit, as an empty form.
 * @throws {GatewayError} `ERR_MEDIA_TYPE` or `ERR_PAYLOAD_TOO_LARGE`
 */
async function contentOf({ req, facts: { method } }: Incoming): Promise<EndpointContent | undefined> {
  if (method === 'GET' || method === 'HEAD') return {}
  const type = mediaTypeOf(req)
  if (type === 'malformed') throw new GatewayError('ERR_MEDIA_TYPE', 'Content-Type is malformed')
  const content = hasBody(req) ? await readContent(req, maxFormBytes) : Buffer.alloc(0)
  if (content === 'incomplete') return undefined
  if (content === 'too_large')
    throw new GatewayError('ERR_PAYLOAD_TOO_LARGE', `the content is longer than ${maxFormBytes} bytes`)
  const text = content.toString()
  if (type === 'application/x-www-form-urlencoded') return { form: text }
  if (type === 'application/json') return { json: text }
  // RFC 8417 §2.3.
  return type === 'application/secevent+jwt' ? { securityEvent: text } : {}
}
