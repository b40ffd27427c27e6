import type { Incoming } from '../http/incoming.ts'
import { Exchange, type ExchangeInput } from './exchange.ts'
import type { Pass, ProxyParts } from './parts.ts'

/**
 * Sends an admitted request to its upstream and the response back. No header may be set on `res`
 * before, because Node.js would then merge fields of the same name.
 */
export function carry(
  incoming: Incoming,
  pass: Pass,
  parts: ProxyParts,
  { replace, content }: Pick<ExchangeInput, 'replace' | 'content'> = {},
): void {
  const { req, res, facts, record, addedFields } = incoming
  const input: ExchangeInput = { req, res, facts, record, addedFields, pass, parts, replace, content }
  // Node.js parses the chunks that arrived with the head only after this call. If a chunk or the
  // trailer section is malformed, the request must not reach the upstream.
  if (req.headers['transfer-encoding'] === undefined) begin(input)
  else setImmediate(begin, input)
}

function begin(input: ExchangeInput): void {
  const { req, res, record } = input
  // The client is gone, or another response closes the connection (RFC 9112 §9.6). The connection
  // stays open for a while, so that the client gets that response.
  if (req.socket.writableEnded || res.destroyed) {
    record.end(undefined, false)
    return
  }
  new Exchange(input).start()
}
