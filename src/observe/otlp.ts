import { hostname } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { rootCertificates } from 'node:tls'
import { reason } from '../core/errors.ts'
import { randomHex } from '../core/random.ts'
import { addressOf, Agent } from '../core/undici.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import type { Span } from './tracing.ts'

/** So many spans may wait; what comes on top is dropped. */
const mostWaiting = 4096
const mostInBatch = 512
/** How long a span waits for others, in ms. */
const companyMs = 1_000
const answerMs = 10_000
/** After a failure, in ms: doubled each time. */
const firstPauseMs = 1_000
/** No collector makes us wait longer, in ms, whatever its `Retry-After` says. */
const longestPauseMs = 30_000
const mostTries = 4
/**
 * What a collector answers that may take the same batch later (OTLP/HTTP, "Retryable Response
 * Codes").
 */
const retryable: ReadonlySet<number> = new Set([429, 502, 503, 504])

export interface OtlpOptions {
  /** The URL that traces are posted to. */
  readonly otlp: URL
  readonly serviceName: string
  /** Further attributes of the resource. */
  readonly resource: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  readonly ca: string | undefined
}

export interface OtlpParts {
  readonly version: string
  readonly log: Log
  readonly metrics: Metrics
}

/**
 * What became of a batch: how many spans of it were refused, why not all were taken, and when to
 * ask again.
 */
interface Outcome {
  readonly refused: number
  readonly fault?: string
  /** In ms; absent: asking again is of no use. */
  readonly retryAfterMs?: number
}

/**
 * Sends spans to an OpenTelemetry collector: OTLP/HTTP in JSON, in batches, bounded. Nobody ever
 * waits for it.
 */
export class OtlpExporter {
  readonly #options: OtlpOptions
  readonly #parts: OtlpParts
  readonly #agent: Agent
  /** What is the same in front of every batch. */
  readonly #head: string
  readonly #closing = new AbortController()
  /** As JSON: bounded in bytes, too, and not written all at once. */
  #waiting: string[] = []
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | undefined
  #isFailing = false
  #isClosed = false
  readonly #exported
  readonly #dropped

