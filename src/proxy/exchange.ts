import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Dispatcher } from 'undici'
import { clientOf } from '../core/addresses.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { GatewayError } from '../core/errors.ts'
import { lingerOnClose } from '../http/lingering-close.ts'
import { hasBody, RequestBody } from '../http/request-body.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import { writeResponse } from '../http/response.ts'
import type { RequestRecord } from '../observe/request-record.ts'
import { type AnswerHandler, shortBytes } from '../transport/response-handler.ts'
import { reportActivity } from './activity.ts'
import { ConnectionSlot } from './connection-slots.ts'
import type { CutReason, LiveStream } from './live-streams.ts'
import type { Pass, ProxyParts } from './parts.ts'
import { responseHeaders, responseTrailers } from './response-headers.ts'
import { reportWrongScheme, upstreamError } from './upstream-errors.ts'
import { loopField, upstreamHeaders } from './upstream-headers.ts'
import type { UpstreamPool } from './upstream-pool.ts'

/** What the upstream sent with a 101, and the connection from then on. */
export type OnSwitch = (socket: Duplex, rawHeaders: readonly (Buffer | string)[]) => void

export interface ExchangeInput {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly pass: Pass
  readonly facts: RequestFacts
  /** It ends with the exchange; that of an upgrade that was switched does not. */
  readonly record: RequestRecord
  readonly parts: ProxyParts
  /** The protocols the client would like to switch to, and what happens when the upstream does. */
  readonly upgrade?: { readonly protocols: string; readonly onSwitch: OnSwitch } | undefined
}

/**
 * One request on its way to the upstream and the answer on its way back: bytes as they come, each
 * side no faster than the other takes them. It is the handler of the answer itself, so that a
 * request costs no more objects than it must.
 *
 *     waiting ──► answering ──► over
 *        └────────────┴───────────► over (failed, cut, or the client is gone)
 */
export class Exchange implements AnswerHandler, LiveStream {
  readonly #input: ExchangeInput
  readonly #pool: UpstreamPool
  readonly #slot: ConnectionSlot
  readonly #body: RequestBody | undefined
  #release: (() => void) | undefined
  #isEventStream = false
  #reportedAt = -Infinity
  #state: 'waiting' | 'answering' | 'over' = 'waiting'
  #controller: Dispatcher.DispatchController | undefined
  /** Of the part we are in: until the answer begins, then for a pause in it. */
  #timer: NodeJS.Timeout | undefined
  #drains = false
  /**
   * The first part of the answer, when it is short: held until more arrives, or nothing more is to
   * come.
   */
  #first: string | undefined
  #flowing = false
  /**
   * Node takes a response that is broken off while its end is on the way for one that has gone out.
   */
  #isCut = false

