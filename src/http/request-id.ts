import { randomId } from '../core/random.ts'
import type { HeaderView, TrustedProxies } from './forwarded.ts'

/** Safe in logs, pages and headers without escaping. */
const wellFormed = /^[\w.:@+/=-]{1,128}$/

/**
 * The id of a request. A trusted proxy may send it, so that its log and ours have the same id.
 * Otherwise the id is new, because other clients must not choose the ids in the log.
 */
export function requestId(headers: HeaderView, peer: string | undefined, trusted: TrustedProxies): string {
  const given = headers['x-request-id']
  const isTrusted = typeof given === 'string' && peer !== undefined && wellFormed.test(given) && trusted.hasPeer(peer)
  return isTrusted ? given : randomId()
}