  constructor(options: OtlpOptions, parts: OtlpParts) {
    this.#options = options
    this.#parts = parts
    const { ca } = options
    this.#agent = new Agent({
      connections: 1,
      connect: { timeout: answerMs, ...(ca === undefined ? {} : { ca: [...rootCertificates, ca] }) },
      headersTimeout: answerMs,
      bodyTimeout: answerMs,
      maxResponseSize: 64 * 1024,
    })
    const resource = { attributes: resourceAttributes(options, parts.version) }
    const scope = { name: 'gatehouse', version: parts.version }
    this.#head = `{"resourceSpans":[{"resource":${JSON.stringify(resource)},"scopeSpans":[{"scope":${JSON.stringify(scope)},"spans":`
    const spans = describeSpans(parts.metrics)
    this.#exported = spans.exported.of()
    this.#dropped = spans.dropped.of()
  }

  add(span: Span): void {
    if (this.#isClosed || this.#waiting.length >= mostWaiting) {
      this.#dropped.add()
      return
    }
    this.#waiting.push(JSON.stringify(span))
    if (this.#waiting.length >= mostInBatch) this.#send()
    else this.#timer ??= setTimeout(() => this.#send(), companyMs).unref()
  }

  /** Sends what waits, for as long as `limitMs` allows. */
  async close(limitMs: number): Promise<void> {
    this.#closing.abort()
    this.#send()
    const limit = new AbortController()
    await Promise.race([this.#sending, wait(limitMs, undefined, { signal: limit.signal }).catch(() => {})])
    limit.abort()
    this.#isClosed = true
    this.#dropped.add(this.#waiting.length)
    this.#waiting = []
    await this.#agent.destroy()
    // The batch that was under way has failed now, and is counted.
    await this.#sending
  }

  #send(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#sending ??= this.#sendAll().finally(() => (this.#sending = undefined))
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, mostInBatch)
      const { refused, fault } = await this.#deliver(batch)
      this.#exported.add(batch.length - refused)
      this.#dropped.add(refused)
      this.#tell(fault)
    }
  }

  async #deliver(batch: readonly string[]): Promise<Outcome> {
    const body = `${this.#head}[${batch.join(',')}]}]}]}`
    for (let tries = 1, pauseMs = firstPauseMs; ; tries += 1, pauseMs *= 2) {
      const isLast = tries === mostTries || this.#closing.signal.aborted
      const outcome = await this.#post(body, batch.length)
      const { retryAfterMs } = outcome
      if (retryAfterMs === undefined || isLast) return outcome
      // Replicas that failed together do not come back together.
      const spread = 0.75 + Math.random() / 2
      await this.#pause(Math.min(longestPauseMs, Math.max(retryAfterMs, pauseMs * spread)))
    }
  }

  /** Over at once when the gateway stops: what could not be delivered is tried a last time. */
  async #pause(ms: number): Promise<void> {
    await wait(ms, undefined, { ref: false, signal: this.#closing.signal }).catch(() => {})
  }

  async #post(body: string, count: number): Promise<Outcome> {
    try {
      const {
        statusCode,
        headers,
        body: answer,
      } = await this.#agent.request({
        ...addressOf(this.#options.otlp),
        method: 'POST',
        headers: {
          ...this.#options.headers,
          'content-type': 'application/json',
          'user-agent': `gatehouse/${this.#parts.version}`,
        },
        body,
      })
      if (statusCode >= 200 && statusCode < 300) return refusedIn(await answer.text().catch(() => ''), count)
      await answer.dump().catch(() => {})
      const fault = `answered with status ${statusCode}`
      if (!retryable.has(statusCode)) return { refused: count, fault }
      return { refused: count, fault, retryAfterMs: 1000 * (Number(headers['retry-after']) || 0) }
    } catch (error) {
      return { refused: count, fault: reason(error), retryAfterMs: 0 }
    }
  }

  /** Once when it begins to fail, and once when it works again. */
  #tell(fault: string | undefined): void {
    const { log } = this.#parts
    const collector = this.#options.otlp.origin
    if (fault !== undefined && !this.#isFailing) log.warn('tracing.not_exported', { collector, reason: fault })
    if (fault === undefined && this.#isFailing) log.info('tracing.exported', { collector })
    this.#isFailing = fault !== undefined
  }
}

/** They are there without a collector, too. */
export function describeSpans(metrics: Metrics) {
  return {
    exported: metrics.counter({ name: 'gatehouse_spans_exported_total', help: 'Spans that the collector took.' }),
    dropped: metrics.counter({
      name: 'gatehouse_spans_dropped_total',
      help: 'Spans that were dropped: the collector did not take them, or not in time.',
    }),
  }
}

/**
 * By the semantic conventions for resources. What the operator writes stands above what is found
 * out.
 */
function resourceAttributes({ serviceName, resource }: OtlpOptions, version: string) {
  const attributes = {
    'service.version': version,
    'service.instance.id': randomHex(16),
    'host.name': hostname(),
    'process.pid': process.pid,
    'telemetry.sdk.name': 'gatehouse',
    'telemetry.sdk.language': 'nodejs',
    'telemetry.sdk.version': version,
    ...resource,
    'service.name': serviceName,
  }
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }))
}

/**
 * A collector can take a part (OTLP/HTTP, "Partial Success"). What it says is its own: nothing of
 * it goes to the log.
 */
function refusedIn(answer: string, count: number): Outcome {
  const rejected = Number(/"rejectedSpans"\s*:\s*"?(\d{1,9})/.exec(answer)?.[1] ?? 0)
  const refused = Math.min(count, rejected)
  return refused === 0 ? { refused } : { refused, fault: `refused ${refused} of ${count} spans` }
}
