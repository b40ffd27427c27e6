import type { Clock } from '../core/clock.ts'
import type { Audit } from './audit.ts'
import type { Log } from './log.ts'

/** What tells a part of the gateway the time, and what it reports to. */
export interface Instruments {
  readonly clock: Clock
  readonly log: Log
  readonly audit: Audit
}
