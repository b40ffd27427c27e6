import { randomHex } from '../core/random.ts'

/** What a `traceparent` says (W3C Trace Context §3.2). */
export interface TraceParent {
  readonly traceId: string
  /** Of the caller's span. */
  readonly parentId: string
  readonly isSampled: boolean
}

/** The scheme and the `Host` of a request. */
export interface Asked {
  readonly proto: 'http' | 'https'
  readonly host: string
}

const syntax = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/

/** Absent when it is malformed: then there is no trace to belong to (§4.3). */
export function parseTraceParent(value: string | readonly string[] | undefined): TraceParent | undefined {
  if (typeof value !== 'string') return undefined
  const [, version, traceId = '', parentId = '', flags = '', more] = syntax.exec(value.trim()) ?? []
  // Later versions may say more, this one does not; ff is none.
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(parentId)) return undefined
  return { traceId, parentId, isSampled: (parseInt(flags, 16) & 1) === 1 }
}

/**
 * A request's place in a trace that the gateway takes part in: a span of its own, and one for the
 * way to the upstream.
 */
export class RequestTrace {
  readonly traceId: string
  /** The caller's span; absent: the trace begins here. */
  readonly parentId: string | undefined
  readonly spanId: string
  readonly upstreamSpanId: string
  readonly isSampled: boolean
  /** The `tracestate` that goes on. */
  readonly state: string | undefined
  /** What the client asked for, as far as it is believed; absent: that was malformed. */
  asked: Asked | undefined
  /** Of the monotonic clock, in ms; absent: nothing was sent. */
  sentAt: number | undefined
  /** The upstream's own address. */
  upstreamUrl: URL | undefined
  /** The upstream's status; absent: it did not answer. */
  upstreamStatus: number | undefined
  /** Why the upstream's answer is missing, or not whole. */
  upstreamFault: string | undefined
  /** Of the monotonic clock, in ms: when its answer was over. */
  upstreamEndedAt: number | undefined

  constructor(parent: TraceParent | undefined, state: string | undefined, isSampled: boolean) {
    this.traceId = parent?.traceId ?? randomHex(16)
    this.parentId = parent?.parentId
    this.state = parent === undefined || state === '' ? undefined : state
    this.isSampled = isSampled
    this.spanId = randomHex(8)
    this.upstreamSpanId = randomHex(8)
  }

  /** For the upstream (§3.2.2.5). */
  get traceParent(): string {
    return `00-${this.traceId}-${this.upstreamSpanId}-${this.isSampled ? '01' : '00'}`
  }

  sent(upstreamUrl: URL): void {
    this.sentAt = performance.now()
    this.upstreamUrl = upstreamUrl
  }

  upstreamAnswered(status: number): void {
    this.upstreamStatus = status
  }

  /** @param fault a code; absent: it answered to the end */
  upstreamEnded(fault?: string): void {
    this.upstreamEndedAt ??= performance.now()
    this.upstreamFault ??= fault
  }
}
