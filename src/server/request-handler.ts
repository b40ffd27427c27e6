import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { GatewayConfig } from '../config/model.ts'
import { lineText } from '../config/sources.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { GatewayError, reason, unreachable } from '../core/errors.ts'
import type { Admission, Denial } from '../gate/admission.ts'
import type { Admit } from '../gate/admit.ts'
import { refusalOf } from '../gate/refused.ts'
import { startPageOf } from '../gate/upstreams-of-host.ts'
import type { TrustedProxies } from '../http/forwarded.ts'
import { continueIfExpected, hasBody } from '../http/request-body.ts'
import { embeddingPage, isFrame, isPage, isScript, type RequestFacts } from '../http/request-facts.ts'
import { requestId } from '../http/request-id.ts'
import { wholeServer } from '../http/request-target.ts'
import { clearCache, cookies, empty, redirect, type Response, withHeaders, writeResponse } from '../http/response.ts'
import { isReserved, soundFacts } from '../http/sound-request.ts'
import { formTimeoutMs } from '../limits/connection-limits.ts'
import type { MemoryBudget } from '../limits/memory-budget.ts'
import { withoutParameters } from '../observe/access-log.ts'
import type { Audit } from '../observe/audit.ts'
import type { Log } from '../observe/log.ts'
import { RequestRecord, type RequestSink } from '../observe/request-record.ts'
import { parseTraceParent } from '../observe/trace-context.ts'
import type { Tracer } from '../observe/tracing.ts'
import type { Pages, Visit } from '../pages/pages.ts'
import { isSentCompletely } from '../proxy/client-response.ts'
import { carry } from '../proxy/http.ts'
import type { ProxyParts } from '../proxy/parts.ts'
import { carryUpgrade, listedProtocols, refuseUpgrade } from '../proxy/upgrade.ts'
import type { ListenerHandlers } from './listener.ts'

export interface ServeParts {
  readonly admit: Admit
  readonly trusted: TrustedProxies
  readonly proxy: ProxyParts
  readonly log: Log
  readonly audit: Audit
  readonly pages: Pages
  /** Is told of every request when it is over. */
  readonly sink: RequestSink
  readonly memory: Pick<MemoryBudget, 'isExceeded'>
  /** Absent: the gateway takes part in no trace, and passes on what it gets. */
  readonly tracer: Tracer | undefined
  /** The gateway's own URLs. */
  readonly own: (req: IncomingMessage, res: ServerResponse, record: RequestRecord) => void
}

/**
 * Connections with a request that could not be framed: nobody knows where the next one begins (RFC
 * 9112 §11.2).
 */
const unreadable = new WeakSet<Socket>()

/**
 * The sign-in sees by the `Referer` whether the browser is at `external_url`; "no-referrer" would
 * remove it (Fetch §4.4).
 */
const keepsReferer = { 'Referrer-Policy': 'same-origin' }

const overloaded = 'clients have left too much of their responses unread'

