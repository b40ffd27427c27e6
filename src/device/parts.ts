import type { Clock } from '../core/clock.ts'
import type { Audit } from '../observe/audit.ts'
import type { Log } from '../observe/log.ts'
import type { BoundCookie } from '../session/cookies/bound-cookie.ts'
import type { SessionsOfAudience } from '../session/people/sessions-of-audience.ts'
import type { Challenges } from './challenge.ts'
import type { DeviceMetrics } from './device-metrics.ts'

/** What the endpoints for keys of devices need. */
export interface DeviceParts {
  readonly sessions: Pick<SessionsOfAudience, 'read' | 'peek' | 'replace'>
  readonly boundCookie: BoundCookie
  readonly challenges: Challenges
  /** The path of the endpoints of the provider. */
  readonly prefix: string
  readonly clock: Clock
  readonly log: Log
  readonly audit: Audit
  readonly deviceMetrics: DeviceMetrics
}