  constructor(input: ExchangeInput) {
    const { req, res, pass, facts, parts } = input
    this.#input = input
    this.#pool = parts.pools.of(pass.upstream)
    this.#slot = new ConnectionSlot(pass.session ?? clientOf(facts.forwarded.clientAddress))
    this.#body = hasBody(req)
      ? new RequestBody({
          req,
          res,
          idleTimeoutMs: parts.bodyIdleTimeoutMs,
          bytesPerSecond: parts.bodyRateBytesPerSecond,
          onStall: () => this.#refuse('ERR_REQUEST_TIMEOUT'),
          onPart: () => {
            this.#timer?.refresh()
            this.#reportActivity()
          },
        })
      : undefined
    this.#release = pass.session === undefined ? undefined : parts.live.open(pass.session, this)
    res.on('error', ignore).once('close', this.#closed)
    // Behind another request on the same connection the response has no socket yet, and does not
    // hear it close.
    if (res.socket === null) req.socket.once('close', this.#closed)
  }

  get isEndless(): boolean {
    return this.#isEventStream
  }

  start(): void {
    const { req, pass, facts, record, parts, upgrade } = this.#input
    // RFC 5842 §7.2. Each time round would open another connection to itself.
    if (String(req.headers[loopField] ?? '').includes(this.#pool.loopMarker)) {
      this.#fail(new GatewayError('ERR_LOOP', 'the upstream sent the request back to this gateway'))
      return
    }
    if (this.#pool.isFullFor(this.#slot.client)) {
      this.#refuseBusy('too many requests wait for a connection')
      return
    }
    // It includes the time that the request waits for a connection, so that the response comes when
    // the setting says.
    this.#setTimer(pass.upstream.responseTimeoutMs)
    record.trace?.sent(pass.upstream.url)
    this.#pool.dispatch(
      {
        method: facts.method,
        path: this.#pool.path(facts.target.path, facts.target.query),
        headers: upstreamHeaders(req.rawHeaders, {
          fields: this.#pool.fields,
          isGatewayCookie: parts.isGatewayCookie,
          host: pass.upstream.hostHeader === 'client' ? facts.forwarded.host : pass.upstream.url.host,
          forwarded: facts.forwarded,
          requestId: record.id,
          loopMarker: this.#pool.loopMarker,
          trace: record.trace,
        }),
        identity: pass.identity,
        body: this.#body,
        upgrade: upgrade?.protocols,
      },
      this,
      this.#slot,
    )
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // It waited for a connection and nobody wants it any more: thrown here, nothing is sent and the
    // connection stays usable.
    if (this.#state === 'over') {
      this.#pool.release(this.#slot)
      throw new GatewayError('ERR_INTERNAL', 'over before it was sent')
    }
    this.#controller = controller
    const { waitedMs } = this.#slot
    if (waitedMs === 0) return
    this.#input.record.waitedMs = waitedMs
    if (waitedMs >= longWaitMs && this.#pool.reportsWait()) this.#logBusy('requests wait long for a connection')
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, _: unknown, statusMessage?: string): void {
    const { req, res, pass, record, parts } = this.#input
    if (this.#state === 'over') return
    const rawHeaders = raw(controller.rawHeaders)
    if (status < 200) {
      this.#inform(status, rawHeaders)
      return
    }
    const lines = responseHeaders(rawHeaders, {
      isGatewayCookie: parts.isGatewayCookie,
      caching: pass.caching,
      upstream: pass.upstream.url,
      status,
    })
    this.#isEventStream = isEventStream(lines)
    if (this.#isEventStream && !this.#pool.keepAsStream(this.#slot)) {
      this.#refuseBusy(tooManyStreams)
      return
    }
    record.trace?.upstreamAnswered(status)
    // nginx and Go answer 400 to HTTP on a port with TLS.
    if (status === 400) this.#reportWrongScheme('status 400')
    else this.#pool.hasAnswered = true
    for (const line of pass.expire?.() ?? []) lines.push('Set-Cookie', line)
    // An answer that comes before the request is complete is passed on at once; the connection is
    // not used again.
    if (this.#body && !req.complete) lines.push('Connection', 'close')

    // Bytes outside ASCII have no meaning in a reason phrase, and nobody shows it: RFC 9112 §4.
    if (statusMessage !== undefined && /^[\t\x20-\x7e]+$/.test(statusMessage))
      res.writeHead(status, statusMessage, lines)
    else res.writeHead(status, lines)
    this.#state = 'answering'
    // Nobody's event stream ends with no session, but it has to end with the gateway.
    if (this.#isEventStream) {
      this.#release ??= parts.live.open(undefined, this)
      record.lastsAs('event_stream')
    }
    // Most answers have arrived as a whole by then.
    process.nextTick(goOn, this)
  }

  onResponseData(controller: Dispatcher.DispatchController, part: Buffer): void {
    if (part.length <= shortBytes) this.onResponseText(controller, part.toString('latin1'))
    else this.onResponseLoan(controller, part, ignore)
  }

  onResponseText(controller: Dispatcher.DispatchController, text: string): void {
    if (this.#state !== 'answering') return
    this.#input.record.bytes += text.length
    if (this.#flowing || this.#first !== undefined) this.#carry(controller, text)
    else this.#first = text
  }

  onResponseLoan(controller: Dispatcher.DispatchController, part: Buffer, giveBack: () => void): void {
    if (this.#state !== 'answering') {
      giveBack()
      return
    }
    this.#input.record.bytes += part.length
    // Of what could not be written nobody knows who still has it.
    this.#carry(controller, part, (error) => {
      if (!error) giveBack()
    })
  }

  #carry(
    controller: Dispatcher.DispatchController,
    part: Buffer | string,
    written?: (error?: Error | null) => void,
  ): void {
    const { res } = this.#input
    this.#writeFirst()
    this.#flowing = true
    this.#timer?.refresh()
    // What a page that is left open gets is no sign that somebody is there.
    if (!this.#isEventStream) this.#reportActivity()
    if (res.write(part, 'latin1', written)) return
    controller.pause()
    if (this.#drains) return
    this.#drains = true
    res.on('drain', () => {
      this.#timer?.refresh()
      controller.resume()
    })
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    this.#pool.release(this.#slot)
    if (this.#state !== 'answering') return
    const { req, res, record } = this.#input
    record.trace?.upstreamEnded()
    this.#state = 'over'
    this.#controller = undefined
    if (res.chunkedEncoding) {
      const trailers = responseTrailers(raw(controller.rawTrailers), this.#pool.reserved)
      if (trailers.length > 0) res.addTrailers(trailers)
    }
    if (this.#body && !req.complete) lingerOnClose(req)
    // As text it goes out in one write together with the head; a character is a byte.
    if (this.#first !== undefined) res.end(this.#first, 'latin1')
    else res.end()
  }

  onResponseError(_: unknown, error: Error): void {
    this.#pool.release(this.#slot)
    this.#fail(upstreamError(error))
  }

  onRequestUpgrade(controller: Dispatcher.DispatchController, _: number, __: unknown, socket: Duplex): void {
    const { upgrade, record } = this.#input
    if (this.#state === 'over' || upgrade === undefined) {
      socket.destroy()
      this.#pool.release(this.#slot)
      return
    }
    if (!this.#pool.keepAsStream(this.#slot)) {
      socket.destroy()
      this.#controller = undefined
      this.#refuseBusy(tooManyStreams)
      return
    }
    socket.once('close', () => this.#pool.release(this.#slot))
    this.#state = 'over'
    record.trace?.upstreamAnswered(101)
    this.#forget()
    upgrade.onSwitch(socket, raw(controller.rawHeaders))
  }

  /**
   * The answer is not complete yet. What arrived together goes out together; a head without
   * anything yet goes out by itself.
   */
  goOn(): void {
    if (this.#state !== 'answering') return
    const { res, pass, facts } = this.#input
    this.#setTimer(this.#isEventStream ? 0 : pass.upstream.idleTimeoutMs)
    if (this.#first !== undefined) this.#writeFirst()
    else if (!this.#flowing && facts.method !== 'HEAD') res.flushHeaders()
    this.#flowing = true
  }

  #reportActivity(): void {
    const { pass, parts } = this.#input
    this.#reportedAt = reportActivity(pass.session, this.#reportedAt, parts)
  }

  #writeFirst(): void {
    const first = this.#first
    this.#first = undefined
    this.#flowing = true
    if (first !== undefined) this.#input.res.write(first, 'latin1')
  }

  /** Nothing for as long as was allowed. */
  quiet(): void {
    if (this.#state === 'waiting' && this.#body?.awaitsClient) {
      // The upstream waits for the client, and the client's patience is counted by the body.
      this.#timer?.refresh()
      return
    }
    // All of the answer has arrived here, but the client does not take it.
    if (this.#state === 'over') this.cut()
    else if (this.#state !== 'waiting')
      this.#fail(new GatewayError('ERR_UPSTREAM_TIMEOUT', 'a pause longer than idle_timeout'))
    else if (this.#hasWaitedMost()) this.#refuseBusy('no connection became free in most of response_timeout')
    else this.#fail(new GatewayError('ERR_UPSTREAM_TIMEOUT', 'no answer within response_timeout'))
  }

  /** The gateway, and not the upstream, used up most of the time. */
  #hasWaitedMost(): boolean {
    const { state, waitedMs } = this.#slot
    return state === 'waiting' || waitedMs * 2 > this.#input.pass.upstream.responseTimeoutMs
  }

  /**
   * Breaks both sides off. The client must see that something is missing; one that has seen nothing
   * yet, because its session ended before the answer began, is told so.
   */
  cut(why?: CutReason): void {
    const { req, res, record } = this.#input
    if (this.#state === 'waiting') {
      this.#refuse('ERR_UNAUTHENTICATED')
      return
    }
    this.#state = 'over'
    this.#isCut = true
    record.code ??= why
    // To HTTP/1.0 the end of the connection may be the end of the content: only a reset tells a
    // broken answer from a whole one.
    if (res.headersSent && req.httpVersionMinor === 0 && !('encrypted' in req.socket)) req.socket.resetAndDestroy()
    else destroy(res)
    this.#abandon()
  }

  #inform(status: number, rawHeaders: readonly (Buffer | string)[]): void {
    const { req, res } = this.#input
    // A 101 is here only when it does not say to what it switches.
    if (status === 101) throw new GatewayError('ERR_UPSTREAM_ANSWER', 'a 101 without Upgrade')
    // HTTP/1.0 knows no 1xx: RFC 9110 §15.2.
    if (status !== 103 || req.httpVersionMinor === 0) return
    const link: string[] = []
    for (let at = 0; at + 1 < rawHeaders.length; at += 2)
      if (String(rawHeaders[at]).toLowerCase() === 'link') link.push(String(rawHeaders[at + 1]))
    try {
      if (link.length > 0) res.writeEarlyHints({ link })
    } catch {
      // Node checks how the hint is written. It is only a hint.
    }
  }

  #fail(error: GatewayError): void {
    const { pass, facts, record, parts } = this.#input
    if (this.#state === 'over') return
    record.code = error.code
    record.trace?.upstreamEnded(error.code)
    parts.log.warn('upstream.failed', {
      request: record.id,
      upstream: pass.upstream.name,
      url: pass.upstream.url.origin,
      method: facts.method,
      code: error.code,
      reason: error.message,
      ...(error.code === 'ERR_UPSTREAM_UNREACHABLE'
        ? {
            hint: `see whether it runs, and whether upstreams.${pass.upstream.name}.url is its address as seen from here`,
          }
        : {}),
    })
    if (this.#state === 'waiting') {
      if (error.code === 'ERR_UPSTREAM_UNREACHABLE' || error.code === 'ERR_UPSTREAM_ANSWER')
        this.#reportWrongScheme(error.message)
      this.#refuse(error.code)
    } else this.cut()
  }

  /** An upstream that has answered before has the right scheme, and is not asked. */
  #reportWrongScheme(why: string): void {
    const { pass, parts } = this.#input
    if (!this.#pool.hasAnswered) reportWrongScheme(why, pass.upstream, parts.log)
  }

  #refuseBusy(reason: string): void {
    // Before the log, which says how long it waited.
    this.#pool.release(this.#slot)
    this.#input.record.waitedMs = this.#slot.waitedMs
    this.#logBusy(reason)
    this.#refuse('ERR_UPSTREAM_BUSY')
  }

  #logBusy(reason: string): void {
    const { pass, record, parts } = this.#input
    const setting = `upstreams.${pass.upstream.name}.${reason === tooManyStreams ? 'max_streams' : 'max_connections'}`
    parts.log.warn('upstream.busy', {
      request: record.id,
      upstream: pass.upstream.name,
      reason,
      waited_ms: Math.round(this.#slot.waitedMs),
      ...this.#pool.load,
      hint: `see which requests take long; raise ${setting} if the application can take more at a time`,
    })
  }

  #refuse(code: ErrorCode): void {
    const { req, res, facts, record, parts } = this.#input
    if (this.#state !== 'waiting') {
      this.cut()
      return
    }
    this.#state = 'over'
    const refusal = parts.pages.refusal(code, {
      asPage: facts.isPage,
      inFrame: facts.isFrame,
      requestId: record.id,
      acceptLanguage: req.headers['accept-language'],
      returnTo: facts.target.path + facts.target.query,
    })
    record.code = code
    record.bytes = writeResponse(req, res, refusal)
    this.#abandon()
  }

  /** The response is finished, or the client is gone. */
  readonly #closed = (): void => {
    const { req, res, record } = this.#input
    req.socket.off('close', this.#closed)
    record.end(res.headersSent ? res.statusCode : undefined, !this.#isCut && isWhole(res))
    this.#state = 'over'
    this.#forget()
    this.#abandon()
  }

  #abandon(): void {
    this.#body?.destroy()
    if (this.#controller && !this.#controller.aborted) this.#controller.abort(abandoned)
    // One that waits for a connection needs none any more.
    if (this.#slot.state === 'waiting') this.#pool.release(this.#slot)
  }

  #forget(): void {
    clearTimeout(this.#timer)
    this.#release?.()
  }

  #setTimer(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = ms > 0 ? setTimeout(quiet, ms, this) : undefined
  }
}

/** A request that waited so long for a connection, in ms, is worth a line in the log. */
const longWaitMs = 1_000
const tooManyStreams = 'too many event streams, tunnels and long exchanges are open'

const abandoned = new GatewayError('ERR_INTERNAL', 'the exchange is over')

function ignore(): void {}

/**
 * From Node.js 24 on a response that is destroyed behind another on its connection leaves the
 * connection as it is, for ever.
 */
function destroy(res: ServerResponse): void {
  if (res.socket === null) res.once('socket', (socket: Duplex) => socket.destroy())
  res.destroy()
}

function quiet(exchange: Exchange): void {
  exchange.quiet()
}

function goOn(exchange: Exchange): void {
  exchange.goOn()
}

// undici's type also allows what its HTTP/2 client gives; over HTTP/1.1 it is a list of name and
// value in turn.
function raw(headers: Dispatcher.DispatchController['rawHeaders']): readonly (Buffer | string)[] {
  return Array.isArray(headers) ? headers : []
}

/**
 * Whether all of a response has gone out. It has no socket any more then; with one, it was closed
 * before that.
 */
export function isWhole(res: ServerResponse): boolean {
  return res.writableFinished && res.socket === null
}

function isEventStream(lines: readonly string[]): boolean {
  for (let at = 0; at + 1 < lines.length; at += 2)
    if (lines[at]?.length === 12 && lines[at]?.toLowerCase() === 'content-type')
      return /^text\/event-stream\b/i.test(lines[at + 1] ?? '')
  return false
}