/** What becomes of each request: ours, the upstream's, or refused. */
export function createHandlers(
  config: Pick<GatewayConfig, 'reservedPrefix' | 'limits' | 'externalUrl' | 'upstreams'>,
  parts: ServeParts,
): ListenerHandlers {
  const { log, pages } = parts

  function request(req: IncomingMessage, res: ServerResponse): void {
    if (unreadable.has(req.socket)) return void res.destroy()
    const record = begin(req)
    const facts = factsOf(req, record, (code, why) => refuse(req, res, record, code, why))
    if (facts === undefined) return
    if (facts.target === wholeServer) return respond(req, res, record, empty(200))
    if (isReserved(facts.target, config.reservedPrefix)) {
      return answerItself(req, res, record, { method: facts.method, url: facts.target.path + facts.target.query })
    }
    // The gateway's own URLs are served on: a Logout Token that is refused leaves somebody signed
    // in.
    if (parts.memory.isExceeded) return refuse(req, res, record, 'ERR_OVERLOADED', overloaded)
    decide(
      facts,
      (admission) => answer(req, res, facts, record, admission),
      (error) => refuse(req, res, record, codeOf(error), reason(error)),
    )
  }

  function expectation(req: IncomingMessage, res: ServerResponse): void {
    if (unreadable.has(req.socket)) return void res.destroy()
    const record = begin(req)
    const facts = factsOf(req, record, (code, why) => refuse(req, res, record, code, why))
    // RFC 9110 §10.1.1.
    if (facts !== undefined) refuse(req, res, record, 'ERR_EXPECTATION', 'Expect is supported with 100-continue only')
  }

  /** Has the gateway's own URLs answer, under the method and URL that are given. */
  function answerItself(
    req: IncomingMessage,
    res: ServerResponse,
    record: RequestRecord,
    { method, url }: { readonly method: string; readonly url: string },
  ): void {
    req.method = method
    req.url = url
    endWith(res, record)
    if (hasBody(req)) expectForm(req, res, record)
    parts.own(req, res, record)
  }

  /**
   * The bound is on the whole of it: whoever sends a form byte by byte would keep a connection for
   * good.
   */
  function expectForm(req: IncomingMessage, res: ServerResponse, record: RequestRecord): void {
    continueIfExpected(req, res)
    const timer = setTimeout(() => {
      if (!req.complete) refuse(req, res, record, 'ERR_REQUEST_TIMEOUT', 'the content did not arrive in time')
    }, formTimeoutMs(config.limits))
    timer.unref()
    req.once('close', () => clearTimeout(timer))
  }

  function upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    const record = begin(req)
    const stop = (code: ErrorCode, why: string) => {
      note(req, record, code, why)
      refuseUpgrade(socket, record, code, {})
    }
    const facts = factsOf(req, record, stop)
    if (facts === undefined) return
    if (facts.target === wholeServer || isReserved(facts.target, config.reservedPrefix))
      return stop('ERR_NO_ROUTE', 'nothing of ours can be upgraded')
    if (parts.memory.isExceeded) return stop('ERR_OVERLOADED', overloaded)
    decide(
      facts,
      (admission) => {
        if (admission.kind === 'pass') {
          record.upstream = admission.upstream.name
          record.session = admission.session
          return carryUpgrade(req, socket, head, admission, facts, record, parts.proxy)
        }
        const [code, why, options] = refusalOf(admission)
        if ('rule' in admission) denied(record, code, admission)
        else note(req, record, code, why)
        return refuseUpgrade(socket, record, code, options)
      },
      (error) => stop(codeOf(error), reason(error)),
    )
  }

  function begin(req: IncomingMessage): RequestRecord {
    const id = requestId(req.headers, req.socket.remoteAddress, parts.trusted)
    const record = new RequestRecord(req.method ?? '', id, parts.sink)
    const { traceparent } = req.headers
    if (parts.tracer !== undefined) {
      const isTrusted = traceparent !== undefined && parts.trusted.hasPeer(req.socket.remoteAddress ?? '')
      record.trace = parts.tracer.begin(traceparent, req.headers['tracestate'], isTrusted)
      record.traceId = record.trace.traceId
    } else if (traceparent !== undefined) record.traceId = parseTraceParent(traceparent)?.traceId
    return record
  }

  /** The facts of a sound request; any other is refused. */
  function factsOf(
    req: IncomingMessage,
    record: RequestRecord,
    stop: (code: ErrorCode, why: string) => void,
  ): RequestFacts | undefined {
    // What can be said of it whatever its facts are.
    record.client = req.socket.remoteAddress ?? 'unknown'
    record.host = (req.headers.host ?? '').replace(/:\d*$/, '')
    record.path = pathOf(req.url ?? '')
    try {
      const facts = soundFacts(req, config, parts.trusted)
      record.client = facts.forwarded.clientAddress
      record.host = facts.host
      record.path = facts.target.path
      if (record.trace !== undefined) record.trace.asked = facts.forwarded
      return facts
    } catch (error) {
      return void stop(codeOf(error), reason(error))
    }
  }

  function decide(facts: RequestFacts, done: (admission: Admission) => void, failed: (error: unknown) => void): void {
    try {
      const admission = parts.admit(facts)
      if (admission instanceof Promise) admission.then(done).catch(failed)
      else done(admission)
    } catch (error) {
      failed(error)
    }
  }

  function answer(
    req: IncomingMessage,
    res: ServerResponse,
    facts: RequestFacts,
    record: RequestRecord,
    admission: Admission,
  ): void {
    switch (admission.kind) {
      case 'pass':
        record.upstream = admission.upstream.name
        record.session = admission.session
        return res.destroyed ? record.end(undefined, false) : carry(req, res, admission, facts, record, parts.proxy)
      case 'sign_in': {
        const { location, setCookies, leavesPage = false } = admission
        const sent = leavesPage
          ? withHeaders(pages.goOn(location, visit(req, record)), cookies(setCookies))
          : redirect({ location, setCookies }, keepsReferer)
        return respond(req, res, record, setCookies.length > 0 ? withHeaders(sent, clearCache) : sent)
      }
      case 'sign_out':
        if (!isScript(facts.method, req.headers)) {
          return respond(req, res, record, redirect({ location: admission.location, setCookies: [] }))
        }
        return answerItself(req, res, record, { method: 'POST', url: admission.location })
      case 'ask_again':
        return respond(req, res, record, pages.goOn(admission.location, visit(req, record)))
      case 'unauthorized':
      case 'forbidden':
      case 'cross_site':
      case 'no_route':
      case 'unavailable': {
        const [code, why, options] = refusalOf(admission)
        if ('rule' in admission) denied(record, code, admission)
        else if (code !== 'ERR_UNAUTHENTICATED') note(req, record, code, why)
        const { isFrame: inFrame, isPage: asPage, target, forwarded } = facts
        const returnTo = inFrame ? embeddingPage(req.headers, forwarded.host) : target.path + target.query
        const home = startPageOf(facts.host, config.upstreams)
        const shown = { asPage, inFrame, returnTo, home, ...visit(req, record), ...options }
        return respond(req, res, record, pages.refusal(code, shown))
      }
      default:
        return unreachable(admission)
    }
  }

  function refuse(
    req: IncomingMessage,
    res: ServerResponse,
    record: RequestRecord,
    code: ErrorCode,
    why: string,
  ): void {
    note(req, record, code, why)
    record.code = code
    if (res.headersSent) return void res.destroy()
    const asPage = isPage(req.method ?? '', req.headers)
    const refusal = pages.refusal(code, { asPage, inFrame: isFrame(req.headers), ...visit(req, record) })
    const isUnreadable = code === 'ERR_REQUEST_MALFORMED'
    if (isUnreadable) unreadable.add(req.socket)
    respond(req, res, record, refusal, isUnreadable)
  }

  /**
   * Somebody who is known may not do this: that is for auditors. The audit event takes the place of
   * `request.refused`.
   */
  function denied(record: RequestRecord, code: ErrorCode, denial: Denial & { readonly why: string }): void {
    const { upstream, rule, session, why } = denial
    const { iss, sub, sid } = session.record
    record.upstream = upstream.name
    record.session = session.key
    parts.audit.record(
      'access.denied',
      {
        ...{ session: session.key, iss, sub, sid, code, reason: why },
        ...{ upstream: upstream.name, rule: rule.place === undefined ? 'default' : lineText(rule.place) },
        ...{ method: record.method, path: withoutParameters(record.path) },
      },
      record.cause,
    )
  }

  /** Writes to the log why a request is refused. */
  function note(req: IncomingMessage, record: RequestRecord, code: ErrorCode, why: string): void {
    const { id, upstream, session } = record
    const peer = req.socket.remoteAddress
    const fields = { request: id, code, reason: why, method: req.method, upstream, session, peer }
    if (code === 'ERR_INTERNAL') log.error('request.failed', fields)
    else log.warn('request.refused', fields)
  }

  const upgradeProtocols = listedProtocols(config.upstreams)
  return { request, expectation, upgrade, upgradeProtocols, endEndless: () => parts.proxy.live.closeEndless() }
}

function respond(
  req: IncomingMessage,
  res: ServerResponse,
  record: RequestRecord,
  response: Response,
  close = false,
): void {
  endWith(res, record)
  record.code = response.code
  record.bytes = writeResponse(req, res, response, close)
}

function visit(req: IncomingMessage, { id: requestId }: RequestRecord): Visit {
  return { requestId, acceptLanguage: req.headers['accept-language'] }
}

/** Ends the record of a request with its response, or with the connection. */
function endWith(res: ServerResponse, record: RequestRecord): void {
  const closed = () => {
    record.end(res.headersSent ? res.statusCode : undefined, isSentCompletely(res))
  }
  if (res.destroyed) return closed()
  res.once('close', closed)
}

/** Of a request target that may be malformed. */
function pathOf(target: string): string {
  return target.startsWith('/') ? target.replace(/[?#].*$/s, '') : ''
}

function codeOf(error: unknown): ErrorCode {
  return error instanceof GatewayError ? error.code : 'ERR_INTERNAL'
}
