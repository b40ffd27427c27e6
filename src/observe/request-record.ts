import type { SessionKey } from '../core/names.ts'
import type { Cause } from './audit.ts'
import type { RequestTrace } from './trace-context.ts'

/** Who looks at requests. */
export interface RequestSink {
  began?(record: RequestRecord): void
  /** It has turned out to be a stream, which has no end of its own. */
  lasts?(record: RequestRecord): void
  ended(record: RequestRecord): void
}

/** Several that look at the same requests, as one. */
export function combinedSink(sinks: readonly RequestSink[]): RequestSink {
  return {
    began: (record) => {
      for (const sink of sinks) sink.began?.(record)
    },
    lasts: (record) => {
      for (const sink of sinks) sink.lasts?.(record)
    },
    ended: (record) => {
      for (const sink of sinks) sink.ended(record)
    },
  }
}

/**
 * What is known of a request, filled in on its way by those who learn it, for those who look at it
 * afterwards. Nothing in it is ever decided by.
 */
export class RequestRecord {
  /** By what it is found in the logs of everybody on its way. */
  readonly id: string
  readonly method: string
  /** Of the monotonic clock, in ms. */
  readonly startedAt = performance.now()
  host = ''
  /** Without the query, which can hold codes and tokens. */
  path = ''
  /** The client's address, as far as it is believed. */
  client = ''
  upstream: string | undefined
  session: SessionKey | undefined
  /** Why it was refused, or broken off by the gateway: an error's code, or why a stream was cut. */
  code: string | undefined
  /** Of the answer's content, or through a tunnel to the client. */
  bytes = 0
  /** Of the W3C Trace Context that it belongs to. */
  traceId: string | undefined
  /** Its place in a trace that the gateway takes part in; absent: it takes part in none. */
  trace: RequestTrace | undefined
  /** What the client was answered; 499 when it was gone before any answer began. */
  status = 0
  /** The client did not get the whole answer. */
  aborted = false
  durationMs = 0
  /** How long it waited for a connection to the upstream. */
  waitedMs = 0
  stream: 'event_stream' | 'tunnel' | undefined
  readonly #sink: RequestSink
  #isOver = false

  constructor(method: string, id: string, sink: RequestSink) {
    this.method = method
    this.id = id
    this.#sink = sink
    sink.began?.(this)
  }

  /** For audit events about what was done for it. */
  get cause(): Cause {
    return { request: this.id, client: this.client }
  }

  /** Its answer is a stream, or it has become one. */
  lastsAs(stream: 'event_stream' | 'tunnel'): void {
    if (this.#isOver || this.stream !== undefined) return
    this.stream = stream
    this.#sink.lasts?.(this)
  }

  /**
   * The request is over. `status` is absent when no answer began. What is said later counts for
   * nothing.
   */
  end(status: number | undefined, isWhole: boolean): void {
    if (this.#isOver) return
    this.#isOver = true
    this.status = status ?? 499
    this.aborted = !isWhole
    this.durationMs = performance.now() - this.startedAt
    this.#sink.ended(this)
  }
}
