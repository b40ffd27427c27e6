import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ForwardAuthEndpoints, CheckHandler } from '../check-requests/endpoints.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { GatewayError, reason, unreachable } from '../core/errors.ts'
import { randomId } from '../core/random.ts'
import { clearCookiesUrl, keptUrl, signInUrl } from '../core/return-to.ts'
import type { MisuseLog } from '../device/misuse.ts'
import { type Admission, type FormAdmission, misuseIn } from '../gate/admission.ts'
import type { Admit } from '../gate/admit.ts'
import { auditCaller, auditDenial, auditObserved } from '../gate/audit-denial.ts'
import type { CorsFields } from '../gate/cors.ts'
import { refusalOf } from '../gate/refusal.ts'
import { type ResourceMetadata, resourceMetadata } from '../gate/resource-metadata.ts'
import { startPageOf } from '../gate/start-page.ts'
import type { ClientMessage, ClientReply, UseNodeMessage } from '../http/client-messages.ts'
import { initiatorOf } from '../http/endpoint-request.ts'
import type { TrustedProxies } from '../http/forwarded.ts'
import { closeWhenUnread } from '../http/lingering-close.ts'
import type { RequestBeginning } from '../http/request-beginning.ts'
import { continueIfExpected, hasBody } from '../http/request-body.ts'
import { isFrame, isPage, isScript, returnPage, type RequestFacts } from '../http/request-facts.ts'
import { requestId } from '../http/request-id.ts'
import { wholeServer } from '../http/request-target.ts'
import {
  addSameToResponses,
  addToResponses,
  clearCache,
  clearCookies,
  cookies,
  empty,
  json,
  redirect,
  type Response,
  withHeaders,
  writeResponse,
  writeToSocket,
} from '../http/response.ts'
import type { ReplacedContent } from '../http/stored-content.ts'
import { isReserved, requireUnambiguous, unambiguousFacts } from '../http/unambiguous-request.ts'
import type { UntrustedProxies } from '../http/untrusted-proxies.ts'
import { listedProtocols } from '../http/upgrade-field.ts'
import type { Kept } from '../kept-forms/kept-requests.ts'
import type { ReceivedForm } from '../kept-forms/receive.ts'
import {
  mayBeSendCommand,
  readSendCommand,
  referenceInSendCommand,
  sameContent,
  type SentRequest,
} from '../kept-forms/send.ts'
import { formTimeoutMs } from '../limits/connection-limits.ts'
import type { MemoryBudget } from '../limits/memory-budget.ts'
import type { ListenerHandlers } from '../listener/listener.ts'
import { signsOutAtOnce } from '../logout/sign-out.ts'
import type { Audit, Cause } from '../observe/audit.ts'
import type { Log } from '../observe/log.ts'
import { RequestRecord, type RequestSink } from '../observe/request-record.ts'
import { parseTraceParent } from '../observe/trace-context.ts'
import type { Tracer } from '../observe/tracing.ts'
import type { NotKept } from '../pages/messages/messages.ts'
import type { Pages, PageContext, RefusalOptions } from '../pages/pages.ts'
import { isSentCompletely } from '../proxy/client-response.ts'
import { carry } from '../proxy/http.ts'
import type { Pass, ProxyParts } from '../proxy/parts.ts'
import { carryUpgrade, refuseUpgrade } from '../proxy/upgrade.ts'
import { SeveralSessionsError } from '../session/cookies/several-cookies.ts'

export interface RequestHandlerParts {
  readonly admit: Admit
  /** See `createCors`. */
  readonly cors: (facts: RequestFacts) => CorsFields | undefined
  readonly trusted: TrustedProxies
  readonly untrustedProxies: Pick<UntrustedProxies, 'note'>
  readonly proxy: ProxyParts
  readonly log: Log
  readonly audit: Audit
  readonly misuseLog: Pick<MisuseLog, 'note'>
  readonly pages: Pages
  /** Gets the record of every request when it has ended. */
  readonly sink: RequestSink
  readonly memory: Pick<MemoryBudget, 'admits'>
  /** Absent: the gateway does not trace, and forwards trace headers unchanged. */
  readonly tracer: Tracer | undefined
  /**
   * See `receiveForm` of the room `kept`. `prefix` is the path of the endpoints where the person
   * signs in.
   */
  readonly receiveForm: (form: ReceivedForm, prefix: string) => Promise<(Kept & { readonly prefix: string }) | NotKept>
  /** See `takeForSending`. */
  readonly takeKept: (
    reference: string,
    pass: Pass,
    req: ClientMessage,
    facts: RequestFacts,
    cause: Cause,
  ) => Promise<SentRequest | undefined>
  /** Serves the check requests of other proxies. Absent: no upstream has `forward_auth`. */
  readonly checks?: Pick<ForwardAuthEndpoints, 'handlerOf'> | undefined
  /**
   * The response of an endpoint of the gateway to a usual request. `undefined`: `serveEndpoint` has
   * to serve it.
   */
  readonly respondAsEndpoint: (req: ClientMessage, record: RequestRecord) => Promise<Response> | undefined
  /** Serves a request for an endpoint of the gateway. */
  readonly serveEndpoint: (req: IncomingMessage, res: ServerResponse, record: RequestRecord) => void
}

