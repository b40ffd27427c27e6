import type { IncomingMessage, ServerResponse } from 'node:http'
import type { RequestFacts } from '../http/request-facts.ts'
import type { RequestRecord } from '../observe/request-record.ts'
import { Exchange, type ExchangeInput } from './exchange.ts'
import type { Pass, ProxyParts } from './parts.ts'

/**
 * Carries an admitted request to its upstream and the answer back. `res` must be fresh: headers set
 * on it before would make Node merge lines of the same name.
 */
export function carry(
  req: IncomingMessage,
  res: ServerResponse,
  pass: Pass,
  facts: RequestFacts,
  record: RequestRecord,
  parts: ProxyParts,
): void {
  const input = { req, res, pass, facts, record, parts }
  // Chunks that came together with the head are parsed after it, when all of this has returned:
  // what is malformed in them, and in the trailers, is not even begun with upstream.
  if (req.headers['transfer-encoding'] === undefined) begin(input)
  else setImmediate(begin, input)
}

function begin(input: ExchangeInput): void {
  const { req, res, record } = input
  // Refused meanwhile, or behind a request whose answer closes the connection (RFC 9112 §9.6): it
  // could never be answered.
  if (req.socket.writableEnded) {
    res.destroy()
    record.end(undefined, false)
    return
  }
  new Exchange(input).start()
}
