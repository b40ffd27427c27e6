import { startPageOf } from '../config/hosts.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { GatewayError, reason } from '../core/errors.ts'
import type { ClientMessage } from '../http/client-messages.ts'
import { grpcTypeOf } from '../http/grpc-request.ts'
import { continueIfExpected } from '../http/request-body.ts'
import { isFrame, isPage } from '../http/request-facts.ts'
import {
  clearCache,
  cookies,
  type Incoming,
  type Received,
  redirect,
  type Redirect,
  type Response,
  withHeaders,
  writeResponse,
} from '../http/response.ts'
import { formTimeoutMs } from '../limits/endpoint-limits.ts'
import type { Log } from '../observe/log.ts'
import type { RequestRecord } from '../observe/request-record.ts'
import { type PageContext, type Pages, refusalFor, type RefusalOptions } from '../pages/pages.ts'

/** Sends a response of the gateway itself. */
export function respond(received: Received, response: Response, close = false): void {
  const { record } = received
  endRecord(received)
  record.code = response.code
  record.grpcStatus = response.headers['grpc-status']?.toString()
  record.bytes = writeResponse(received, response, close)
}

/** Ends the record of a request when its response has ended, or its connection. */
export function endRecord({ res, record }: Received): void {
  const closed = () => record.endWith(res)
  if (res.destroyed) return closed()
  res.once('close', closed)
}

/**
 * The sign-in endpoint checks by the `Referer` whether the browser is at `external_url`. With
 * "no-referrer" the browser would not send it (Fetch §4.4).
 */
const keepsReferer = { 'Referrer-Policy': 'same-origin' }

export function redirectToSignIn(to: Redirect): Response {
  return redirect(to, keepsReferer)
}

/** A page in place of one of an ended session, which the browser removes. It leads to a sign-in. */
export function pageToSignIn({ location, setCookies }: Redirect, incoming: Incoming, pages: Pages): Response {
  const page = pages.redirectPage(location, pageContext(incoming))
  return withHeaders(page, { ...cookies(setCookies), ...clearCache })
}

export function pageContext({ req, record }: Received): PageContext {
  return { requestId: record.id, acceptLanguage: req.headers['accept-language'] }
}

export function codeOf(error: unknown): ErrorCode {
  return error instanceof GatewayError ? error.code : 'ERR_INTERNAL'
}

export interface RefusalsParts {
  readonly pages: Pages
  readonly log: Log
}

/** Refuses requests, and logs why. */
export class Refusals {
  readonly #upstreams: GatewayConfig['upstreams']
  readonly #formTimeoutMs: number
  readonly #parts: RefusalsParts

  constructor({ upstreams, limits }: Pick<GatewayConfig, 'upstreams' | 'limits'>, parts: RefusalsParts) {
    this.#upstreams = upstreams
    this.#formTimeoutMs = formTimeoutMs(limits)
    this.#parts = parts
  }

  /** Refuses a request, of which perhaps nothing has been verified. */
  refuse(
    received: Received,
    code: ErrorCode,
    why: string,
    options: Pick<RefusalOptions, 'kept' | 'setCookies'> = {},
  ): void {
    const { req, res, record } = received
    this.log(req, record, code, why)
    record.code = code
    if (res.headersSent) return void res.destroy()
    const shown = { asPage: isPage(req.method ?? '', req.headers), inFrame: isFrame(req.headers) }
    const refusal = this.#parts.pages.refusal(code, {
      ...shown,
      ...options,
      ...pageContext(received),
      grpcType: grpcTypeOf(req),
    })
    // It is unknown where the next request begins (RFC 9112 §11.2).
    respond(received, refusal, code === 'ERR_REQUEST_MALFORMED')
  }

  /** The same for an error. */
  fail(received: Received, error: unknown, options: Pick<RefusalOptions, 'kept' | 'setCookies'> = {}): void {
    this.refuse(received, codeOf(error), reason(error), options)
  }

  /**
   * Limits the time for a whole form, because a client that sends it byte by byte could keep its
   * connection open without end.
   */
  limitFormTime(received: Received): void {
    const { req, res } = received
    continueIfExpected(req, res)
    const timer = setTimeout(() => {
      if (!req.complete) this.refuse(received, 'ERR_REQUEST_TIMEOUT', 'the content did not arrive in time')
    }, this.#formTimeoutMs)
    timer.unref()
    req.once('close', () => clearTimeout(timer))
  }

  /** The options of a refusal for a request whose facts are known. */
  optionsFor(incoming: Incoming): RefusalOptions {
    const { facts, req } = incoming
    const home = startPageOf(facts.host, this.#upstreams)
    return { ...refusalFor(facts, req.headers, home), ...pageContext(incoming), grpcType: grpcTypeOf(req) }
  }

  log(req: ClientMessage, record: RequestRecord, code: ErrorCode, why: string): void {
    const { id, upstream, session } = record
    const peer = req.socket.remoteAddress
    const fields = { request: id, code, reason: why, method: req.method, upstream, session, peer }
    if (code === 'ERR_INTERNAL') this.#parts.log.error('request.failed', fields)
    else this.#parts.log.warn('request.refused', fields)
  }
}
