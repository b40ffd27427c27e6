import { portOf } from '../core/addresses.ts'
import { type RequestRecord, type RequestSink, withoutParameters } from './request-record.ts'
import { parseTraceParent, RequestTrace } from './trace-context.ts'

/** A span as OTLP has it, in JSON (opentelemetry-proto, trace.v1). Times in ns since the epoch. */
export interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly traceState?: string
  readonly name: string
  /** SERVER and CLIENT. */
  readonly kind: 2 | 3
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly Attribute[]
  /** ERROR; absent otherwise. */
  readonly status?: { readonly code: 2 }
}

export interface Attribute {
  readonly key: string
  readonly value: { readonly stringValue: string } | { readonly intValue: string }
}

type HeaderValue = string | readonly string[] | undefined

/** Assigns requests to traces, and creates their spans when they end. */
export class Tracer implements RequestSink {
  readonly #sample: number
  readonly #add: (span: Span) => void

  /** @param sample the share of traces beginning here that are recorded, from 0 to 1 */
  constructor(sample: number, add: (span: Span) => void) {
    this.#sample = sample
    this.#add = add
  }

  /**
   * Continues the trace of a trusted caller with its sampling decision. Requests of other callers
   * begin a new trace: otherwise a client could have all requests recorded, or link requests of
   * other people (W3C Trace Context §7).
   */
  begin(traceparent: HeaderValue, tracestate: HeaderValue, isTrusted: boolean): RequestTrace {
    const parent = isTrusted ? parseTraceParent(traceparent) : undefined
    const state = typeof tracestate === 'object' ? tracestate.join(',') : tracestate
    return new RequestTrace(parent, state, parent?.isSampled ?? Math.random() < this.#sample)
  }

  ended(record: RequestRecord): void {
    const { trace } = record
    if (trace === undefined || !trace.isSampled) return
    // The wall clock is read once, so that the spans of a request fit together even if the clock is
    // changed.
    const offset = Date.now() - performance.now()
    this.#add(serverSpan(record, trace, offset))
    if (trace.sentAt !== undefined) this.#add(clientSpan(record, trace, trace.sentAt, offset))
  }
}

/**
 * Names and attributes follow the semantic conventions for HTTP. Query, headers and the address of
 * the client are left out, because they may be secret or personal.
 */
function serverSpan(record: RequestRecord, trace: RequestTrace, offset: number): Span {
  const { path, host, status, code, session, upstream, id, aborted } = record
  // A client that leaves, or a logout that closes a stream, is not an error of the gateway.
  const failed = status >= 500 || (aborted && code?.startsWith('ERR_') === true)
  const attributes = [
    ...methodOf(record),
    ...(trace.requestOrigin === undefined ? [] : [text('url.scheme', trace.requestOrigin.proto)]),
    text('url.path', withoutParameters(path)),
    text('server.address', host),
    ...(trace.requestOrigin === undefined
      ? []
      : serverPort(`${trace.requestOrigin.proto}://${trace.requestOrigin.host}`)),
    text('gatehouse.request_id', id),
    ...(status === 499 ? [] : [number('http.response.status_code', status)]),
    ...(upstream === undefined ? [] : [text('gatehouse.upstream', upstream)]),
    ...(session === undefined ? [] : [text('gatehouse.session', session)]),
    ...errorType(failed, code ?? String(status)),
  ]
  return {
    traceId: trace.traceId,
    spanId: trace.spanId,
    ...(trace.parentId === undefined ? {} : { parentSpanId: trace.parentId }),
    ...stateOf(trace),
    name: spanNameOf(record),
    kind: 2,
    startTimeUnixNano: nanoseconds(record.startedAt + offset),
    endTimeUnixNano: nanoseconds(record.startedAt + record.durationMs + offset),
    attributes,
    ...(failed ? { status: { code: 2 } } : {}),
  }
}

function clientSpan(record: RequestRecord, trace: RequestTrace, sentAt: number, offset: number): Span {
  const { path, code, upstream } = record
  const { upstreamUrl, upstreamStatus, upstreamFault } = trace
  const failed = upstreamFault !== undefined || upstreamStatus === undefined || upstreamStatus >= 400
  const attributes = [
    ...methodOf(record),
    ...(upstreamUrl === undefined
      ? []
      : [
          text('url.full', `${upstreamUrl.origin}${withoutParameters(path)}`),
          text('server.address', upstreamUrl.hostname.replace(/^\[(.*)\]$/, '$1')),
          ...serverPort(upstreamUrl.origin),
        ]),
    ...(upstreamStatus === undefined ? [] : [number('http.response.status_code', upstreamStatus)]),
    ...(upstream === undefined ? [] : [text('gatehouse.upstream', upstream)]),
    ...errorType(
      failed,
      upstreamFault ?? (upstreamStatus === undefined ? (code ?? 'aborted') : String(upstreamStatus)),
    ),
  ]
  return {
    traceId: trace.traceId,
    spanId: trace.upstreamSpanId,
    parentSpanId: trace.spanId,
    ...stateOf(trace),
    name: spanNameOf(record),
    kind: 3,
    startTimeUnixNano: nanoseconds(sentAt + offset),
    endTimeUnixNano: nanoseconds((trace.upstreamEndedAt ?? record.startedAt + record.durationMs) + offset),
    attributes,
    ...(failed ? { status: { code: 2 } } : {}),
  }
}

/**
 * The known methods of the semantic conventions. Others are `_OTHER`, because clients must not
 * create new names of spans.
 */
const methods: ReadonlySet<string> = new Set('GET HEAD POST PUT DELETE CONNECT OPTIONS TRACE PATCH'.split(' '))

function methodOf({ method }: RequestRecord): readonly Attribute[] {
  if (methods.has(method)) return [text('http.request.method', method)]
  return [text('http.request.method', '_OTHER'), text('http.request.method_original', method)]
}

function spanNameOf({ method }: RequestRecord): string {
  return methods.has(method) ? method : 'HTTP'
}

/** Empty for an invalid URL. */
function serverPort(url: string): readonly Attribute[] {
  return URL.canParse(url) ? [number('server.port', portOf(new URL(url)))] : []
}

function stateOf({ state }: RequestTrace): { readonly traceState?: string } {
  return state === undefined || state.length > longestState ? {} : { traceState: state }
}

function errorType(failed: boolean, type: string): readonly Attribute[] {
  return failed ? [text('error.type', type)] : []
}

function text(key: string, value: string): Attribute {
  return { key, value: { stringValue: cut(value) } }
}

function number(key: string, value: number): Attribute {
  return { key, value: { intValue: String(value) } }
}

/** Cuts texts that clients choose, because the buffer of spans is bounded. */
function cut(value: string): string {
  return value.length > longestText ? `${value.slice(0, longestText)}…` : value
}

/** The longest text of an attribute, in characters. */
const longestText = 1024
/**
 * The longest `tracestate`, in characters. A longer one is omitted, because a part of it would be
 * malformed (W3C Trace Context §3.3.1.5).
 */
const longestState = 512

function nanoseconds(ms: number): string {
  return String(BigInt(Math.round(ms * 1000)) * 1000n)
}
