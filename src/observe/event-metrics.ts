import type { Audit, AuditEvents } from './audit.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'

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
    help: 'Sessions ended (end_session) and refresh tokens revoked (revocation) at the provider, by outcome.',
    labels: ['event', 'outcome'],
  })
  const atApplications = metrics.counter({
    name: 'gatehouse_application_logouts_total',
    help: 'Ended sessions for which an application has a logout call, by outcome: done, rejected, failed, or no_cookie.',
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
  const signals = metrics.counter({
    name: 'gatehouse_signals_total',
    help: 'Security events of the provider, by outcome: obeyed, obeyed without a matching session, ignored, replayed, refused, or unavailable.',
    labels: ['outcome'],
  })
  const counting: Counting = {
    'signal.obeyed': ({ matched }) => signals.of(matched > 0 ? 'obeyed' : 'obeyed_without_session').add(),
    'signal.ignored': () => signals.of('ignored').add(),
    'signal.replayed': () => signals.of('replayed').add(),
    'signal.refused': ({ code }) => signals.of(/_UNAVAILABLE$/.test(code) ? 'unavailable' : 'refused').add(),
    'token.refused': ({ upstream, code }) => refusedTokens.of(upstream, code).add(),
    'service_account.refused': ({ upstream, code }) => refusedAccounts.of(upstream, code).add(),
    'session.created': () => created.of().add(),
    'session.ended': ({ by }) => ended.of(by).add(),
    'sign_in.failed': ({ code }) => failed.of(code).add(),
    'logout_token.obeyed': (token) => logoutTokens.of(token.ended > 0 ? 'obeyed' : 'obeyed_without_session').add(),
    'logout_token.replayed': () => logoutTokens.of('replayed').add(),
    'logout_token.refused': ({ code }) => logoutTokens.of(/_UNAVAILABLE$/.test(code) ? 'unavailable' : 'refused').add(),
    'application.logout': ({ upstream, outcome }) => atApplications.of(upstream, outcome).add(),
    'provider.end_session': ({ outcome }) => atProvider.of('end_session', outcome).add(),
    'provider.revocation': ({ outcome }) => atProvider.of('revocation', outcome).add(),
  }
  return {
    record: (event, fields, cause) => {
      counting[event]?.(fields)
      audit.record(event, fields, cause)
    },
  }
}