/**
 * Connections with a request whose framing is invalid. It is unknown where the next request begins
 * (RFC 9112 §11.2).
 */
const invalidlyFramed = new WeakSet<Socket>()

/**
 * The sign-in endpoint checks by the `Referer` whether the browser is at `external_url`. With
 * "no-referrer" the browser would not send it (Fetch §4.4).
 */
const keepsReferer = { 'Referrer-Policy': 'same-origin' }

const overloaded = 'the gateway holds too much for clients'

/** The content of a request that was read before the decision. */
interface ReadContent {
  /** The request is the send command for the kept request with this reference. */
  readonly kept?: string
  /** The request is not a send command, and has this content. */
  readonly same?: ReplacedContent
}

type HandlerConfig = Pick<GatewayConfig, 'reservedPrefix' | 'limits' | 'externalUrl' | 'upstreams' | 'providers'>

/**
 * Handles each request of one generation: an endpoint of the gateway serves it, or the proxy
 * carries it to its upstream, or it is refused.
 */
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
    if (invalidlyFramed.has(req.socket)) return void res.destroy()
    const record = this.#begin(req)
    const check = this.#parts.checks?.handlerOf(req.url ?? '')
    if (check !== undefined) {
      return this.#serveCheck(check, req, record, {
        respond: (response) => respond(req, res, record, response),
        reject: (code, why) => this.#refuse(req, res, record, code, why),
      })
    }
    const facts = this.#factsOf(req, record, (code, why) => this.#refuse(req, res, record, code, why))
    if (facts === undefined) return
    if (facts.target === wholeServer) return respond(req, res, record, empty(200))
    if (isReserved(facts.target, this.#config.reservedPrefix)) {
      return this.#serveEndpoint(req, res, record, {
        method: facts.method,
        url: facts.target.path + facts.target.query,
      })
    }
    if (this.#hasMetadata) {
      const { method, host, target } = facts
      const metadata = resourceMetadata({ method, host, path: target.path }, this.#config)
      if (metadata !== undefined) return respond(req, res, record, metadataResponse(metadata))
    }
    const cors = this.#parts.cors(facts)
    if (cors !== undefined) addToResponses(req, cors)
    if (mayBeSendCommand(req, facts.isPage))
      asNodeMessage(req, res, (nodeReq, nodeRes) => this.#readSendCommand(nodeReq, nodeRes, facts, record))
    else this.#handle(req, res, facts, record)
  }

  #handle(
    req: ClientMessage,
    res: ClientReply,
    facts: RequestFacts,
    record: RequestRecord,
    content: ReadContent = {},
  ): void {
    this.#decide(
      facts,
      (admission) => this.#carryOut(req, res, facts, record, admission, content),
      (error) => {
        const setCookies = error instanceof SeveralSessionsError ? error.setCookies : []
        this.#refuse(req, res, record, codeOf(error), reason(error), { ...content, setCookies })
      },
    )
  }

  /** Reads a request that may be a send command. If it is not, it is handled as usual. */
  #readSendCommand(req: IncomingMessage, res: ServerResponse, facts: RequestFacts, record: RequestRecord): void {
    this.#limitFormTime(req, res, record)
    readSendCommand(req).then(
      (content) => {
        if (res.headersSent) return
        const kept = referenceInSendCommand(content)
        const read = kept === undefined ? { same: sameContent(req, content) } : { kept }
        this.#handle(req, res, facts, record, read)
      },
      () => record.end(undefined, false),
    )
  }

  expectation(req: ClientMessage, res: ClientReply): void {
    if (invalidlyFramed.has(req.socket)) return void res.destroy()
    const record = this.#begin(req)
    const facts = this.#factsOf(req, record, (code, why) => this.#refuse(req, res, record, code, why))
    // RFC 9110 §10.1.1.
    if (facts !== undefined)
      this.#refuse(req, res, record, 'ERR_EXPECTATION', 'the only supported value of Expect is 100-continue')
  }

  /**
   * No endpoint can be reached with a header section that is too large. So the button that removes
   * the cookies works only then, and no other site can use it to sign people out.
   */
  headersTooLarge(beginning: RequestBeginning | undefined): Response {
    const { pages } = this.#parts
    const { method = '', path, headers = {} } = beginning ?? {}
    const context = { requestId: randomId(), acceptLanguage: headers['accept-language'] }
    const site = headers['sec-fetch-site'] ?? 'same-origin'
    if (method === 'POST' && path === clearCookiesUrl(this.#config.reservedPrefix) && site === 'same-origin')
      return withHeaders(pages.redirectPage('/', context), clearCookies)
    if (isPage(method, headers)) return pages.tooManyCookies(context)
    return pages.refusal('ERR_HEADERS_TOO_LARGE', { ...context, asPage: false })
  }

  /** Passes the request to an endpoint of the gateway, with another method and URL. */
  #serveEndpoint(
    req: ClientMessage,
    res: ClientReply,
    record: RequestRecord,
    target: { readonly method: string; readonly url: string },
  ): void {
    Object.assign(req, target)
    const response = this.#parts.respondAsEndpoint(req, record)
    if (response !== undefined) {
      response
        .then((found) => respond(req, res, record, found))
        .catch((error: unknown) => this.#refuse(req, res, record, codeOf(error), reason(error)))
      return
    }
    asNodeMessage(req, res, (nodeReq, nodeRes) => {
      Object.assign(nodeReq, target)
      endRecordWith(nodeRes, record)
      if (hasBody(nodeReq)) this.#limitFormTime(nodeReq, nodeRes, record)
      this.#parts.serveEndpoint(nodeReq, nodeRes, record)
    })
  }

  /**
   * Limits the time for the whole form, because a client that sends it byte by byte could keep its
   * connection open without end.
   */
  #limitFormTime(req: ClientMessage, res: ClientReply, record: RequestRecord): void {
    continueIfExpected(req, res)
    const timer = setTimeout(() => {
      if (!req.complete) this.#refuse(req, res, record, 'ERR_REQUEST_TIMEOUT', 'the content did not arrive in time')
    }, formTimeoutMs(this.#config.limits))
    timer.unref()
    req.once('close', () => clearTimeout(timer))
  }

  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    const record = this.#begin(req)
    const reject = (code: ErrorCode, why: string) => {
      this.#logRefusal(req, record, code, why)
      refuseUpgrade(socket, record, code, {})
    }
    const check = this.#parts.checks?.handlerOf(req.url ?? '')
    if (check !== undefined) {
      // Some proxies ask about a WebSocket with `Upgrade`.
      const respondToSocket = (response: Response) => {
        record.bytes = writeToSocket(socket, response)
        record.end(response.status, true)
      }
      return this.#serveCheck(check, req, record, { respond: respondToSocket, reject })
    }
    const facts = this.#factsOf(req, record, reject)
    if (facts === undefined) return
    if (facts.target === wholeServer || isReserved(facts.target, this.#config.reservedPrefix))
      return reject('ERR_NO_ROUTE', 'an endpoint of the gateway cannot be upgraded')
    this.#decide(
      facts,
      (admission) => {
        this.#noteMisuse(admission, facts, record)
        if (admission.kind === 'pass') {
          if (!this.#hasMemoryFor(req, facts, admission)) return reject('ERR_OVERLOADED', overloaded)
          record.upstream = admission.upstream.name
          record.session = admission.session
          record.caller = admission.caller
          if (admission.observed !== undefined) auditObserved(this.#parts.audit, record, admission.observed)
          return carryUpgrade(req, socket, head, admission, facts, record, this.#parts.proxy)
        }
        const [code, why, options] = refusalOf(admission)
        if ('rule' in admission) auditDenial(this.#parts.audit, record, { ...admission, code })
        else if (admission.kind === 'caller_refused') auditCaller(this.#parts.audit, record, admission)
        else this.#logRefusal(req, record, code, why)
        return refuseUpgrade(socket, record, code, options)
      },
      (error) => reject(codeOf(error), reason(error)),
    )
  }

  /** Serves the check request of another proxy. */
  #serveCheck(
    check: CheckHandler,
    req: ClientMessage,
    record: RequestRecord,
    {
      respond,
      reject,
    }: {
      readonly respond: (response: Response) => void
      readonly reject: (code: ErrorCode, why: string) => void
    },
  ): void {
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
    const id = requestId(req.headers, req.socket.remoteAddress, this.#parts.trusted)
    const record = new RequestRecord(req.method ?? '', id, this.#parts.sink)
    const { traceparent } = req.headers
    if (this.#parts.tracer !== undefined) {
      const isTrusted = traceparent !== undefined && this.#parts.trusted.hasPeer(req.socket.remoteAddress ?? '')
      record.trace = this.#parts.tracer.begin(traceparent, req.headers['tracestate'], isTrusted)
      record.traceId = record.trace.traceId
    } else if (traceparent !== undefined) record.traceId = parseTraceParent(traceparent)?.traceId
    return record
  }

  /** The facts of a valid request. An invalid one is passed to `reject`. */
  #factsOf(
    req: ClientMessage,
    record: RequestRecord,
    reject: (code: ErrorCode, why: string) => void,
  ): RequestFacts | undefined {
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

  #decide(facts: RequestFacts, done: (admission: Admission) => void, failed: (error: unknown) => void): void {
    try {
      const admission = this.#parts.admit(facts)
      if (admission instanceof Promise) admission.then(done).catch(failed)
      else done(admission)
    } catch (error) {
      failed(error)
    }
  }

  /**
   * Only strangers' requests for applications are rejected. A rejected Logout Token would leave a
   * session open.
   */
  #hasMemoryFor({ socket }: ClientMessage, { forwarded }: RequestFacts, pass?: Pass): boolean {
    const { clientAddress } = forwarded
    const party = pass?.session ?? (pass?.caller === undefined ? undefined : `${pass.caller} ${clientAddress}`)
    return this.#parts.memory.admits(socket, clientAddress, party)
  }

  /** Carries out the admission: sends the response of the upstream, or one of the gateway. */
  #carryOut(
    req: ClientMessage,
    res: ClientReply,
    facts: RequestFacts,
    record: RequestRecord,
    admission: Admission,
    content: ReadContent,
  ): void {
    // An endpoint of the gateway serves it.
    if (admission.kind === 'sign_out' && req.asNodeMessage !== undefined) {
      return asNodeMessage(req, res, (nodeReq, nodeRes) =>
        this.#carryOut(nodeReq, nodeRes, facts, record, admission, content),
      )
    }
    const { kept, same } = content
    this.#noteMisuse(admission, facts, record)
    switch (admission.kind) {
      case 'pass':
        if (!this.#hasMemoryFor(req, facts, admission))
          return this.#refuse(req, res, record, 'ERR_OVERLOADED', overloaded)
        record.upstream = admission.upstream.name
        record.session = admission.session
        record.caller = admission.caller
        if (admission.observed !== undefined) auditObserved(this.#parts.audit, record, admission.observed)
        if (res.destroyed) return record.end(undefined, false)
        if (kept !== undefined) return this.#sendKept(req, res, facts, record, admission, kept)
        return carry(req, res, admission, facts, record, this.#parts.proxy, { content: same })
      case 'sign_in': {
        const { location, prefix, setCookies, sessionEnded, stepUp, leavesPage = false, form } = admission
        if (kept !== undefined) {
          const signIn = signInUrl(prefix, undefined, { kept, stepUp })
          return respond(req, res, record, redirect({ location: signIn, setCookies }, keepsReferer))
        }
        if (form !== undefined && !this.#hasMemoryFor(req, facts))
          return this.#refuse(req, res, record, 'ERR_OVERLOADED', overloaded)
        if (form !== undefined) return this.#receiveForm(req, res, facts, record, { ...form, leavesPage, prefix })
        const response = leavesPage
          ? withHeaders(this.#parts.pages.redirectPage(location, pageRequest(req, record)), cookies(setCookies))
          : redirect({ location, setCookies }, keepsReferer)
        return respond(req, res, record, sessionEnded ? withHeaders(response, clearCache) : response)
      }
      case 'sign_out': {
        const { location, first } = admission
        const method = isScript(facts.method, req.headers) ? 'POST' : 'GET'
        const signOut = () =>
          method === 'GET'
            ? respond(req, res, record, redirect({ location, setCookies: [] }))
            : this.#serveEndpoint(req, res, record, { method, url: location })
        // Another site must not be able to sign people out of the application alone.
        if (
          first === undefined ||
          kept !== undefined ||
          !signsOutAtOnce({ ...initiatorOf(req.headers), method, ...first.upstream })
        )
          return signOut()
        record.upstream = first.upstream.name
        record.session = first.session
        const replace = (signedOut: readonly string[]) => {
          removeContent(req, res)
          if (signedOut.length > 0) res.setHeader('Set-Cookie', signedOut)
          signOut()
        }
        return carry(req, res, first, facts, record, this.#parts.proxy, { replace, content: same })
      }
      case 'preflight':
        return respond(req, res, record, empty(204, admission.fields))
      case 'reload':
        return respond(req, res, record, this.#parts.pages.redirectPage(admission.location, pageRequest(req, record)))
      case 'unauthorized':
      case 'forbidden':
      case 'cross_site':
      case 'caller_refused':
      case 'no_route':
      case 'unavailable': {
        const [code, why, options] = refusalOf(admission)
        if ('rule' in admission) auditDenial(this.#parts.audit, record, { ...admission, code })
        else if (admission.kind === 'caller_refused') auditCaller(this.#parts.audit, record, admission)
        else if (admission.kind !== 'unauthorized') this.#logRefusal(req, record, code, why)
        const mayRepeat = admission.kind === 'unauthorized'
        const notKept = kept === undefined ? lostForm(admission, facts) : undefined
        const page = { ...this.#pageOptions(req, facts, record), ...options, mayRepeat, notKept, kept }
        return respond(req, res, record, this.#parts.pages.refusal(code, page))
      }
      default:
        return unreachable(admission)
    }
  }

  /** The options of a refusal for a request whose facts are known. */
  #pageOptions(req: ClientMessage, facts: RequestFacts, record: RequestRecord): RefusalOptions {
    const { isPage: asPage, isFrame: inFrame, method, host } = facts
    const returnTo = returnPage(facts, req.headers)
    const home = startPageOf(host, this.#config.upstreams)
    // A link to the URL of a form would load it with GET.
    const retry = method === 'POST' ? (returnTo ?? home) : undefined
    return { asPage, inFrame, returnTo, home, retry, ...pageRequest(req, record) }
  }

  /** Keeps a form during the sign-in of its person, or says that it is lost. */
  #receiveForm(
    req: ClientMessage,
    res: ClientReply,
    facts: RequestFacts,
    record: RequestRecord,
    {
      upstream,
      expire,
      stepUp,
      leavesPage,
      prefix: prefixOfPerson,
    }: FormAdmission & { readonly leavesPage: boolean; readonly prefix: string },
  ): void {
    const { pages, receiveForm } = this.#parts
    const options = this.#pageOptions(req, facts, record)
    record.upstream = upstream.name
    endRecordWith(res, record)
    receiveForm({ req, res, facts, upstream, returnTo: options.returnTo, requestId: record.id }, prefixOfPerson)
      .then((outcome) => {
        if (res.destroyed) return
        const expired = expire?.() ?? []
        if (typeof outcome === 'string') {
          const code = outcome === 'store' ? 'ERR_STORE_UNAVAILABLE' : 'ERR_UNAUTHENTICATED'
          return respond(
            req,
            res,
            record,
            pages.refusal(code, { ...options, notKept: outcome, setCookies: expired, sessionEnded: leavesPage }),
          )
        }
        const { reference: kept, setCookie, prefix } = outcome
        const again = leavesPage
        const location = signInUrl(prefix, options.returnTo ?? options.home, { kept, again, stepUp })
        const setCookies = [setCookie, ...expired]
        const response = leavesPage
          ? withHeaders(pages.redirectPage(location, pageRequest(req, record)), cookies(setCookies))
          : redirect({ location, setCookies }, keepsReferer)
        return respond(req, res, record, leavesPage ? withHeaders(response, clearCache) : response)
      })
      .catch((error: unknown) => {
        if (!res.destroyed) this.#refuse(req, res, record, codeOf(error), reason(error))
      })
  }

  /** Sends a kept request to its upstream. The page about it says why, if that is not possible. */
  #sendKept(
    req: ClientMessage,
    res: ClientReply,
    facts: RequestFacts,
    record: RequestRecord,
    pass: Pass,
    kept: string,
  ): void {
    this.#parts
      .takeKept(kept, pass, req, facts, record.cause)
      .then((taken) => {
        if (taken === undefined) {
          const location = keptUrl(this.#config.reservedPrefix, kept)
          return respond(req, res, record, redirect({ location, setCookies: [] }))
        }
        if (res.destroyed) {
          taken.close()
          return record.end(undefined, false)
        }
        res.once('close', taken.close)
        return carry(req, res, pass, facts, record, this.#parts.proxy, { content: taken.content })
      })
      .catch((error: unknown) => this.#refuse(req, res, record, codeOf(error), reason(error), { kept }))
  }

  #refuse(
    req: ClientMessage,
    res: ClientReply,
    record: RequestRecord,
    code: ErrorCode,
    why: string,
    { kept, setCookies = [] }: Pick<ReadContent, 'kept'> & Pick<RefusalOptions, 'setCookies'> = {},
  ): void {
    this.#logRefusal(req, record, code, why)
    record.code = code
    if (res.headersSent) return void res.destroy()
    const asPage = isPage(req.method ?? '', req.headers)
    const refusal = this.#parts.pages.refusal(code, {
      asPage,
      inFrame: isFrame(req.headers),
      kept,
      setCookies,
      ...pageRequest(req, record),
    })
    const isMalformed = code === 'ERR_REQUEST_MALFORMED'
    if (isMalformed) invalidlyFramed.add(req.socket)
    respond(req, res, record, refusal, isMalformed)
  }

  /** Records that a request uses the cookie of a bound session without its key. */
  #noteMisuse(admission: Admission, { skippedSession }: RequestFacts, record: RequestRecord): void {
    const misuse = misuseIn(admission)
    if (misuse !== undefined) this.#parts.misuseLog.note(misuse, skippedSession, record.cause)
  }

  #logRefusal(req: ClientMessage, record: RequestRecord, code: ErrorCode, why: string): void {
    const { id, upstream, session } = record
    const peer = req.socket.remoteAddress
    const fields = { request: id, code, reason: why, method: req.method, upstream, session, peer }
    if (code === 'ERR_INTERNAL') this.#parts.log.error('request.failed', fields)
    else this.#parts.log.warn('request.refused', fields)
  }
}

/** The metadata is public, and clients in browsers read it too. */
function metadataResponse(metadata: ResourceMetadata): Response {
  return json(200, metadata, {
    'Cache-Control': 'public, max-age=300',
    'Access-Control-Allow-Origin': '*',
  })
}

function respond(req: ClientMessage, res: ClientReply, record: RequestRecord, response: Response, close = false): void {
  endRecordWith(res, record)
  record.code = response.code
  record.bytes = writeResponse(req, res, response, close)
}

/** Makes a request one without content, because its content has gone to an upstream. */
function removeContent(req: ClientMessage, res: ClientReply): void {
  closeWhenUnread(req, res)
  for (const name of ['content-type', 'content-length', 'transfer-encoding']) delete req.headers[name]
}

/**
 * Why the content of a refused request is lost; `undefined` when it is no form, or not refused yet.
 */
function lostForm(admission: Admission, { method, isPage, isFrame }: RequestFacts): NotKept | undefined {
  if (method !== 'POST' || !(isPage || isFrame)) return undefined
  if (admission.kind === 'unavailable') return 'store'
  if (admission.kind === 'unauthorized') return isFrame ? 'frame' : 'off'
  return undefined
}

/** Serves a request with the classes of Node's server. See {@link ClientMessage.asNodeMessage}. */
function asNodeMessage(req: ClientMessage, res: ClientReply, use: UseNodeMessage): void {
  if (req.asNodeMessage === undefined) return use(req as IncomingMessage, res as ServerResponse)
  req.asNodeMessage((nodeReq, nodeRes) => {
    addSameToResponses(nodeReq, req)
    use(nodeReq, nodeRes)
  })
}

function pageRequest(req: ClientMessage, { id: requestId }: RequestRecord): PageContext {
  return { requestId, acceptLanguage: req.headers['accept-language'] }
}

/** Ends the record of a request when its response has ended, or its connection. */
function endRecordWith(res: ClientReply, record: RequestRecord): void {
  const closed = () => record.end(res.headersSent ? res.statusCode : undefined, isSentCompletely(res))
  if (res.destroyed) return closed()
  res.once('close', closed)
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

function codeOf(error: unknown): ErrorCode {
  return error instanceof GatewayError ? error.code : 'ERR_INTERNAL'
}
