import type { IncomingMessage, ServerResponse } from 'node:http'
import type { RequestFacts } from '../gate/request-facts.ts'
import type { RequestRecord } from '../observe/request-record.ts'
import { Exchange } from './exchange.ts'
import type { Pass, ProxyParts } from './parts.ts'

/**
 * Carries an admitted request to its upstream and the answer back. `res` must be fresh: headers set on it before would make
 * Node merge lines of the same name.
 */
export function carry(
  req: IncomingMessage,
  res: ServerResponse,
  pass: Pass,
  facts: RequestFacts,
  record: RequestRecord,
  parts: ProxyParts,
): void {
  // A request behind one whose answer closes the connection (RFC 9112 §9.6): it could be carried out, but never answered.
  if (req.socket.writableEnded) {
    res.destroy()
    record.end(undefined, false)
    return
  }
  new Exchange({ req, res, pass, facts, record, parts }).start()
}
