import type { IncomingMessage, ServerResponse } from 'node:http'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { refuseOtherSpelling } from '../check-requests/endpoints.ts'
import {
  type EndpointAtPath,
  endpointRefusal,
  type EndpointKey,
  endpointsOf,
  maxFormBytes,
} from '../config/endpoints.ts'
import { externalUrlAt, upstreamsOfHost, startPageOf } from '../config/hosts.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { ProviderConfig } from '../config/model/provider.ts'
import { clientOf } from '../core/addresses.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { GatewayError, reason } from '../core/errors.ts'
import { retryAfter } from '../core/repeating.ts'
import { type DeviceParts, deviceRefresh, deviceRegistration } from '../device/endpoints.ts'
import { type EndpointContent, endpointRequest, type EndpointRequest } from '../http/endpoint-request.ts'
import { hasBody } from '../http/request-body.ts'
import { hostName } from '../http/request-target.ts'
import { type Incoming, cookies, type Response, withHeaders, writeResponse } from '../http/response.ts'
import { jwks, type JwksParts } from '../identity/signed/signing-key.ts'
import { declineKeptRequest, keptRequest } from '../kept-forms/kept-request.ts'
import type { KeptParts } from '../kept-forms/send.ts'
import { clientJwks, type ClientJwksParts } from '../keys/decryption-keys.ts'
import { EndpointLimits, TooManyRequests } from '../limits/endpoint-limits.ts'
import type { RejectedClients } from '../limits/rejected-clients.ts'
import { backchannelLogout, rejectLogoutToken } from '../logout/backchannel.ts'
import { frontchannelLogout, rejectFrontchannelLogout } from '../logout/frontchannel.ts'
import { endOwnSessions, ownSessions } from '../logout/own-sessions.ts'
import type { LogoutParts } from '../logout/parts.ts'
import { signedOut, signOut } from '../logout/sign-out.ts'
import type { ScriptScope } from '../pages/session-script.ts'
import { hasSeveral, SeveralSessionsError, withOneSession } from '../session/cookies/cookie.ts'
import { callback, callbackPost } from '../sign-in/callback.ts'
import { frameSession } from '../sign-in/frame.ts'
import { initiateLogin, initiateLoginPost } from '../sign-in/initiate-login.ts'
import type { SignInParts } from '../sign-in/parts.ts'
import { extendSession, session, signedIn, signInRequired } from '../sign-in/session.ts'
import { signIn } from '../sign-in/sign-in.ts'
import type { SignalParts } from '../signals/carry-out.ts'
import { rejectSecurityEvent, securityEvents } from '../signals/delivery.ts'
import { globalTokenRevocation, rejectRevocation } from '../signals/revocation.ts'
import type { Realm } from './realm.ts'
import type { Meant, PageOfHost, Realms } from './realms.ts'
import { endRecord, type Refusals } from './responses.ts'
import { type SessionEventsParts, sessionEvents } from './session-events.ts'

/** What the handlers of the endpoints need. */
export type EndpointParts = SignInParts &
  LogoutParts &
  JwksParts &
  ClientJwksParts &
  KeptParts &
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
  clientJwks: { handle: clientJwks },
  // The request handler serves these.
  forwardAuth: { handle: refuseOtherSpelling },
  authRequest: { handle: refuseOtherSpelling },
  extAuthz: { handle: refuseOtherSpelling },
  authResponse: { handle: refuseOtherSpelling },
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
 * sends the response. Fastify never listens: requests of both kinds of connections are handed to
 * it.
 */
export class Endpoints {
  readonly #config: GatewayConfig
  readonly #parts: EndpointsParts
  readonly #limits: EndpointLimits
  readonly #partsOf: ReadonlyMap<Realm, Omit<EndpointParts, 'scope'>>
  readonly #app: FastifyInstance

  static async create(config: GatewayConfig, parts: EndpointsParts): Promise<Endpoints> {
    const endpoints = new Endpoints(config, parts)
    await endpoints.#app.ready()
    return endpoints
  }

  private constructor(config: GatewayConfig, parts: EndpointsParts) {
    this.#config = config
    this.#parts = parts
    this.#limits = new EndpointLimits(config.limits.perClient, parts)
    const partsOf = (realm: Realm) => ({ ...parts, ...realm, others: parts.realms.besides(realm), choices: [] })
    this.#partsOf = new Map(parts.realms.all.map((realm) => [realm, partsOf(realm)]))
    this.#app = this.#createApp()
  }

