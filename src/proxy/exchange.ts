import { clientOf } from '../core/addresses.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { GatewayError } from '../core/errors.ts'
import { grpcTimeoutMs } from '../core/grpc.ts'
import { hasEnded } from '../gate/admission.ts'
import { corsFields } from '../gate/admit.ts'
import { isGrpcCall, isGrpcWebCall } from '../http/grpc-request.ts'
import { hasBody, RequestBody, type StoredContent } from '../http/request-body.ts'
import { writeResponse } from '../http/response.ts'
import type { ExchangeControl, RawFields, SwitchedConnection, TargetObserver } from '../transport/transport.ts'
import type { GiveBack } from '../wire/read-buffers.ts'
import { atEndOfTurn, ReusedTimer } from '../wire/timing.ts'
import { ClientResponse, isEventStream, responseHeaders, responseTrailers } from './client-response.ts'
import type { ConnectionSlot, SlotHolder } from './connection-slots.ts'
import type { ExchangeInput } from './exchange-input.ts'
import { type BusyReason, logBusy, logFailed, logRejectedHeaders, logRetried } from './exchange-log.ts'
import { addGrpcStatus, grpcStatusIn, refusalOf, responseSteps, upstreamRequest } from './exchange-messages.ts'
import type { ReplaceableResponse } from './held-response.ts'
import { type CutReason, type LiveStream, reportActivity } from './live-streams.ts'
import { loopField } from './passed-fields.ts'
import type { Upstream, UpstreamAddresses } from './upstream.ts'

/**
 * One request on its way to the upstream and its response on its way back. Neither side is read
 * faster than the other side accepts data. It is its own response handler, slot holder and live
 * stream, because all of them change its state. What its messages consist of is elsewhere.
 *
 *     waiting ──► responding ──► over
 *        └────────────┴───────────► over (failed, cut, or the client is gone)
 */
export class Exchange implements ReplaceableResponse, TargetObserver, SlotHolder, LiveStream {
  readonly #input: ExchangeInput
  readonly #upstream: Upstream
  readonly #addresses: UpstreamAddresses
  readonly #body: RequestBody | StoredContent | undefined
  readonly #response: ClientResponse
  #slot: ConnectionSlot | undefined
  #stopListing: (() => void) | undefined
  /** It is a call of gRPC or gRPC-Web over HTTP/2 on both sides. */
  readonly #isGrpc: boolean
  /** How long the client of a call waits, in ms. */
  readonly #deadlineMs: number
  #isEventStream = false
  #reportedAt = -Infinity
  #state: 'waiting' | 'responding' | 'over' = 'waiting'
  #control: ExchangeControl | undefined
  /** Limits the time until the response begins, and then each pause in it. */
  #timer: ReusedTimer | undefined
  #listensForDrain = false
  /** The response was destroyed. Node.js may report such a response as sent. */
  #isCut = false

