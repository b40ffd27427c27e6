import { randomHex } from '../core/random.ts'

/** The content of a `traceparent` field (W3C Trace Context §3.2). */
export interface TraceParent {
  readonly traceId: string
  /** The span of the caller. */
  readonly parentId: string
  readonly isSampled: boolean
}

/** The scheme and the `Host` of a request. */
export interface RequestOrigin {
  readonly proto: 'http' | 'https'
  readonly host: string
}

const syntax = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/

/**
 * Parses a `traceparent` field. `undefined` when it is malformed, so that a new trace begins
 * (§4.3).
 */
export function parseTraceParent(value: string | readonly string[] | undefined): TraceParent | undefined {
  if (typeof value !== 'string') return undefined
  const [, version, traceId = '', parentId = '', flags = '', more] = syntax.exec(value.trim()) ?? []
  // Only later versions may have more fields. Version ff is invalid.
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(parentId)) return undefined
  return { traceId, parentId, isSampled: (parseInt(flags, 16) & 1) === 1 }
}

/**
 * The place of a request in a trace: the span of the gateway, and the span of the request to the
 * upstream.
 */
export class RequestTrace {
  readonly traceId: string
  /** The span of the caller. Absent: the trace begins here. */
  readonly parentId: string | undefined
  readonly spanId: string
  readonly upstreamSpanId: string
  readonly isSampled: boolean
  /** The `tracestate` that is passed on. */
  readonly state: string | undefined
  /** From trusted sources. Absent: the request was malformed. */
  requestOrigin: RequestOrigin | undefined
  /** On the monotonic clock, in ms. Absent: nothing was sent. */
  sentAt: number | undefined
  /** The URL of the upstream. */
  upstreamUrl: URL | undefined
  /** The status of the response of the upstream. Absent: there was none. */
  upstreamStatus: number | undefined
  /** Why the response of the upstream is missing or incomplete. */
  upstreamFault: string | undefined
  /** On the monotonic clock, in ms: when the response of the upstream ended. */
  upstreamEndedAt: number | undefined

  constructor(parent: TraceParent | undefined, state: string | undefined, isSampled: boolean) {
    this.traceId = parent?.traceId ?? randomHex(16)
    this.parentId = parent?.parentId
    this.state = parent === undefined || state === '' ? undefined : state
    this.isSampled = isSampled
    this.spanId = randomHex(8)
    this.upstreamSpanId = randomHex(8)
  }

  /** The `traceparent` field for the upstream (§3.2.2.5). */
  get traceParent(): string {
    return `00-${this.traceId}-${this.upstreamSpanId}-${this.isSampled ? '01' : '00'}`
  }

  sent(upstreamUrl: URL): void {
    this.sentAt = performance.now()
    this.upstreamUrl = upstreamUrl
  }

  upstreamResponded(status: number): void {
    this.upstreamStatus = status
  }

  /** @param fault a code; absent: the response was complete */
  upstreamEnded(fault?: string): void {
    this.upstreamEndedAt ??= performance.now()
    this.upstreamFault ??= fault
  }
}
