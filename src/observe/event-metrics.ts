import type { Audit, AuditEvents } from './audit.ts'
import type { Log } from './log.ts'
import type { Count, Distribution, Metrics } from './metrics.ts'
import type { RequestRecord, RequestSink } from './request-record.ts'

/**
 * Events that deserve an alert. Their counters start at 0, so that the first event is an increase.
 */
const alarming = [
  ['warn', 'config.needs_restart'],
  ['error', 'config.rejected'],
  ['error', 'process.unhandled_rejection'],
  ['error', 'request.failed'],
  ['error', 'session.refresh_lost'],
  ['warn', 'store.endings_not_confirmed'],
  ['error', 'store.evicts'],
  ['error', 'store.has_lost_sessions'],
] as const

/**
 * Wraps a log and counts its warnings and errors. The messages are a small set of names in the
 * code.
 */
export function countedLog(log: Log, metrics: Metrics): Log {
  const events = metrics.counter({
    name: 'gatehouse_log_events_total',
    help: 'Warnings and errors in the log, by message.',
    labels: ['level', 'event'],
  })
  for (const [level, event] of alarming) events.of(level, event)
  return {
    ...log,
    warn: (message, fields) => {
      events.of('warn', message).add()
      log.warn(message, fields)
    },
    error: (message, fields) => {
      events.of('error', message).add()
      log.error(message, fields)
    },
  }
}

type Counting = { readonly [E in keyof AuditEvents]?: (fields: AuditEvents[E]) => void }

/** Wraps an audit and counts its events. */
export function countedAudit(audit: Audit, metrics: Metrics): Audit {
  const counting = countingOf(metrics)
  return {
    record: (event, fields, cause) => {
      counting[event]?.(fields)
      audit.record(event, fields, cause)
    },
  }
}

function countingOf(metrics: Metrics): Counting {
  const created = metrics.counter({ name: 'gatehouse_sessions_created_total', help: 'Sessions that were created.' })
  const ended = metrics.counter({
    name: 'gatehouse_sessions_ended_total',
    help: 'Sessions that were ended, by cause. Expired sessions do not count.',
    labels: ['by'],
  })
  const failed = metrics.counter({
    name: 'gatehouse_sign_ins_failed_total',
    help: 'Sign-ins that failed after the browser returned from the provider, by reason.',
    labels: ['code'],
  })
  const logoutTokens = metrics.counter({
    name: 'gatehouse_logout_tokens_total',
    help: 'Logout Tokens, by outcome: obeyed, obeyed without a matching session, replayed, refused, or unavailable.',
    labels: ['outcome'],
  })
  for (const outcome of ['obeyed', 'obeyed_without_session', 'replayed', 'refused', 'unavailable'])
    logoutTokens.of(outcome)
  const atProvider = metrics.counter({
    name: 'gatehouse_provider_logouts_total',
    help: 'Sessions ended (end_session) and tokens revoked (revocation) at the provider, by outcome.',
    labels: ['event', 'outcome'],
  })
  const atApplications = metrics.counter({
    name: 'gatehouse_application_logouts_total',
    help: 'Ended sessions for which an application has a logout call, by outcome: done, rejected, failed, or no_cookie.',
    labels: ['upstream', 'outcome'],
  })
  const signIns = metrics.counter({
    name: 'gatehouse_application_sign_ins_total',
    help: 'Sign-ins at applications that the gateway has sent, by outcome: done, refused, or failed.',
    labels: ['upstream', 'outcome'],
  })
  const refusedTokens = metrics.counter({
    name: 'gatehouse_access_tokens_refused_total',
    help: 'Requests with an access token that were refused, by reason.',
    labels: ['upstream', 'code'],
  })
  const refusedAccounts = metrics.counter({
    name: 'gatehouse_service_accounts_refused_total',
    help: 'Requests with the credentials of a service account that were refused, by reason.',
    labels: ['upstream', 'code'],
  })
  const refusedKeys = metrics.counter({
    name: 'gatehouse_keys_refused_total',
    help: 'Requests with a key of a person that was refused, by reason.',
    labels: ['upstream', 'code'],
  })
  const keysCreated = metrics.counter({ name: 'gatehouse_keys_created_total', help: 'Keys that people made.' })
  const keysEnded = metrics.counter({
    name: 'gatehouse_keys_ended_total',
    help: 'Keys that were ended, by cause. Expired keys do not count.',
    labels: ['by'],
  })
  const signals = metrics.counter({
    name: 'gatehouse_signals_total',
    help: 'Security events of the provider, by outcome: obeyed, obeyed without a matching session, ignored, replayed, refused, or unavailable.',
    labels: ['outcome'],
  })
  return {
    'signal.obeyed': ({ matched }) => signals.of(matched > 0 ? 'obeyed' : 'obeyed_without_session').add(),
    'signal.ignored': () => signals.of('ignored').add(),
    'signal.replayed': () => signals.of('replayed').add(),
    'signal.refused': ({ code }) => signals.of(outcomeOf(code)).add(),
    'caller.refused': ({ caller, upstream, code }) => {
      if (caller === 'access_token') refusedTokens.of(upstream, code).add()
      if (caller === 'service_account') refusedAccounts.of(upstream, code).add()
      if (caller === 'key') refusedKeys.of(upstream, code).add()
    },
    'key.created': () => keysCreated.of().add(),
    'key.ended': ({ by }) => keysEnded.of(by).add(),
    'session.created': () => created.of().add(),
    'session.ended': ({ by }) => ended.of(by).add(),
    'sign_in.failed': ({ code }) => failed.of(code).add(),
    'logout_token.obeyed': (token) => logoutTokens.of(token.ended > 0 ? 'obeyed' : 'obeyed_without_session').add(),
    'logout_token.replayed': () => logoutTokens.of('replayed').add(),
    'logout_token.refused': ({ code }) => logoutTokens.of(outcomeOf(code)).add(),
    'application.logout': ({ upstream, outcome }) => atApplications.of(upstream, outcome).add(),
    'application.sign_in': ({ upstream, outcome }) => signIns.of(upstream, outcome).add(),
    'provider.end_session': ({ outcome }) => atProvider.of('end_session', outcome).add(),
    'provider.revocation': ({ outcome }) => atProvider.of('revocation', outcome).add(),
  }
}

