import { randomId } from '../core/random.ts'
import type { HeaderView, TrustedProxies } from './forwarded.ts'

/** Safe in logs, pages and headers without escaping. */
const wellFormed = /^[\w.:@+/=-]{1,128}$/

/**
 * The id of a request: the one that a trusted proxy has sent, so that all logs have the same id, or
 * a new one. Other clients must not choose the id under which their requests are found.
 */
export function requestId(headers: HeaderView, peer: string | undefined, trusted: TrustedProxies): string {
  const given = headers['x-request-id']
  const isTaken = typeof given === 'string' && peer !== undefined && wellFormed.test(given) && trusted.hasPeer(peer)
  return isTaken ? given : randomId()
}
