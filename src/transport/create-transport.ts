import { Http1Transport } from './http1/http1-transport.ts'
import type { Transport, TransportTarget } from './transport.ts'

/**
 * Creates the transport for a target: our own HTTP/1.1 client. It passes responses that are not
 * plain to undici (undici/unusual-response.ts).
 */
export function createTransport(target: TransportTarget): Transport {
  return new Http1Transport(target)
}
