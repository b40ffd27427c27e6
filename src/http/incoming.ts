import type { RequestRecord } from '../observe/request-record.ts'
import type { RequestFacts } from './request-facts.ts'
import type { ResponseTo } from './response.ts'

/** A request with its response, of which nothing has been verified yet. */
export interface Received extends ResponseTo {
  /** What the log, the metrics and the traces say about the request. */
  readonly record: RequestRecord
}

/** One request on its way through the gateway, with its response. */
export interface Incoming extends Received {
  readonly facts: RequestFacts
}
