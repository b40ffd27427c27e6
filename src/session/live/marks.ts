import type { SessionKey } from '../../core/names.ts'
import type { SessionStore } from '../store/store.ts'

/** Why a session ends, for those who ask after it has ended. */
const reasons = {
  /** Its person has signed in elsewhere, more often than is allowed. Remembered for a day. */
  elsewhere: { name: 'ended elsewhere: ', lifetimeMs: 24 * 60 * 60 * 1000 },
  /** Its person has signed in again in the same browser, which gets its new cookie meanwhile. */
  renewal: { name: 'renewal of ', lifetimeMs: 60_000 },
} as const

type EndingReason = keyof typeof reasons

/**
 * Marks a session with the reason why it ends, for all processes, so before it ends.
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
 */
export function markEnding(key: SessionKey, why: EndingReason, store: Pick<SessionStore, 'mark'>): Promise<void> {
  return store.mark(reasons[why].name + key, reasons[why].lifetimeMs)
}

/**
 * Whether a session has ended for this reason.
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
 */
export function hasEndedBy(
  key: SessionKey,
  why: EndingReason,
  store: Pick<SessionStore, 'isMarked'>,
): Promise<boolean> {
  return store.isMarked(reasons[why].name + key)
}