function outcomeOf(code: string): 'unavailable' | 'refused' {
  return code.endsWith('_UNAVAILABLE') ? 'unavailable' : 'refused'
}

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
export class RequestMetrics implements RequestSink {
  readonly #requests
  readonly #refusals
  readonly #describe: (upstream: string) => UpstreamMetrics
  readonly #byUpstream = new Map<string | undefined, UpstreamMetrics>()
  readonly #streams = { event_stream: 0, tunnel: 0 }
  #active = 0

  constructor(metrics: Metrics) {
    this.#requests = metrics.counter({
      name: 'gatehouse_requests_total',
      help: 'Finished requests, by upstream (none: the gateway itself responded).',
      labels: ['upstream', 'method', 'status'],
    })
    this.#describe = describeUpstreams(metrics)
    this.#refusals = metrics.counter({
      name: 'gatehouse_refusals_total',
      help: 'Requests that the gateway rejected or aborted, by the code in the access log.',
      labels: ['code'],
    })
    metrics.gauge({
      name: 'gatehouse_active_requests',
      help: 'Requests in progress, without WebSockets and event streams.',
      merge: 'sum',
      read: () => this.#active,
    })
    metrics.gauge({
      name: 'gatehouse_open_streams',
      help: 'Open event streams and tunnels (usually WebSockets).',
      labels: ['kind'],
      merge: 'sum',
      read: () => Object.entries(this.#streams).map(([kind, open]) => [[kind], open] as const),
    })
  }

  began(): void {
    this.#active += 1
  }

  becameStream({ stream }: RequestRecord): void {
    if (stream === undefined) return
    this.#active -= 1
    this.#streams[stream] += 1
  }

  ended(record: RequestRecord): void {
    const place = this.#byUpstream.get(record.upstream) ?? this.#add(record.upstream)
    this.#requestsOf(place, record).add()
    place.bytes.add(record.bytes)
    if (record.waitedMs > 0) place.wait.observe(record.waitedMs / 1000)
    if (record.aborted) place.aborted.add()
    if (record.code !== undefined) this.#refusals.of(record.code).add()
    if (record.stream === undefined) {
      this.#active -= 1
      place.duration.observe(record.durationMs / 1000)
    } else this.#streams[record.stream] -= 1
  }

  #add(upstream: string | undefined): UpstreamMetrics {
    const made = this.#describe(upstream ?? 'none')
    this.#byUpstream.set(upstream, made)
    return made
  }

  #requestsOf(place: UpstreamMetrics, { upstream, method, status }: RequestRecord): Count {
    const statusClass = Math.floor(status / 100)
    const byClass = place.requests.get(method) ?? []
    const known = byClass[statusClass]
    if (known !== undefined) return known
    const made = this.#requests.of(upstream ?? 'none', methods.has(method) ? method : 'other', `${statusClass}xx`)
    byClass[statusClass] = made
    place.requests.set(method, byClass)
    return made
  }
}

function describeUpstreams(metrics: Metrics): (upstream: string) => UpstreamMetrics {
  const labels = ['upstream']
  const duration = metrics.histogram({
    name: 'gatehouse_request_duration_seconds',
    help: 'Time from the head of a request to the end of its response. Without WebSockets and event streams.',
    labels,
    bounds: durationBounds,
  })
  const wait = metrics.histogram({
    name: 'gatehouse_upstream_wait_seconds',
    help: 'How long requests waited for a connection to their upstream. Only those that had to wait.',
    labels,
    bounds: durationBounds,
  })
  const bytes = metrics.counter({
    name: 'gatehouse_response_content_bytes_total',
    help: 'Content sent to clients, including WebSockets.',
    labels,
  })
  const aborted = metrics.counter({
    name: 'gatehouse_requests_aborted_total',
    help: 'Requests whose client did not receive the whole response.',
    labels,
  })
  return (upstream) => ({
    requests: new Map(),
    duration: duration.of(upstream),
    wait: wait.of(upstream),
    bytes: bytes.of(upstream),
    aborted: aborted.of(upstream),
  })
}
