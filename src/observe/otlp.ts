import { hostname } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { rootCertificates } from 'node:tls'
import { reason } from '../core/errors.ts'
import { pauses } from '../core/pauses.ts'
import { randomHex } from '../core/random.ts'
import { BackOff, retryAfterMs } from '../core/repeating.ts'
import { addressOf, Agent, request } from '../wire/undici.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import type { Span } from './tracing.ts'

/** How many spans may wait. Further spans are dropped. */
const maxWaiting = 4096
const maxBatch = 512
const responseTimeoutMs = 10_000
/** The longest pause after a failure, in ms, also when `Retry-After` asks for more. */
const maxPauseMs = 30_000
const maxTries = 4
/**
 * Statuses after which the same batch may be sent again (OTLP/HTTP, "Retryable Response Codes").
 */
const retryable: ReadonlySet<number> = new Set([429, 502, 503, 504])

export interface OtlpOptions {
  /** The URL that traces are posted to. */
  readonly otlp: URL
  readonly serviceName: string
  /** Further attributes of the resource. */
  readonly resource: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  readonly ca?: string | undefined
}

export interface OtlpParts {
  readonly version: string
  readonly log: Log
  readonly metrics: Metrics
}

/**
 * The result of sending a batch: how many spans were refused, why, and when to try again.
 */
interface Outcome {
  readonly refused: number
  readonly fault?: string
  /** In ms. Absent: do not try again. */
  readonly retryAfterMs?: number
}

/**
 * Sends spans to an OpenTelemetry collector (OTLP/HTTP in JSON), in batches, with a bounded buffer.
 * Requests never wait for it.
 */
export class OtlpExporter {
  readonly #options: OtlpOptions
  readonly #parts: OtlpParts
  readonly #agent: Agent
  /** The beginning of each batch. */
  readonly #head: string
  readonly #closing = new AbortController()
  /** Spans as JSON. A string is bounded in bytes, and the work is spread over time. */
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
      connect: { timeout: responseTimeoutMs, ...(ca === undefined ? {} : { ca: [...rootCertificates, ca] }) },
      headersTimeout: responseTimeoutMs,
      bodyTimeout: responseTimeoutMs,
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
    if (this.#isClosed || this.#waiting.length >= maxWaiting) {
      this.#dropped.add()
      return
    }
    this.#waiting.push(JSON.stringify(span))
    if (this.#waiting.length >= maxBatch) this.#send()
    else this.#timer ??= setTimeout(() => this.#send(), pauses.sendSpansMs).unref()
  }

  /** Sends the waiting spans, for at most `limitMs`. */
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
    // The current batch has failed now and is counted as dropped.
    await this.#sending
  }

  #send(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#sending ??= this.#sendAll().finally(() => (this.#sending = undefined))
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, maxBatch)
      const { refused, fault } = await this.#deliver(batch)
      this.#exported.add(batch.length - refused)
      this.#dropped.add(refused)
      this.#logResult(fault)
    }
  }

  async #deliver(batch: readonly string[]): Promise<Outcome> {
    const body = `${this.#head}[${batch.join(',')}]}]}]}`
    const backOff = new BackOff(pauses.retrySpansMs, maxPauseMs)
    for (let tries = 1; ; tries += 1) {
      const isLast = tries === maxTries || this.#closing.signal.aborted
      const outcome = await this.#post(body, batch.length)
      const { retryAfterMs } = outcome
      if (retryAfterMs === undefined || isLast) return outcome
      await this.#pause(Math.min(maxPauseMs, Math.max(retryAfterMs, backOff.next())))
    }
  }

  /** The pause ends at once when the gateway stops, so that the batch is tried a last time. */
  async #pause(ms: number): Promise<void> {
    await wait(ms, undefined, { ref: false, signal: this.#closing.signal }).catch(() => {})
  }

  async #post(body: string, count: number): Promise<Outcome> {
    try {
      const {
        statusCode,
        headers,
        body: content,
      } = await request(this.#agent, {
        ...addressOf(this.#options.otlp),
        method: 'POST',
        headers: {
          ...this.#options.headers,
          'content-type': 'application/json',
          'user-agent': `gatehouse/${this.#parts.version}`,
        },
        body,
      })
      if (statusCode >= 200 && statusCode < 300) return refusedIn(await content.text().catch(() => ''), count)
      await content.dump().catch(() => {})
      const fault = `responded with status ${statusCode}`
      if (!retryable.has(statusCode)) return { refused: count, fault }
      return { refused: count, fault, retryAfterMs: retryAfterMs(headers['retry-after'], headers['date']) ?? 0 }
    } catch (error) {
      return { refused: count, fault: reason(error), retryAfterMs: 0 }
    }
  }

  /** Logs the first failure, and the first success after it. */
  #logResult(fault: string | undefined): void {
    const { log } = this.#parts
    const collector = this.#options.otlp.origin
    if (fault !== undefined && !this.#isFailing) log.warn('tracing.not_exported', { collector, reason: fault })
    if (fault === undefined && this.#isFailing) log.info('tracing.exported', { collector })
    this.#isFailing = fault !== undefined
  }
}

/** The counters of spans. They exist without a collector too. */
export function describeSpans(metrics: Metrics) {
  return {
    exported: metrics.counter({ name: 'gatehouse_spans_exported_total', help: 'Spans that the collector accepted.' }),
    dropped: metrics.counter({
      name: 'gatehouse_spans_dropped_total',
      help: 'Spans that were dropped because the collector did not accept them in time.',
    }),
  }
}

/**
 * The attributes of the resource (OpenTelemetry semantic conventions). Configured attributes
 * override detected ones.
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
 * How many spans a collector refused (OTLP/HTTP, "Partial Success"). Its message is not logged,
 * because it may contain anything.
 */
function refusedIn(content: string, count: number): Outcome {
  const rejected = Number(/"rejectedSpans"\s*:\s*"?(\d{1,9})/.exec(content)?.[1] ?? 0)
  const refused = Math.min(count, rejected)
  return refused === 0 ? { refused } : { refused, fault: `refused ${refused} of ${count} spans` }
}
