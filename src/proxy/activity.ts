import type { SessionKey } from '../core/names.ts'
import type { ProxyParts } from './parts.ts'

/** The minimum time between two reports for a session, in ms. */
const reportEveryMs = 1_000

/**
 * Reports that bytes of an exchange have moved, so that its session does not count as idle.
 * @returns the time of the last report, which the next call needs; on the clock of `performance`
 */
export function reportActivity(
  session: SessionKey | undefined,
  reportedAt: number,
  { onActivity }: Pick<ProxyParts, 'onActivity'>,
): number {
  if (session === undefined) return reportedAt
  const now = performance.now()
  if (now - reportedAt < reportEveryMs) return reportedAt
  onActivity(session)
  return now
}
