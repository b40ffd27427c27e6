import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { refuseOtherSpelling } from '../check-requests/endpoints.ts'
import {
  type EndpointAtPath,
  type EndpointKey,
  endpointRefusal,
  endpointsOf,
  maxFormBytes,
} from '../config/endpoints.ts'
import { externalUrlAt, upstreamsOfHost } from '../config/hosts.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { ProviderConfig } from '../config/model/provider.ts'
import { clientOf } from '../core/addresses.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { GatewayError, reason } from '../core/errors.ts'
import type { DeviceParts } from '../device/parts.ts'
import { deviceRefresh } from '../device/refresh.ts'
import { deviceRegistration } from '../device/registration.ts'
import { startPageOf } from '../gate/start-page.ts'
import type { ClientMessage } from '../http/client-messages.ts'
import { type EndpointRequest, initiatorOf, isByPerson } from '../http/endpoint-request.ts'
import type { TrustedProxies } from '../http/forwarded.ts'
import { hostName } from '../http/host.ts'
import { hasBody } from '../http/request-body.ts'
import { embeddingPage, requestFacts } from '../http/request-facts.ts'
import { cookies, type Response, withHeaders, writeResponse } from '../http/response.ts'
import { jwks, type JwksParts } from '../identity/signed/jwks.ts'
import { declineKeptRequest, keptRequest } from '../kept-forms/kept-request.ts'
import type { KeptParts } from '../kept-forms/send.ts'
import { EndpointLimits, TooManyRequests } from '../limits/endpoint-limits.ts'
import type { RejectedClients } from '../limits/rejected-clients.ts'
import { backchannelLogout, rejectLogoutToken } from '../logout/backchannel.ts'
import { frontchannelLogout, rejectFrontchannelLogout } from '../logout/frontchannel.ts'
import { endOwnSessions, ownSessions } from '../logout/own-sessions.ts'
import type { LogoutParts } from '../logout/parts.ts'
import { signOut } from '../logout/sign-out.ts'
import { signedOut } from '../logout/signed-out.ts'
import type { RequestRecord } from '../observe/request-record.ts'
import { pageContext } from '../pages/pages.ts'
import type { ScriptScope } from '../pages/session-script.ts'
import { hasSeveral, SeveralSessionsError, withOneSession } from '../session/cookies/several-cookies.ts'
import { callbackPost } from '../sign-in/authorization-response.ts'
import { callback } from '../sign-in/callback.ts'
import { initiateLogin, initiateLoginPost } from '../sign-in/initiate-login.ts'
import type { SignInParts } from '../sign-in/parts.ts'
import { extendSession, session, signInRequired } from '../sign-in/session.ts'
import { signIn } from '../sign-in/sign-in.ts'
import { signedIn } from '../sign-in/signed-in.ts'
import type { SignalParts } from '../signals/parts.ts'
import { rejectSecurityEvent, securityEvents } from '../signals/push.ts'
import type { Meant, PageOfHost, Realm, Realms } from './realms.ts'
import { sessionEvents, type SessionEventsParts } from './session-events.ts'

/** What the handlers of the endpoints need. */
export type EndpointParts = SignInParts &
  LogoutParts &
  JwksParts &
  KeptParts &
  DeviceParts &
  SignalParts &
  SessionEventsParts & { readonly scope: ScriptScope }

interface Handler {
  /** @throws {GatewayError} */
  handle(request: EndpointRequest, parts: EndpointParts): Promise<Response>
  /** The response to an error of `handle`. Absent: as for any error. */
  reject?(error: GatewayError, request: EndpointRequest, parts: EndpointParts): Response
}

