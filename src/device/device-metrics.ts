import type { Metrics } from '../observe/metrics.ts'
import type { BoundCookieFault } from '../session/cookies/bound-cookie.ts'

/** Why a browser did not renew the cookie of a bound session (§8.5). */
export const skipReasons = ['unreachable', 'server_error', 'quota_exceeded'] as const
export type SkipReason = (typeof skipReasons)[number]

/** Counts what happens to bound sessions. */
export interface DeviceMetrics {
  /** A session was bound. */
  bound(): void
  /** A browser has proved that it has the key. */
  refreshed(): void
  /** A request was refused. */
  refused(fault: BoundCookieFault): void
  /** A browser says why a request has no cookie of the key. */
  skipped(reason: SkipReason): void
}

export function createDeviceMetrics(metrics: Metrics): DeviceMetrics {
  const bound = metrics.counter({
    name: 'gatehouse_sessions_bound_total',
    help: 'Sessions that were bound to a key of a device.',
  })
  const refreshed = metrics.counter({
    name: 'gatehouse_bound_cookies_renewed_total',
    help: 'Bound cookies that were renewed after a proof.',
  })
  const refused = metrics.counter({
    name: 'gatehouse_bound_cookies_refused_total',
    help: 'Requests with the cookie of a bound session but without a valid bound cookie: missing, expired, or invalid.',
    labels: ['reason'],
  })
  const skipped = metrics.counter({
    name: 'gatehouse_bound_cookies_skipped_total',
    help: 'Requests whose browser says that it did not renew the bound cookie, by its reason.',
    labels: ['reason'],
  })
  for (const fault of ['missing', 'expired', 'invalid']) refused.of(fault)
  for (const reason of skipReasons) skipped.of(reason)
  return {
    bound: () => bound.of().add(),
    refreshed: () => refreshed.of().add(),
    refused: (fault) => refused.of(fault).add(),
    skipped: (reason) => skipped.of(reason).add(),
  }
}
