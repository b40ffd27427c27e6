import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { GatewayConfig } from '../config/model.ts'
import { GatewayError, reason, unreachable, type ErrorCode } from '../core/errors.ts'
import { randomToken } from '../core/random.ts'
import type { Admission } from '../gate/admission.ts'
import type { Admit } from '../gate/admit.ts'
import type { TrustedProxies } from '../gate/forwarded.ts'
import { isPage, requestFacts, type RequestFacts } from '../gate/request-facts.ts'
import type { CanonicalTarget } from '../gate/request-target.ts'
import type { Log } from '../observe/log.ts'
import { ownAnswerHeaders, type Answer } from '../pages/page.ts'
import { refusal } from '../pages/refusal.ts'
import { goOnPage } from '../pages/sign-pages.ts'
import { carry } from '../proxy/http.ts'
import { closeWhenUnread, lingerOnClose } from '../proxy/lingering-close.ts'
import type { Pass, ProxyParts } from '../proxy/parts.ts'
import { continueIfExpected, hasBody } from '../proxy/request-body.ts'
import { carryUpgrade, refuseUpgrade } from '../proxy/upgrade.ts'
import { framingFault } from './framing.ts'
import type { ListenerHandlers } from './listener.ts'

/** How long a form for one of the gateway's own URLs may take to arrive, at most. */
const maxFormMs = 10_000

export interface ServeParts {
  readonly admit: Admit
  readonly trusted: TrustedProxies
  readonly proxy: ProxyParts
  readonly log: Log
  /** The gateway's own URLs. */
  readonly own: (req: IncomingMessage, res: ServerResponse) => void
}

