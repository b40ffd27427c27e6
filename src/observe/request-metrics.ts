import type { Count, Distribution, Metrics } from './metrics.ts'
import type { RequestRecord, RequestSink } from './request-record.ts'

/** The bounds of the histograms, in seconds. */
const durationBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** The metrics of one upstream, or of the responses of the gateway itself. */
interface UpstreamMetrics {
  /** By method, then by class of status: 2 is 2xx. */
  readonly requests: Map<string, (Count | undefined)[]>
  readonly duration: Distribution
  readonly wait: Distribution
  readonly bytes: Count
  readonly aborted: Count
}

/**
 * Counts requests. The labels are upstreams, known methods and classes of status, so that clients
 * cannot create new ones.
 */
export function createRequestMetrics(metrics: Metrics): RequestSink {
  const requests = metrics.counter({
    name: 'gatehouse_requests_total',
    help: 'Finished requests, by upstream (none: the gateway itself responded).',
    labels: ['upstream', 'method', 'status'],
  })
  const duration = metrics.histogram(
    {
      name: 'gatehouse_request_duration_seconds',
      help: 'Time from the head of a request to the end of its response. Without WebSockets and event streams.',
      labels: ['upstream'],
    },
    durationBounds,
  )
  const wait = metrics.histogram(
    {
      name: 'gatehouse_upstream_wait_seconds',
      help: 'How long requests waited for a connection to their upstream. Only those that had to wait.',
      labels: ['upstream'],
    },
    durationBounds,
  )
  const bytes = metrics.counter({
    name: 'gatehouse_response_content_bytes_total',
    help: 'Content sent to clients, including WebSockets.',
    labels: ['upstream'],
  })
  const aborted = metrics.counter({
    name: 'gatehouse_requests_aborted_total',
    help: 'Requests whose client did not receive the whole response.',
    labels: ['upstream'],
  })
  const refusals = metrics.counter({
    name: 'gatehouse_refusals_total',
    help: 'Requests that the gateway rejected or aborted, by the code in the access log.',
    labels: ['code'],
  })
  let active = 0
  const streams = { event_stream: 0, tunnel: 0 }
  metrics.gauge(
    { name: 'gatehouse_active_requests', help: 'Requests in progress, without WebSockets and event streams.' },
    'sum',
    () => active,
  )
  metrics.gauge(
    {
      name: 'gatehouse_open_streams',
      help: 'Open event streams and tunnels (usually WebSockets).',
      labels: ['kind'],
    },
    'sum',
    () => Object.entries(streams).map(([kind, open]) => [[kind], open] as const),
  )

  const byUpstream = new Map<string | undefined, UpstreamMetrics>()
  const metricsOf = (upstream: string | undefined): UpstreamMetrics => {
    const known = byUpstream.get(upstream)
    if (known !== undefined) return known
    const label = upstream ?? 'none'
    const made: UpstreamMetrics = {
      requests: new Map(),
      duration: duration.of(label),
      wait: wait.of(label),
      bytes: bytes.of(label),
      aborted: aborted.of(label),
    }
    byUpstream.set(upstream, made)
    return made
  }
  const requestsOf = (place: UpstreamMetrics, { upstream, method, status }: RequestRecord): Count => {
    const statusClass = Math.floor(status / 100)
    const byClass = place.requests.get(method) ?? []
    const known = byClass[statusClass]
    if (known !== undefined) return known
    const made = requests.of(upstream ?? 'none', methods.has(method) ? method : 'other', `${statusClass}xx`)
    byClass[statusClass] = made
    place.requests.set(method, byClass)
    return made
  }

  return {
    began: () => void (active += 1),
    becameStream: ({ stream }) => {
      if (stream === undefined) return
      active -= 1
      streams[stream] += 1
    },
    ended: (record) => {
      const place = metricsOf(record.upstream)
      requestsOf(place, record).add()
      place.bytes.add(record.bytes)
      if (record.waitedMs > 0) place.wait.observe(record.waitedMs / 1000)
      if (record.aborted) place.aborted.add()
      if (record.code !== undefined) refusals.of(record.code).add()
      if (record.stream === undefined) {
        active -= 1
        place.duration.observe(record.durationMs / 1000)
      } else streams[record.stream] -= 1
    },
  }
}
