import type { SessionKey } from '../core/names.ts'
import type { ProxyParts } from './parts.ts'

/** A session that is in use is reported at most so often, in ms. */
const everyMs = 1_000

/**
 * Reports that bytes of an exchange have moved, so that its session does not count as idle. Returns
 * when it was reported last, in ms of the monotonic clock, for the next call.
 */
export function reportActivity(
  session: SessionKey | undefined,
  reportedAt: number,
  { onActivity }: Pick<ProxyParts, 'onActivity'>,
): number {
  if (session === undefined) return reportedAt
  const now = performance.now()
  if (now - reportedAt < everyMs) return reportedAt
  onActivity(session)
  return now
}
