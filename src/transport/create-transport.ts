import { Http1Transport } from './http1/http1-transport.ts'
import type { Transport, TransportTarget } from './transport.ts'

/**
 * Chooses the transport for a target. All targets have our own HTTP/1.1 client. It passes the
 * responses that it does not read itself to undici (undici/unusual-response.ts).
 */
export function createTransport(target: TransportTarget): Transport {
  return new Http1Transport(target)
}
