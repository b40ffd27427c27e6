import type { DeviceBindingConfig } from '../config/model/session.ts'
import { BoundedMap } from '../core/bounded-map.ts'
import { reason } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import type { Cause } from '../observe/audit.ts'
import type { Instruments } from '../observe/instruments.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { BoundCookieFault } from '../session/cookies/gateway-cookies.ts'
import type { SessionEndings } from '../session/live/endings.ts'
import type { StoredSession } from '../session/record/record.ts'

/** Why a browser did not renew the cookie of a bound session (§8.5). */
const skipReasons = ['unreachable', 'server_error', 'quota_exceeded'] as const
export type SkipReason = (typeof skipReasons)[number]

/** Counts what happens to bound sessions. */
export type DeviceMetrics = ReturnType<typeof createDeviceMetrics>

export function createDeviceMetrics(metrics: Metrics) {
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
    refused: (fault: BoundCookieFault) => refused.of(fault).add(),
    skipped: (reason: SkipReason) => skipped.of(reason).add(),
  }
}

/** How often one session gets the audit event, in ms. */
const auditEveryMs = 60_000
const maxAudited = 10_000

export interface MisuseParts extends Instruments {
  readonly config: Pick<DeviceBindingConfig, 'onMisuse'>
  readonly endings: Pick<SessionEndings, 'endOne'>
  readonly deviceMetrics: Pick<DeviceMetrics, 'refused' | 'skipped'>
}

/** A request with the cookie of a bound session that does not come from its device. */
export interface Misuse {
  readonly session: StoredSession
  readonly fault: BoundCookieFault
  /** They expire the bound cookie, so that the browser of the session proves its device again. */
  readonly setCookies: readonly string[]
}

/** Records requests that use the cookie of a bound session without its key. */
export class MisuseLog {
  readonly #parts: MisuseParts
  readonly #audited: BoundedMap<SessionKey, true>

  constructor(parts: MisuseParts) {
    this.#parts = parts
    this.#audited = new BoundedMap('device_misuse', maxAudited, { lifetimeMs: auditEveryMs, clock: parts.clock })
  }

  /**
   * Records the misuse, and ends the session where the configuration says so.
   * @param skipped `Secure-Session-Skipped`: why the browser could not renew its cookie. Then the
   * request may come from the device, and does not end the session.
   */
  note({ session, fault }: Omit<Misuse, 'setCookies'>, skipped: string | undefined, cause: Cause): void {
    const { config, deviceMetrics } = this.#parts
    deviceMetrics.refused(fault)
    const why = skipReasons.find((name) => skipped?.split(/[;,]/).some((part) => part.trim() === name))
    if (why !== undefined) deviceMetrics.skipped(why)
    this.#audit(session, fault, why, cause)
    if (config.onMisuse === 'end' && !(fault === 'missing' && why !== undefined)) this.#end(session.key, cause)
  }

  #audit({ key, record }: StoredSession, fault: BoundCookieFault, skipped: string | undefined, cause: Cause): void {
    if (this.#audited.has(key)) return
    this.#audited.set(key, true)
    const { iss, sub, sid } = record
    const fields = { session: key, iss, sub, sid, reason: fault, ...(skipped && { skipped }) }
    this.#parts.audit.record('session.bound_cookie_refused', fields, cause)
  }

  #end(key: SessionKey, cause: Cause): void {
    this.#parts.endings.endOne(key, 'misuse', cause).catch((error: unknown) => {
      this.#parts.log.warn('session.misused_not_ended', { session: key, reason: reason(error) })
    })
  }
}
