import type { Caller } from '../core/credentials.ts'
import type { SessionKey } from '../core/names.ts'
import type { Cause } from './audit.ts'
import type { RequestTrace } from './trace-context.ts'

/** Receives the events of requests. */
export interface RequestSink {
  began?(record: RequestRecord): void
  /** The request has become a stream. */
  becameStream?(record: RequestRecord): void
  ended(record: RequestRecord): void
}

/** A response that has ended, or whose connection is closed. */
interface EndedResponse {
  readonly headersSent: boolean
  readonly statusCode: number
  readonly writableFinished: boolean
  readonly socket: object | null
}

/** Combines several sinks into one. */
export function combinedSink(sinks: readonly RequestSink[]): RequestSink {
  return {
    began: (record) => {
      for (const sink of sinks) sink.began?.(record)
    },
    becameStream: (record) => {
      for (const sink of sinks) sink.becameStream?.(record)
    },
    ended: (record) => {
      for (const sink of sinks) sink.ended(record)
    },
  }
}

/**
 * The facts about a request for logs, metrics and traces. The code that handles the request fills
 * them in. No decision depends on them.
 */
export class RequestRecord {
  /** The request ID, which proxies and applications log too. */
  readonly id: string
  /** With `askedBy`, the method of the request that was asked about, if it is known. */
  method: string
  /** On the monotonic clock, in ms. */
  readonly startedAt = performance.now()
  host = ''
  /** Without the query, which can contain codes and tokens. */
  path = ''
  /** The address of the client, from trusted sources. */
  client = ''
  /** The address of the proxy that asked about the request (forward_auth). */
  askedBy: string | undefined
  /** It came over HTTP/2. */
  isHttp2 = false
  upstream: string | undefined
  /** Which target of the upstream got it, where there are several. */
  target: string | undefined
  session: SessionKey | undefined
  /** What the request has instead of a session. */
  caller: Caller | undefined
  /**
   * Why the gateway refused or aborted the request: an error code, or the reason why a stream was
   * closed.
   */
  code: string | undefined
  /** `grpc-status` of the response to a call of gRPC. */
  grpcStatus: string | undefined
  /** The number of bytes of content sent to the client, or through a tunnel. */
  bytes = 0
  /** The trace ID of its W3C Trace Context. */
  traceId: string | undefined
  /** Its place in a trace. Absent: the gateway does not take part in traces. */
  trace: RequestTrace | undefined
  /** The status of the response; 499 when the client left before it began. */
  status = 0
  /** The client did not receive the whole response. */
  aborted = false
  durationMs = 0
  /** How long it waited for a connection to the upstream, in ms. */
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

  /** The cause of audit events of this request. */
  get cause(): Cause {
    return { request: this.id, client: this.client }
  }

  /** Marks the request as a stream. */
  markAsStream(stream: 'event_stream' | 'tunnel'): void {
    if (this.#isOver || this.stream !== undefined) return
    this.stream = stream
    this.#sink.becameStream?.(this)
  }

  /**
   * Ends the request with its response. Node.js detaches the socket only of a response that was
   * sent completely.
   */
  endWith(res: EndedResponse, isCut = false): void {
    const isWhole = !isCut && res.writableFinished && res.socket === null
    this.end(res.headersSent ? res.statusCode : undefined, isWhole)
  }

  /**
   * Ends the request. `status` is absent when no response began. Further calls have no effect.
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

/**
 * Writes a line of JSON for each request. The line is concatenated by hand, because most fields
 * need no escaping and the code runs for each request.
 */
export function createAccessLog(write: (line: string) => void): RequestSink {
  let lastMs = 0
  let lastTime = ''
  const time = (): string => {
    const now = Date.now()
    if (now !== lastMs) {
      lastMs = now
      lastTime = new Date(now).toISOString()
    }
    return lastTime
  }
  return { ended: (record) => write(accessLine(record, time())) }
}

/** `time` is ISO 8601. */
export function accessLine(record: RequestRecord, time: string): string {
  const { askedBy, upstream, session, code, traceId } = record
  const us = Math.round(record.durationMs * 1000)
  let line =
    `{"level":"info","time":"${time}","msg":"request.ended","request":"${record.id}","method":"${record.method}",` +
    `"host":"${escaped(record.host)}","path":"${escaped(record.path)}","status":${record.status},"bytes":${record.bytes},` +
    `"ms":${Math.floor(us / 1000)}.${String(1000 + (us % 1000)).slice(1)},"client":"${record.client}"`
  if (record.isHttp2) line += ',"http":"2"'
  if (record.waitedMs >= 1) line += `,"waited_ms":${Math.round(record.waitedMs)}`
  if (askedBy !== undefined) line += `,"asked_by":"${askedBy}"`
  if (upstream !== undefined) line += `,"upstream":"${upstream}"`
  if (record.target !== undefined) line += `,"target":"${escaped(record.target)}"`
  if (session !== undefined) line += `,"session":"${session}"`
  if (record.caller !== undefined) line += `,"caller":"${record.caller}"`
  if (code !== undefined) line += `,"code":"${code}"`
  if (record.grpcStatus !== undefined) line += `,"grpc_status":"${escaped(record.grpcStatus)}"`
  if (record.aborted) line += ',"aborted":true'
  if (traceId !== undefined) line += `,"trace":"${traceId}"`
  return `${line}}\n`
}

/** Longer texts are cut, in characters, because log collectors limit the length of a line. */
const longestText = 1024
/** Characters that need escaping, and ";", which begins the parameters of a path. */
const needsEscaping = /[^ !#-:<-[\]-~]/

/**
 * Hides the parameters of a path, because they can contain the session of the application
 * (`;jsessionid=…`).
 */
export function withoutParameters(path: string): string {
  return path.replaceAll(/;[^/]*/g, ';…')
}

function escaped(text: string): string {
  if (text.length <= longestText && !needsEscaping.test(text)) return text
  const shown = withoutParameters(text)
  const cut = shown.length > longestText ? `${shown.slice(0, longestText)}…` : shown
  // Everything beyond printable ASCII is escaped, because a terminal would interpret control
  // characters.
  return cut.replaceAll(/[^ !#-[\]-~]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
