import { MetricSamples } from '../admin/samples.ts'
import { Timeline } from '../admin/timeline.ts'
import { UpstreamsHealth } from '../admin/upstream-health.ts'
import type { GatewayConfig } from '../config/model/gateway.ts'
import { type Clock, systemClock } from '../core/clock.ts'
import { version } from '../core/version.ts'
import { type Audit, createAudit, RepeatedDenials } from '../observe/audit.ts'
import { countedAudit, countedLog, RequestMetrics } from '../observe/event-metrics.ts'
import type { Log } from '../observe/log.ts'
import { Metrics } from '../observe/metrics.ts'
import { describeSpans, OtlpExporter } from '../observe/otlp.ts'
import { addProcessMetrics } from '../observe/process-metrics.ts'
import { combinedSink, createAccessLog, type RequestSink } from '../observe/request-record.ts'
import { Tracer } from '../observe/tracing.ts'
import type { DroppedLines } from '../observe/writing-log.ts'

/** How long sending the last spans may take at shutdown, in ms. */
const lastSpansMs = 2000

export interface ObservingParts {
  readonly log: Log
  /** Gets the lines of the access log, one for each request. Absent: there is no access log. */
  readonly access?: ((line: string) => void) | undefined
  /** Gets the audit events. Absent: the log does. */
  readonly auditLog?: Pick<Log, 'info'>
  /** Absent: new metrics. */
  readonly metrics?: Metrics
  /** How many lines of the log were dropped. */
  readonly dropped?: () => DroppedLines
  readonly clock?: Clock
}

/** Log, audit, metrics and traces of a gateway. They outlive a reload. */
export interface Observing {
  readonly log: Log
  readonly audit: Audit
  readonly metrics: Metrics
  /** Gets the record of every request. */
  readonly sink: RequestSink
  /** Absent: the gateway does not trace. */
  readonly tracer: Tracer | undefined
  /** Absent: there is no administration page. */
  readonly pageHistory: PageHistory | undefined
  /** Sends the spans and audit events that are still buffered. */
  close(): Promise<void>
}

/** Recent events, kept for the administration page only. */
export interface PageHistory {
  readonly timeline: Timeline
  readonly samples: MetricSamples
  readonly upstreams: UpstreamsHealth
}

const nothingDropped: DroppedLines = { lines: 0, auditEvents: 0 }

export function startObserving(
  { tracing, admin }: Pick<GatewayConfig, 'tracing' | 'admin'>,
  parts: ObservingParts,
): Observing {
  const { metrics = new Metrics(), dropped = () => nothingDropped, access, clock = systemClock } = parts
  const log = countedLog(parts.log, metrics)
  const stopProcessMetrics = addProcessMetrics(metrics, version)
  metrics.counted({
    name: 'gatehouse_log_lines_dropped_total',
    help: 'Log lines that were dropped because the log was not read.',
    read: () => dropped().lines,
  })
  metrics.counted({
    name: 'gatehouse_audit_events_dropped_total',
    help: 'Audit events that were dropped because the log was not read.',
    read: () => dropped().auditEvents,
  })
  describeSpans(metrics)
  const exporter = tracing && new OtlpExporter(tracing, { version, log, metrics })
  const tracer = tracing && exporter && new Tracer(tracing.sample, (span) => exporter.add(span))
  const now = () => clock.now()
  const requestMetrics = new RequestMetrics(metrics)
  const pageHistory = admin?.page && {
    timeline: new Timeline(),
    upstreams: new UpstreamsHealth(now),
    samples: new MetricSamples(metrics, clock),
  }
  const sinks = [requestMetrics, access && createAccessLog(access), tracer, pageHistory?.upstreams]
  const denials = new RepeatedDenials(createAudit(parts.auditLog ?? log))
  const audit = countedAudit(denials, metrics)
  return {
    log,
    metrics,
    tracer,
    pageHistory,
    audit: pageHistory === undefined ? audit : pageHistory.timeline.watching(audit, now),
    sink: combinedSink(sinks.filter((sink) => sink !== undefined)),
    close: async () => {
      denials.flush()
      stopProcessMetrics()
      pageHistory?.samples.close()
      await exporter?.close(lastSpansMs)
    },
  }
}
