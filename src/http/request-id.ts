import { randomId } from '../core/random.ts'
import type { HeaderView, TrustedProxies } from './forwarded.ts'

/** What logs, pages and headers may hold as it is. */
const wellFormed = /^[\w.:@+/=-]{1,128}$/

/**
 * The id of a request: that of a trusted proxy before us, so that one id leads through all logs, or
 * a new one. Anybody else's would let a client choose under which name it is found.
 */
export function requestId(headers: HeaderView, peer: string | undefined, trusted: TrustedProxies): string {
  const given = headers['x-request-id']
  const isTaken = typeof given === 'string' && peer !== undefined && wellFormed.test(given) && trusted.hasPeer(peer)
  return isTaken ? given : randomId()
}
