import type { Duplex } from 'node:stream'
import type { CheckHandler, ForwardAuthEndpoints } from '../check-requests/check-endpoints.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { reason } from '../core/errors.ts'
import { randomId } from '../core/random.ts'
import { clearCookiesUrl } from '../core/return-to.ts'
import type { CorsFields } from '../gate/admission.ts'
import { type ResourceMetadata, resourceMetadata } from '../gate/bearer.ts'
import type { ClientMessage, ClientReply, SwitchingReply } from '../http/client-messages.ts'
import { requestId, type TrustedProxies, type UntrustedProxies } from '../http/forwarded.ts'
import { readContent } from '../http/read-content.ts'
import { isPage, isReserved, type RequestFacts, requireUnambiguous, unambiguousFacts } from '../http/request-facts.ts'
import { wholeServer } from '../http/request-target.ts'
import { isFromSite } from '../http/requesting-page.ts'
import { clearCookies, empty, type Incoming, json, type Response, withHeaders } from '../http/response.ts'
import { listedProtocols } from '../http/upgrade-field.ts'
import { mayBeSendCommand, referenceInSendCommand, sameContent, sendCommandBytes } from '../kept-forms/send.ts'
import type { ListenerHandlers } from '../listener/listener.ts'
import type { RequestBeginning } from '../listener/refusals.ts'
import { RequestRecord, type RequestSink } from '../observe/request-record.ts'
import { parseTraceParent } from '../observe/trace-context.ts'
import type { Tracer } from '../observe/tracing.ts'
import type { Pages } from '../pages/pages.ts'
import { carryUpgrade, refuseUpgrade, respondToUpgrade } from '../proxy/carry.ts'
import type { ProxyParts } from '../proxy/proxy-parts.ts'
import { type AdmissionHandler, overloaded, type Decisions } from './admission-handler.ts'
import type { Endpoints } from './endpoints.ts'
import { codeOf, type Refusals, respond } from './responses.ts'

export interface RequestHandlerParts {
  /** See `createCors`. */
  readonly cors: ((facts: RequestFacts) => CorsFields | undefined) | undefined
  readonly trusted: TrustedProxies
  readonly untrustedProxies: Pick<UntrustedProxies, 'note'>
  readonly pages: Pages
  /** Gets the record of every request when it has ended. */
  readonly sink: RequestSink
  /** Absent: the gateway does not trace, and forwards trace headers unchanged. */
  readonly tracer: Tracer | undefined
  /** Serves the check requests of other proxies. Absent: no upstream has `forward_auth`. */
  readonly checks?: Pick<ForwardAuthEndpoints, 'handlerOf'> | undefined
  readonly endpoints: Endpoints
  readonly decisions: Decisions
  readonly admissions: AdmissionHandler
  readonly refusals: Refusals
  readonly proxy: ProxyParts
}

type HandlerConfig = Pick<GatewayConfig, 'reservedPrefix' | 'limits' | 'externalUrl' | 'upstreams' | 'providers'>

type Reject = (code: ErrorCode, why: string) => void

/** A check request of another proxy, which may ask over a socket alone. */
interface CheckToServe {
  readonly req: ClientMessage
  readonly record: RequestRecord
  readonly respond: (response: Response) => void
  readonly reject: Reject
}

/** Handles each request of a generation: an endpoint or an upstream serves it, or it is refused. */
export class RequestHandler implements ListenerHandlers {
  readonly upgradeProtocols: readonly string[]
  readonly #config: HandlerConfig
  readonly #parts: RequestHandlerParts
  /** Whether an upstream has metadata about its access tokens. */
  readonly #hasMetadata: boolean

  constructor(config: HandlerConfig, parts: RequestHandlerParts) {
    this.upgradeProtocols = listedProtocols(config.upstreams)
    this.#config = config
    this.#parts = parts
    this.#hasMetadata = config.upstreams.some(({ accessTokens }) => accessTokens?.metadata === true)
  }

  closeEndlessStreams(): void {
    this.#parts.proxy.live.closeEndless()
  }