  constructor(input: ExchangeInput) {
    const { req, res, pass, parts } = input
    this.#input = input
    this.#upstream = parts.upstreams.of(pass.upstream)
    this.#addresses = this.#upstream.addressesAt(input.facts.host)
    this.#response = new ClientResponse(req, res)
    this.#isGrpc = pass.upstream.protocol !== 'http1' && req.httpVersion === '2.0' && isGrpcCall(req.headers)
    this.#deadlineMs = this.#isGrpc ? grpcTimeoutMs(req.headers['grpc-timeout']) : Infinity
    this.#body =
      input.content?.body ??
      (hasBody(req)
        ? new RequestBody({
            req,
            res,
            // A stream of messages may pause, and idle_timeout limits each pause.
            idleTimeoutMs: this.#isGrpc ? pass.upstream.idleTimeoutMs : parts.bodyIdleTimeoutMs,
            bytesPerSecond: this.#isGrpc ? 0 : parts.bodyRateBytesPerSecond,
            onStall: () => this.#refuse('ERR_REQUEST_TIMEOUT'),
            onPart: () => {
              this.#timer?.refresh()
              this.#reportActivity()
            },
          })
        : undefined)
    const { session, isOver } = pass
    const isListed = session !== undefined || isOver !== undefined
    this.#stopListing = isListed ? parts.live.open(session, this, isOver) : undefined
    res.on('error', ignore).once('close', this.#onClientClose)
  }

  get isEndless(): boolean {
    return this.#isEventStream
  }

  start(): void {
    const { req, pass, facts, record, parts } = this.#input
    if (hasEnded(pass, parts, parts.clock.now())) return this.cut('session_ended')
    // Each round of a loop would open another connection (RFC 5842 §7.2).
    if (String(req.headers[loopField] ?? '').includes(this.#upstream.loopMarker)) {
      this.#fail(new GatewayError('ERR_LOOP', 'the upstream sent the request back to this gateway'))
      return
    }
    const client = pass.session ?? clientOf(facts.forwarded.clientAddress)
    if (this.#upstream.slots.isFullFor(client)) {
      this.#refuseBusy('queue')
      return
    }
    // The time includes the wait for a connection, because the client waits for that long.
    this.#setTimer(Math.min(pass.upstream.responseTimeoutMs, this.#deadlineMs))
    record.trace?.sent(pass.upstream.url)
    this.#slot = this.#upstream.slots.acquire(client, this)
  }

  onSlot(slot: ConnectionSlot): void {
    this.#slot = slot
    // The client has half-closed its connection while the request waited. It has probably gone, and
    // no probe has shown it yet. Other requests can have the slot.
    if (slot.waitedMs > 0 && this.#input.req.socket.readableEnded) {
      setImmediate(() => slot.release())
      this.#refuse('ERR_UPSTREAM_BUSY')
      return
    }
    const request = upstreamRequest(this.#input, this.#upstream, this.#addresses, this.#body)
    const response = responseSteps(this, this.#input, this.#upstream, this.#addresses)
    this.#upstream.transport.dispatch(request, response, this)
  }

  onTarget(target: string): void {
    this.#input.record.target = target
  }

  onRetry(failed: string, error: GatewayError): void {
    logRetried(this.#input, failed, error)
  }

  /** The only release of a slot with a connection. One that waits is released in `#abandon`. */
  onDone(): void {
    this.#slot?.release()
  }

  onSend(control: ExchangeControl): boolean {
    // The client is gone, or the session has ended, while the request waited for a connection.
    if (this.#state === 'over') return false
    this.#control = control
    const waitedMs = this.#slot?.waitedMs ?? 0
    if (waitedMs === 0) return true
    this.#input.record.waitedMs = waitedMs
    if (waitedMs >= longWaitMs && this.#upstream.reportsWait())
      logBusy(this.#input, 'long_wait', this.#upstream, this.#slot)
    return true
  }

  onResponse(status: number, statusMessage: string, rawFields: RawFields): void {
    const { req, pass, record, parts } = this.#input
    if (this.#state === 'over') return
    if (status < 200) {
      if (status === 103 && this.#input.replace === undefined)
        this.#response.sendEarlyHints(rawFields, this.#addresses.fields)
      return
    }
    const fields = responseHeaders(rawFields, {
      isGatewayCookie: parts.isGatewayCookie,
      caching: pass.caching,
      addresses: this.#addresses.fields,
      changes: this.#upstream.responseChanges,
      cors: pass.upstream.cors && corsFields(pass.upstream.cors, this.#input.facts.origin),
      status,
    })
    if (this.#input.replace !== undefined) {
      record.trace?.upstreamResponded(status)
      this.#replace(this.#input.replace, fields)
      return
    }
    this.#isEventStream = isEventStream(fields)
    if (this.#isGrpc) record.grpcStatus = grpcStatusIn(rawFields)
    if (this.#isEventStream && this.#slot?.keepAsStream() === false) {
      this.#refuseBusy('streams')
      return
    }
    record.trace?.upstreamResponded(status)
    // nginx and Go respond with 400 to HTTP on a port with TLS.
    if (status === 400) this.#upstream.reportWrongScheme('status 400', parts.log)
    else this.#upstream.hasResponded = true
    if (status === 400 || status === 431) logRejectedHeaders(this.#input, status, this.#upstream)
    // First, because the upstream may set the same cookies.
    const expired = pass.expire?.().flatMap((setCookie) => ['Set-Cookie', setCookie]) ?? []
    // The response came before the request was complete, so the connection cannot be used again.
    if (this.#body && !req.complete) fields.push('Connection', 'close')
    this.#response.begin(status, statusMessage, expired.length > 0 ? [...expired, ...fields] : fields)
    this.#state = 'responding'
    if (this.#isEventStream) {
      // An event stream without a session is listed too, because it ends when the gateway stops.
      this.#stopListing ??= parts.live.open(undefined, this)
      record.markAsStream('event_stream')
    }
    // Most responses are complete by then, and need neither a flush nor a timer.
    atEndOfTurn(onIncomplete, this)
  }

  holdResponse(): void {
    if (this.#state === 'waiting') this.#setTimer(0)
  }

  /** Something else takes the place of a complete response, of which the client has got nothing. */
  replaceResponse(next: () => void): void {
    if (this.#state === 'waiting') this.#replace(next)
  }

  /** The upstream may still send content. It is dropped, until the client has its response. */
  #replace(replace: (setCookies: readonly string[]) => void, fields: readonly string[] = []): void {
    this.#state = 'over'
    this.#cleanUp()
    this.#body?.destroy()
    replace(fields.filter((_, at) => at % 2 === 1 && fields[at - 1]?.toLowerCase() === 'set-cookie'))
  }

  onShortPart(part: Buffer): void {
    if (this.#state !== 'responding') return
    this.#input.record.bytes += part.length
    if (!this.#response.hold(part)) this.#write(part)
  }

  onContent(part: Buffer, giveBack: GiveBack): void {
    if (this.#state !== 'responding') {
      giveBack()
      return
    }
    this.#input.record.bytes += part.length
    this.#write(part, giveBack)
  }

  #write(part: Buffer, written?: (error?: Error | null) => void): void {
    this.#timer?.refresh()
    // Messages to a page that is left open do not show that a person uses it.
    if (!this.#isEventStream) this.#reportActivity()
    if (this.#response.write(part, written)) return
    this.#control?.pause()
    if (this.#listensForDrain) return
    this.#listensForDrain = true
    this.#input.res.on('drain', () => {
      this.#timer?.refresh()
      this.#control?.resume()
    })
  }

  onEnd(rawTrailers: RawFields): void {
    this.#control = undefined
    if (this.#state !== 'responding') return
    const { req, res, record } = this.#input
    record.trace?.upstreamEnded()
    this.#state = 'over'
    if (this.#isGrpc) record.grpcStatus ??= grpcStatusIn(rawTrailers)
    if (res.chunkedEncoding) {
      const trailers = responseTrailers(rawTrailers, this.#upstream.reserved.own)
      if (trailers.length > 0) res.addTrailers(trailers)
    }
    // The rest of the content is dropped.
    if (this.#body && !req.complete) req.resume()
    this.#response.end()
  }

  onError(error: GatewayError): void {
    this.#fail(error)
  }

  onSwitch(connection: SwitchedConnection, fields: RawFields): void {
    const { upgrade, record } = this.#input
    this.#control = undefined
    if (this.#state === 'over' || upgrade === undefined) {
      connection.socket.destroy()
      return
    }
    if (this.#slot?.keepAsStream() === false) {
      connection.socket.destroy()
      this.#refuseBusy('streams')
      return
    }
    this.#state = 'over'
    record.trace?.upstreamResponded(101)
    this.#cleanUp()
    upgrade.onSwitch(connection, fields)
  }

  /** The response has begun and is not complete yet. */
  onIncomplete(): void {
    if (this.#state !== 'responding') return
    this.#setTimer(this.#isEventStream ? 0 : this.#input.pass.upstream.idleTimeoutMs)
    this.#response.flush()
  }

  #reportActivity(): void {
    const { pass, parts } = this.#input
    this.#reportedAt = reportActivity(pass.session, this.#reportedAt, parts)
  }

  /** The timer has run out. */
  onTimeout(): void {
    if (this.#state === 'waiting' && this.#body instanceof RequestBody && this.#body.awaitsClient) {
      // The upstream waits for the client. RequestBody limits how long the client may take.
      this.#timer?.refresh()
      return
    }
    // The client does not read the response. The target has done nothing wrong.
    if (this.#state === 'over' || (this.#state === 'responding' && this.#input.res.writableNeedDrain)) this.cut()
    else if (this.#state === 'responding')
      this.#fail(new GatewayError('ERR_UPSTREAM_TIMEOUT', 'a pause longer than idle_timeout'))
    else if (this.#hasWaitedMost()) this.#refuseBusy('wait')
    // The client itself has chosen the time, so it says nothing about the target.
    else if (this.#deadlineMs < this.#input.pass.upstream.responseTimeoutMs) this.#refuse('ERR_UPSTREAM_TIMEOUT')
    else this.#fail(new GatewayError('ERR_UPSTREAM_TIMEOUT', 'no response within response_timeout'))
  }

  /** The request spent most of the time in the gateway, and not at the upstream. */
  #hasWaitedMost(): boolean {
    const { isWaiting, waitedMs } = this.#slot as ConnectionSlot
    return isWaiting || waitedMs * 2 > this.#input.pass.upstream.responseTimeoutMs
  }

  /**
   * Ends both sides. If the response has begun, the client sees that it is incomplete. Otherwise
   * the client gets 401, because its session has ended.
   */
  cut(reason?: CutReason, error?: GatewayError): void {
    if (this.#state === 'waiting') {
      this.#refuse('ERR_UNAUTHENTICATED')
      return
    }
    const code = error?.code ?? (reason === 'session_ended' ? 'ERR_UNAUTHENTICATED' : undefined)
    const mayEndCall = this.#state === 'responding' && this.#endsWithStatus
    this.#state = 'over'
    this.#isCut = true
    this.#input.record.code ??= reason
    if (mayEndCall && code !== undefined) {
      addGrpcStatus(this.#input, code)
      this.#response.end()
    } else this.#response.abort()
    this.#abandon(error)
  }

  /** The client reads a status of gRPC in the trailer section. */
  get #endsWithStatus(): boolean {
    const { req, res } = this.#input
    return this.#isGrpc && !isGrpcWebCall(req.headers) && res.chunkedEncoding
  }

  #fail(error: GatewayError): void {
    const { record, parts } = this.#input
    if (this.#state === 'over') return
    record.code = error.code
    record.trace?.upstreamEnded(error.code)
    logFailed(this.#input, error, this.#state === 'responding')
    if (this.#state === 'responding') {
      this.cut(undefined, error)
      return
    }
    if (error.code === 'ERR_UPSTREAM_UNREACHABLE' || error.code === 'ERR_UPSTREAM_RESPONSE')
      this.#upstream.reportWrongScheme(error.message, parts.log)
    this.#refuse(error.code, error)
  }

  #refuseBusy(busy: BusyReason): void {
    this.#input.record.waitedMs = this.#slot?.waitedMs ?? 0
    this.#refuse('ERR_UPSTREAM_BUSY')
    logBusy(this.#input, busy, this.#upstream, this.#slot)
  }

  #refuse(code: ErrorCode, error?: GatewayError): void {
    const { record, replace } = this.#input
    if (this.#state !== 'waiting') {
      this.cut()
      return
    }
    if (replace !== undefined) {
      this.#replace(replace)
      this.#abandon(error)
      return
    }
    this.#state = 'over'
    const refusal = refusalOf(this.#input, code)
    record.code = code
    record.grpcStatus = refusal.headers['grpc-status']?.toString()
    record.bytes = writeResponse(this.#input, refusal)
    this.#abandon(error)
  }

  /** The response has been sent, or the client is gone. */
  readonly #onClientClose = (): void => {
    const { res, record } = this.#input
    record.endWith(res, this.#isCut)
    this.#state = 'over'
    this.#cleanUp()
    this.#abandon()
  }

  /** @param error the fault of the upstream, if it is one */
  #abandon(error = abandoned): void {
    this.#body?.destroy()
    this.#control?.abort(error)
    if (this.#slot?.isWaiting) this.#slot.release()
  }

  #cleanUp(): void {
    this.#setTimer(0)
    this.#stopListing?.()
  }

  /** @param ms 0: none */
  #setTimer(ms: number): void {
    this.#timer?.stop()
    this.#timer = ms > 0 ? ReusedTimer.start(ms, this) : undefined
  }
}

/** A request that waited this long for a connection, in ms, is logged. */
const longWaitMs = 1_000

const abandoned = new GatewayError('ERR_INTERNAL', 'the exchange is over')

function ignore(): void {}

function onIncomplete(exchange: Exchange): void {
  exchange.onIncomplete()
}