const handlers: Readonly<Record<EndpointKey, Handler>> = {
  signIn: { handle: signIn },
  initiateLogin: { handle: initiateLogin },
  initiateLoginPost: { handle: initiateLoginPost },
  callback: { handle: callback },
  callbackPost: { handle: callbackPost },
  signOut: { handle: signOut },
  signedOut: { handle: signedOut },
  backchannelLogout: { handle: backchannelLogout, reject: rejectLogoutToken },
  securityEvents: { handle: securityEvents, reject: rejectSecurityEvent },
  frontchannelLogout: { handle: frontchannelLogout, reject: rejectFrontchannelLogout },
  signedIn: { handle: signedIn },
  keptRequest: { handle: keptRequest },
  declineKeptRequest: { handle: declineKeptRequest },
  deviceRegistration: { handle: deviceRegistration },
  deviceRefresh: { handle: deviceRefresh },
  session: { handle: session },
  extendSession: { handle: extendSession },
  ownSessions: { handle: ownSessions },
  endOwnSessions: { handle: endOwnSessions },
  sessionScript: {
    handle: async (request, { pages, scope }) => pages.sessionScript(request, scope, request.ifNoneMatch),
  },
  events: { handle: sessionEvents },
  jwks: { handle: jwks },
  // The request handler serves these.
  forwardAuth: { handle: refuseOtherSpelling },
  authRequest: { handle: refuseOtherSpelling },
  extAuthz: { handle: refuseOtherSpelling },
  authResponse: { handle: refuseOtherSpelling },
}

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

export interface AppParts extends Omit<EndpointParts, OfRealm> {
  readonly realms: Realms
  readonly store: SignInParts['store'] & SessionEventsParts['store'] & SignalParts['store']
  readonly trusted: TrustedProxies
  readonly recordOf: (req: ClientMessage) => RequestRecord
  readonly rejectedClients: RejectedClients
}

/** The endpoints of the gateway. */
export interface Endpoints {
  /** Serves all requests. It never listens: the request handler calls `app.routing`. */
  readonly app: FastifyInstance
  /**
   * Responds to the usual requests of a sign-in, and to a Logout Token, without the classes of
   * Node's server and without a router. `undefined`: `app` serves the request.
   */
  readonly respond: (req: ClientMessage) => Promise<Response> | undefined
}

/** Each sign-in and each logout at the provider has a request for one of these. */
const frequent: readonly EndpointKey[] = ['signIn', 'callback', 'callbackPost', 'backchannelLogout']

/** The parts of a request that the endpoints read. A request of Fastify has them. */
interface Received extends Pick<FastifyRequest, 'method' | 'url' | 'headers' | 'id' | 'body'> {
  readonly raw: ClientMessage
}