  request(req: ClientMessage, res: ClientReply): void {
    const received = { req, res, record: this.#begin(req) }
    const { record } = received
    const reject: Reject = (code, why) => this.#parts.refusals.refuse(received, code, why)
    const check = this.#parts.checks?.handlerOf(req.url ?? '')
    if (check !== undefined)
      return this.#serveCheck(check, { req, record, respond: (response) => respond(received, response), reject })
    const facts = this.#factsOf(req, record, reject)
    if (facts === undefined) return
    if (facts.target === wholeServer) return respond(received, empty(200))
    if (isReserved(facts.target, this.#config.reservedPrefix))
      return this.#parts.endpoints.serve({ ...received, facts })
    const metadata = this.#hasMetadata ? this.#metadata(facts) : undefined
    if (metadata !== undefined) return respond(received, metadata)
    const incoming = { req, res, record, facts, addedFields: this.#parts.cors?.(facts) }
    if (facts.method === 'POST' && facts.isPage && mayBeSendCommand(req)) this.#readSendCommand(incoming)
    else this.#parts.admissions.handle(incoming)
  }

  /** The response to a request about the tokens of an upstream. */
  #metadata({ method, host, target }: RequestFacts): Response | undefined {
    const metadata = resourceMetadata({ method, host, path: target.path }, this.#config)
    return metadata && metadataResponse(method, metadata)
  }

  /** Reads a request that may be a send command. If it is not, it is handled as usual. */
  #readSendCommand(incoming: Incoming): void {
    const { req, res, record } = incoming
    this.#parts.refusals.limitFormTime(incoming)
    void readContent(req, sendCommandBytes).then((content) => {
      if (typeof content === 'string') return record.end(undefined, false)
      if (res.headersSent) return
      const kept = referenceInSendCommand(content)
      this.#parts.admissions.handle(incoming, kept === undefined ? { same: sameContent(req, content) } : { kept })
    })
  }

  expectation(req: ClientMessage, res: ClientReply): void {
    const received = { req, res, record: this.#begin(req) }
    const reject: Reject = (code, why) => this.#parts.refusals.refuse(received, code, why)
    // RFC 9110 §10.1.1.
    if (this.#factsOf(req, received.record, reject) !== undefined)
      reject('ERR_EXPECTATION', 'the only supported value of Expect is 100-continue')
  }

  /**
   * No endpoint can be reached with a header section that is too large. So the button that removes
   * the cookies works only then, and no other site can use it to sign people out.
   */
  headersTooLarge(beginning: RequestBeginning | undefined): Response {
    const { pages } = this.#parts
    const { method = '', path, headers = {} } = beginning ?? {}
    const context = { requestId: randomId(), acceptLanguage: headers['accept-language'] }
    const isOurs = isFromSite('clear_cookies', { secFetchSite: headers['sec-fetch-site'] }, [])
    if (method === 'POST' && path === clearCookiesUrl(this.#config.reservedPrefix) && isOurs)
      return withHeaders(pages.redirectPage('/', context), clearCookies)
    if (isPage(method, headers)) return pages.tooManyCookies(context)
    return pages.refusal('ERR_HEADERS_TOO_LARGE', { ...context, asPage: false })
  }

  upgrade(req: ClientMessage, socket: Duplex, head: Buffer, reply: SwitchingReply): void {
    const { decisions, refusals, proxy, checks } = this.#parts
    const record = this.#begin(req)
    const client = { req, socket, reply }
    const reject: Reject = (code, why) => {
      refusals.log(req, record, code, why)
      refuseUpgrade(client, record, code)
    }
    const check = checks?.handlerOf(req.url ?? '')
    if (check !== undefined) {
      // Some proxies ask about a WebSocket with `Upgrade`.
      const respond = (response: Response) => respondToUpgrade(client, record, response)
      return this.#serveCheck(check, { req, record, respond, reject })
    }
    const facts = this.#factsOf(req, record, reject)
    if (facts === undefined) return
    if (facts.target === wholeServer || isReserved(facts.target, this.#config.reservedPrefix))
      return reject('ERR_NO_ROUTE', 'an endpoint of the gateway cannot be upgraded')
    const offer = { req, facts, record }
    decisions.decide(
      offer,
      (admission) => {
        if (admission.kind !== 'pass') {
          const { code, options } = decisions.recordRefusal(offer, admission)
          return refuseUpgrade(client, record, code, options)
        }
        if (!decisions.hasMemoryFor(offer, admission)) return reject('ERR_OVERLOADED', overloaded)
        decisions.recordPass(record, admission)
        carryUpgrade({ ...offer, ...client, head }, admission, proxy)
      },
      (error) => reject(codeOf(error), reason(error)),
    )
  }

  /** Serves the check request of another proxy. */
  #serveCheck(check: CheckHandler, { req, record, respond, reject }: CheckToServe): void {
    noteUnverified(req, record)
    record.askedBy = record.client
    try {
      requireUnambiguous(req, this.#config.limits)
    } catch (error) {
      return reject(codeOf(error), reason(error))
    }
    check(req, record).then(respond, (error: unknown) => reject(codeOf(error), reason(error)))
  }

  #begin(req: ClientMessage): RequestRecord {
    const { trusted, sink, tracer } = this.#parts
    const record = new RequestRecord(req.method ?? '', requestId(req.headers, req.socket.remoteAddress, trusted), sink)
    record.isHttp2 = req.httpVersion === '2.0'
    const { traceparent } = req.headers
    if (tracer !== undefined) {
      const isTrusted = traceparent !== undefined && trusted.hasPeer(req.socket.remoteAddress ?? '')
      record.trace = tracer.begin(traceparent, req.headers['tracestate'], isTrusted)
      record.traceId = record.trace.traceId
    } else if (traceparent !== undefined) record.traceId = parseTraceParent(traceparent)?.traceId
    return record
  }

  /** The facts of a valid request. An invalid one is passed to `reject`. */
  #factsOf(req: ClientMessage, record: RequestRecord, reject: Reject): RequestFacts | undefined {
    try {
      const facts = unambiguousFacts(req, this.#config, this.#parts.trusted)
      this.#parts.untrustedProxies.note(req.socket.remoteAddress, req.headers)
      record.client = facts.forwarded.clientAddress
      record.host = facts.host
      record.path = facts.target.path
      if (record.trace !== undefined) record.trace.requestOrigin = facts.forwarded
      return facts
    } catch (error) {
      noteUnverified(req, record)
      return void reject(codeOf(error), reason(error))
    }
  }
}

/** It is public, and pages of all origins read it, with fields such as `MCP-Protocol-Version`. */
function metadataResponse(method: string, metadata: ResourceMetadata): Response {
  const headers = { 'Cache-Control': 'public, max-age=300', 'Access-Control-Allow-Origin': '*' }
  if (method !== 'OPTIONS') return json(200, metadata, headers)
  return empty(204, { ...headers, 'Access-Control-Allow-Methods': 'GET', 'Access-Control-Allow-Headers': '*' })
}

/** Notes the peer, the host and the path of a request that was not verified. */
function noteUnverified(req: ClientMessage, record: RequestRecord): void {
  record.client = req.socket.remoteAddress ?? 'unknown'
  record.host = (req.headers.host ?? '').replace(/:\d*$/, '')
  record.path = pathOf(req.url ?? '')
}

/** The path of a request target that may be malformed. */
function pathOf(target: string): string {
  return target.startsWith('/') ? target.replace(/[?#].*$/s, '') : ''
}