/** What becomes of each request: ours, the upstream's, or refused. */
export function createHandlers(
  config: Pick<GatewayConfig, 'reservedPrefix' | 'limits'>,
  parts: ServeParts,
): ListenerHandlers {
  const { log } = parts
  /** Connections with a request that could not be framed: nobody knows where the next one begins (RFC 9112 §11.2). */
  const unreadable = new WeakSet<Socket>()

  function request(req: IncomingMessage, res: ServerResponse): void {
    if (unreadable.has(req.socket)) return void res.destroy()
    const facts = soundFacts(req, (code, why) => refuse(req, res, code, why))
    if (facts === undefined) return
    if (isReserved(facts.target, config.reservedPrefix)) {
      req.url = facts.target.path + facts.target.query
      if (hasBody(req)) expectForm(req, res)
      parts.own(req, res)
      return
    }
    decide(
      facts,
      (admission) => answer(req, res, facts, admission),
      (error) => refuse(req, res, codeOf(error), reason(error)),
    )
  }

  /** The bound is on the whole of it: whoever sends a form byte by byte would keep a connection for good. */
  function expectForm(req: IncomingMessage, res: ServerResponse): void {
    continueIfExpected(req, res)
    const timer = setTimeout(
      () => {
        if (!req.complete) refuse(req, res, 'ERR_REQUEST_TIMEOUT', 'the content did not arrive in time')
      },
      Math.min(config.limits.bodyIdleTimeoutMs, maxFormMs),
    )
    timer.unref()
    req.once('close', () => clearTimeout(timer))
  }

  function upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    const stop = (code: ErrorCode, why: string, options = {}) => {
      const requestId = note(req, code, why)
      refuseUpgrade(socket, refusal(code, { asPage: false, requestId, ...options }))
    }
    const facts = soundFacts(req, stop)
    if (facts === undefined) return
    if (isReserved(facts.target, config.reservedPrefix)) return stop('ERR_NO_ROUTE', 'nothing of ours can be upgraded')
    decide(
      facts,
      (admission) => {
        if (admission.kind === 'pass') return carryUpgrade(req, socket, head, admission, facts, parts.proxy)
        const [code, why, options] = refusalOf(admission)
        return stop(code, why, options)
      },
      (error) => stop(codeOf(error), reason(error)),
    )
  }

  /** The facts of a request that can be read in one way only; otherwise it is refused. */
  function soundFacts(req: IncomingMessage, stop: (code: ErrorCode, why: string) => void): RequestFacts | undefined {
    const fault = framingFault(req)
    if (fault !== undefined) return void stop('ERR_REQUEST_MALFORMED', fault)
    // Neither is for a gateway to pass on: RFC 9110 §9.3.6, §9.3.8.
    if (req.method === 'TRACE' || req.method === 'CONNECT')
      return void stop('ERR_METHOD_UNKNOWN', `the method ${req.method}`)
    try {
      return requestFacts(req, parts.trusted)
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

  function answer(req: IncomingMessage, res: ServerResponse, facts: RequestFacts, admission: Admission): void {
    switch (admission.kind) {
      case 'pass':
        return res.destroyed ? undefined : carry(req, res, admission, facts, parts.proxy)
      case 'sign_in':
      case 'sign_out':
        return redirect(req, res, admission)
      case 'ask_again':
        return respond(req, res, goOnPage(admission.location))
      case 'unauthorized':
      case 'forbidden':
      case 'cross_site':
      case 'no_route':
      case 'unavailable': {
        const [code, why, options] = refusalOf(admission)
        const requestId = code === 'ERR_UNAUTHENTICATED' ? undefined : note(req, code, why)
        return respond(req, res, refusal(code, { asPage: facts.isPage, requestId, ...options }))
      }
      default:
        return unreachable(admission)
    }
  }

  function refuse(req: IncomingMessage, res: ServerResponse, code: ErrorCode, why: string): void {
    const requestId = note(req, code, why)
    if (res.headersSent) return void res.destroy()
    const answer = refusal(code, { asPage: isPage(req.method ?? '', req.headers), requestId })
    const isUnreadable = code === 'ERR_REQUEST_MALFORMED'
    if (isUnreadable) unreadable.add(req.socket)
    respond(req, res, answer, isUnreadable)
  }

  /** Writes to the log why a request is refused; answers the id by which a visitor's report leads there. */
  function note(req: IncomingMessage, code: ErrorCode, why: string): string {
    const request = randomToken(9)
    const fields = { request, code, reason: why, method: req.method, peer: req.socket.remoteAddress }
    if (code === 'ERR_INTERNAL') log.error('request.failed', fields)
    else log.warn('request.refused', fields)
    return request
  }

  return { request, upgrade, endEndless: () => parts.proxy.live.closeEndless() }
}

/** Below the prefix nothing reaches an upstream, in whatever way the path may be read, and in whatever case. */
export function isReserved(target: CanonicalTarget, reservedPrefix: string): boolean {
  const reserved = reservedPrefix.split('/').filter((segment) => segment !== '')
  const isBelow = (segments: readonly string[]) =>
    reserved.every((segment, index) => segments[index]?.toLowerCase() === segment.toLowerCase())
  return isBelow(target.segments) || (target.otherReadings?.some(isBelow) ?? false)
}

function refusalOf(
  admission: Exclude<Admission, Pass>,
): readonly [
  code: ErrorCode,
  why: string,
  options: { readonly signIn?: string; readonly setCookies?: readonly string[] },
] {
  switch (admission.kind) {
    // A WebSocket cannot follow a redirect to a page.
    case 'sign_in':
    case 'unauthorized':
      return [
        'ERR_UNAUTHENTICATED',
        'nobody is signed in',
        { signIn: admission.location, setCookies: admission.setCookies },
      ]
    case 'forbidden':
      return ['ERR_FORBIDDEN', admission.why, { setCookies: admission.setCookies }]
    case 'cross_site':
      return ['ERR_CROSS_SITE', admission.why, {}]
    // Neither is for a WebSocket: it is no page load, and no logout link.
    case 'ask_again':
    case 'no_route':
    case 'sign_out':
      return ['ERR_NO_ROUTE', 'no upstream serves this host and path', {}]
    case 'unavailable':
      return [admission.code, admission.why, {}]
    default:
      return unreachable(admission)
  }
}

function redirect(
  req: IncomingMessage,
  res: ServerResponse,
  to: { readonly location: string; readonly setCookies?: readonly string[] },
): void {
  const cookies = to.setCookies !== undefined && to.setCookies.length > 0 ? { 'Set-Cookie': [...to.setCookies] } : {}
  respond(req, res, { status: 303, headers: { ...ownAnswerHeaders, ...cookies, Location: to.location }, body: '' })
}

function respond(req: IncomingMessage, res: ServerResponse, { status, headers, body }: Answer, close = false): void {
  // What was not admitted is not read to its end either.
  closeWhenUnread(req, res)
  if (close) {
    res.setHeader('Connection', 'close')
    lingerOnClose(req)
  }
  res.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) })
  res.end(req.method === 'HEAD' ? undefined : body)
}

function codeOf(error: unknown): ErrorCode {
  return error instanceof GatewayError ? error.code : 'ERR_INTERNAL'
}