  #createApp(): FastifyInstance {
    const failed = (error: unknown, request: FastifyRequest, reply: FastifyReply) =>
      send(reply, this.#failed(error, incomingOf(request)))
    const app = Fastify({
      logger: false,
      bodyLimit: maxFormBytes,
      exposeHeadRoutes: false,
      trustProxy: false,
      frameworkErrors: (error, request, reply) => void failed(error, request, reply),
      // The endpoints have no schemas. Fastify would load two compilers of schemas.
      schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    })
    readContent(app)
    app.setErrorHandler(failed)
    app.setNotFoundHandler((request, reply) => send(reply, this.#notFound(incomingOf(request))))
    for (const at of endpointsOf(this.#config))
      app.route({
        method: [...at.endpoint.methods],
        url: at.path,
        handler: async (request, reply) => {
          const content = (request.body as EndpointContent | undefined) ?? {}
          return send(reply, await this.#respond(at, incomingOf(request), content))
        },
      })
    return app
  }

  /** Serves a request by its method and canonical target. */
  serve(incoming: Incoming): void {
    endRecord(incoming)
    if (hasBody(incoming.req)) this.#parts.refusals.limitFormTime(incoming)
    const message = new RoutedMessage(incoming) as unknown as IncomingMessage
    this.#app.routing(message, incoming.res as ServerResponse)
  }

  async #respond(at: EndpointAtPath, incoming: Incoming, content: EndpointContent): Promise<Response> {
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

  /** No endpoint has this path and method. */
  #notFound(incoming: Incoming): Response {
    const { method, target } = incoming.facts
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

function codeOf(error: unknown): ErrorCode {
  if (error instanceof GatewayError) return error.code
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : 500
  if (status === 413) return 'ERR_PAYLOAD_TOO_LARGE'
  if (status === 415) return 'ERR_MEDIA_TYPE'
  return typeof status === 'number' && status < 500 ? 'ERR_REQUEST_MALFORMED' : 'ERR_INTERNAL'
}

/** The parts of a request that Fastify uses. */
class RoutedMessage {
  readonly incoming: Incoming
  readonly method: string
  readonly url: string

  constructor(incoming: Incoming) {
    const { method, target } = incoming.facts
    this.incoming = incoming
    this.method = method
    this.url = target.path + target.query
  }

  get headers() {
    return this.incoming.req.headers
  }

  get socket() {
    return this.incoming.req.socket
  }

  on(event: 'data', listener: (part: Buffer) => void): this {
    this.incoming.req.on(event, listener)
    return this
  }

  removeListener(event: 'data', listener: (part: Buffer) => void): this {
    this.incoming.req.off(event, listener)
    return this
  }

  resume(): this {
    this.incoming.req.resume()
    return this
  }
}

function incomingOf({ raw }: Pick<FastifyRequest, 'raw'>): Incoming {
  return (raw as unknown as RoutedMessage).incoming
}

/** Sends the response and writes its facts to the record of the request. */
function send(reply: FastifyReply, response: Response): FastifyReply {
  const incoming = incomingOf(reply.request)
  const { record } = incoming
  reply.hijack()
  if (response.code !== undefined) record.code = response.code
  if (response.stream !== undefined) record.markAsStream('event_stream')
  record.bytes = writeResponse(incoming, response)
  return reply
}

/** Takes the place of a compiler of schemas. A schema for an endpoint would be an error. */
function noSchemas(): never {
  throw new Error('The endpoints have no schemas.')
}

/** RFC 8417 §2.3. */
const securityEventType = 'application/secevent+jwt'

/** Other content than that of an endpoint is read within the limit, as an empty form. */
function readContent(app: FastifyInstance): void {
  const read = (type: string, contentOf: (text: string) => EndpointContent) =>
    app.addContentTypeParser(type, { parseAs: 'string' }, (_request, body, done) => done(null, contentOf(String(body))))
  app.removeAllContentTypeParsers()
  read('application/x-www-form-urlencoded', (form) => ({ form }))
  read(securityEventType, (securityEvent) => ({ securityEvent }))
  read('application/json', (json) => ({ json }))
  read('*', () => ({}))
}
