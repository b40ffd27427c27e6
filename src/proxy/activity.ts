import type { SessionKey } from '../core/names.ts'
import type { ProxyParts } from './parts.ts'

/** The least time between two reports for a session, in ms. */
const everyMs = 1_000

/**
 * Reports that bytes of an exchange have moved, so that its session does not count as idle.
 * @returns the time of the last report, for the next call; in ms of the monotonic clock
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