export async function createEndpoints(config: GatewayConfig, parts: AppParts): Promise<Endpoints> {
  const app = Fastify({
    logger: false,
    bodyLimit: maxFormBytes,
    exposeHeadRoutes: false,
    trustProxy: false,
    // This ID is unique across all processes. The numbers of Fastify are not.
    genReqId: (req) => parts.recordOf(req).id,
    // The endpoints have no schemas. Fastify would load two compilers of schemas.
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
  })
  readForms(app)
  const partsOf = new Map(parts.realms.all.map((realm) => [realm, endpointPartsOf(realm, parts)]))
  const limits = new EndpointLimits(config.limits.perClient, parts)
  const requestOf = (request: Received) => toEndpointRequest(request, config, parts)

  app.setErrorHandler((error, request, reply) => send(reply, errorResponse(error, request)))
  app.setNotFoundHandler((request, reply) => send(reply, notFound(request)))
  const all = endpointsOf(config)
  const direct = new Map(
    all
      .filter(({ key }) => frequent.includes(key))
      .flatMap((at) => at.endpoint.methods.map((method) => [`${method} ${at.path}`, at])),
  )
  for (const at of all)
    app.route({
      method: [...at.endpoint.methods],
      url: at.path,
      handler: async (request, reply) => send(reply, await serve(at, requestOf(request))),
    })
  await app.ready()
  return { app, respond }

  function respond(raw: ClientMessage): Promise<Response> | undefined {
    const { method = '', url = '', headers } = raw
    const at = direct.get(`${method} ${pathOf(url)}`)
    if (at === undefined) return undefined
    const body = arrivedContent(raw)
    if (body === undefined) return undefined
    return respondAt(at, { method, url, headers, raw, id: parts.recordOf(raw).id, body })
  }

  async function respondAt(at: EndpointAtPath, request: Received): Promise<Response> {
    try {
      return await serve(at, requestOf(request))
    } catch (error) {
      return errorResponse(error, request)
    }
  }

  async function serve({ key, endpoint, provider }: EndpointAtPath, sent: EndpointRequest): Promise<Response> {
    const { handle, reject } = handlers[key]
    const received = hasSeveral(sent.cookie, parts.realms.all) ? await withOneCookie(sent) : sent
    const { realm, choices, candidates } = await meant(provider, received)
    const request = { ...received, applicationCookies: applicationCookiesOf(realm, received) }
    const known = { ...(partsOf.get(realm) as Omit<EndpointParts, 'scope'>), scope: scopeOf(candidates) }
    // Until the person has chosen a provider, links lead to the choice.
    const ofRealm = choices.length === 0 ? known : { ...known, choices, prefix: config.reservedPrefix }
    // These requests do not count against the limit. Otherwise a page of another site could use up
    // the limit of a client address.
    if (endpoint.isForPageLoads && !request.isByPerson) return signInRequired(request, ofRealm)
    try {
      return await limits.within(endpoint.limit, clientOf(request.cause.client), () => handle(request, ofRealm))
    } catch (error) {
      if (reject === undefined || !(error instanceof GatewayError) || error instanceof TooManyRequests) throw error
      return reject(error, request, ofRealm)
    }
  }

  async function withOneCookie(request: EndpointRequest): Promise<EndpointRequest> {
    const { cookie, host, url } = request
    const about = { cookie, host: hostName(host), path: pathOf(url) }
    return { ...request, cookie: (await withOneSession(about, parts.realms.all)).cookie }
  }

  /** The realm that a request means: that of its path, or the one that the gateway finds. */
  function meant(provider: ProviderConfig | undefined, request: EndpointRequest): Promise<Meant> | Meant {
    if (provider !== undefined) return ofProvider(parts.realms.of(provider))
    const { host, cookie, query, embeddingPage: from } = request
    const own = hostName(host)
    const pages = [query.get('return_to') ?? [], from ?? []].flat().map((page) => pageIn(page, own))
    return parts.realms.meant({ host: own, cookie, pages })
  }

  /** The pages that have a session in common with a page of these realms. */
  function scopeOf([only, ...others]: readonly Realm[]): ScriptScope {
    if (only !== undefined && others.length === 0) return { prefix: only.prefix, providers: [] }
    const providers = [only, ...others].flatMap((realm) => realm?.config.name ?? [])
    return { prefix: config.reservedPrefix, providers }
  }

  function applicationCookiesOf(realm: Realm, { host }: EndpointRequest): EndpointRequest['applicationCookies'] {
    const own = config.upstreams.filter(({ providers }) => providers.includes(realm.config.name))
    return upstreamsOfHost(hostName(host), own).flatMap(({ logout }) => logout.cookies)
  }

  /** Sends the response and writes its facts to the record of the request. */
  function send(reply: FastifyReply, response: Response): FastifyReply {
    const { raw: req } = reply.request
    const record = parts.recordOf(req)
    reply.hijack()
    if (response.code !== undefined) record.code = response.code
    if (response.stream !== undefined) record.markAsStream('event_stream')
    record.bytes = writeResponse(req, reply.raw, response)
    return reply
  }

  function notFound(request: FastifyRequest): Response {
    const refusal = endpointRefusal(request.method, pathOf(request.url), config)
    const headers = refusal?.code === 'ERR_METHOD_NOT_ALLOWED' ? { Allow: refusal.allowed.join(', ') } : {}
    return refused(request, refusal?.code ?? 'ERR_NO_ROUTE', headers)
  }

  function errorResponse(error: unknown, request: Received): Response {
    const code = codeOf(error)
    if (error instanceof TooManyRequests)
      return refused(request, code, { 'Retry-After': String(error.retryAfterSeconds) })
    const fields = { url: pathOf(request.url), code, reason: reason(error), request: request.id }
    if (code === 'ERR_INTERNAL') parts.log.error('request.failed', fields)
    else parts.log.warn('request.refused', fields)
    const response = refused(request, code)
    return error instanceof SeveralSessionsError ? withHeaders(response, cookies(error.setCookies)) : response
  }

  function refused(request: Received, code: ErrorCode, headers: Response['headers'] = {}): Response {
    const endpointRequest = requestOf(request)
    return parts.pages.refusal(code, { ...pageContext(endpointRequest), asPage: endpointRequest.isPage, headers })
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
function endpointPartsOf(realm: Realm, parts: AppParts): Omit<EndpointParts, 'scope'> {
  const { provider, sessions, cookie, boundCookie, upkeep, personCookie, kept, prefix } = realm
  const { personSessions, refusedSignIns, returns, streamRecord } = realm
  return {
    ...parts,
    ...{ provider, sessions, cookie, boundCookie, upkeep, personCookie, kept, prefix, personSessions, refusedSignIns },
    ...{ returns, streamRecord, others: parts.realms.besides(realm), choices: [] },
  }
}

/** The facts that endpoints need about a request. */
function toEndpointRequest(request: Received, config: GatewayConfig, parts: AppParts): EndpointRequest {
  const { method, url, headers } = request
  const { host, target, cookie, isPage, isFrame, forwarded } = requestFacts(
    request.raw,
    parts.trusted,
    config.externalUrl.host,
  )
  const externalUrl = externalUrlAt(host, config)
  return {
    ...{ method, url, cookie, isPage, isFrame, externalUrl },
    query: new URLSearchParams(target.query),
    form: new URLSearchParams(typeof request.body === 'string' ? request.body : ''),
    ...{ proto: forwarded.proto, host: forwarded.host },
    ...initiatorOf(headers),
    isByPerson: isByPerson(isPage, headers),
    embeddingPage: embeddingPage(headers, forwarded.host),
    // Known with the realm: see `serve`.
    applicationCookies: [],
    home: startPageOf(host, config.upstreams),
    requestId: request.id,
    acceptLanguage: headers['accept-language'],
    userAgent: headers['user-agent'],
    ifNoneMatch: headers['if-none-match'],
    lastEventId: [headers['last-event-id']].flat()[0],
    securityEvent: request.body instanceof SecurityEventContent ? request.body.token : undefined,
    authorization: headers.authorization,
    deviceProof: [headers['secure-session-response']].flat()[0],
    skippedSession: [headers['secure-session-skipped']].flat()[0],
    deviceSession: [headers['sec-secure-session-id']].flat()[0],
    cause: parts.recordOf(request.raw).cause,
  }
}

/** RFC 8417 §2.3. */
const securityEventType = 'application/secevent+jwt'

/** The content of a request with a Security Event Token. */
class SecurityEventContent {
  readonly token: string

  constructor(token: string) {
    this.token = token
  }
}

/** Takes the place of a compiler of schemas. A schema for an endpoint would be an error. */
function noSchemas(): never {
  throw new Error('The endpoints have no schemas.')
}

/** Reads a form as text. Other content is read within the limit, and treated as an empty form. */
function readForms(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) =>
    done(null, body),
  )
  app.addContentTypeParser(securityEventType, { parseAs: 'string' }, (_request, body, done) =>
    done(null, new SecurityEventContent(String(body))),
  )
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, _body, done) => done(null, undefined))
}

const formType = /^application\/x-www-form-urlencoded(?: ?; ?charset=utf-8)?$/i

/**
 * The content of a request that needs no reader: none of a GET, or the form of a POST that has
 * arrived completely. `undefined`: Fastify has to read the request.
 */
function arrivedContent(req: ClientMessage): string | undefined {
  if (req.method === 'GET') return hasBody(req) ? undefined : ''
  if (req.method !== 'POST') return undefined
  const { 'content-type': type = '', 'content-length': length = '0' } = req.headers
  const isForm = formType.test(type) && Number(length) > 0 && Number(length) <= maxFormBytes
  return isForm ? req.takeContent?.()?.toString('utf8') : undefined
}

function codeOf(error: unknown): ErrorCode {
  if (error instanceof GatewayError) return error.code
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : 500
  if (status === 413) return 'ERR_PAYLOAD_TOO_LARGE'
  if (status === 415) return 'ERR_MEDIA_TYPE'
  return typeof status === 'number' && status < 500 ? 'ERR_REQUEST_MALFORMED' : 'ERR_INTERNAL'
}

function pathOf(url: string): string {
  return url.replace(/\?.*$/s, '')
}
