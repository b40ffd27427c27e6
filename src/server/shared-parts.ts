import type { Clock } from '../core/clock.ts'
import type { MemoryBudget } from '../limits/memory-budget.ts'
import type { RejectedClients } from '../limits/rejected-clients.ts'
import type { Audit } from '../observe/audit.ts'
import type { Log } from '../observe/log.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { RequestSink } from '../observe/request-record.ts'
import type { Tracer } from '../observe/tracing.ts'
import type { LiveStreams } from '../proxy/live-streams.ts'
import type { NearCaches } from '../session/live/near-caches.ts'
import type { PendingEndings } from '../session/live/pending-endings.ts'
import type { SessionStore } from '../session/store/store.ts'
import type { AccountLimits } from '../tokens/service-accounts.ts'
import type { TokenEndings } from '../tokens/token-endings.ts'
import type { StreamSessions } from './watch-live-sessions.ts'

/** What all generations share: it outlives a reload. */
export interface SharedParts {
  readonly store: SessionStore
  readonly pending: PendingEndings
  readonly streamSessions: StreamSessions
  readonly caches: NearCaches
  readonly live: LiveStreams
  readonly tokenEndings: TokenEndings
  readonly accountLimits: AccountLimits
  readonly rejectedClients: RejectedClients
  readonly memory: Pick<MemoryBudget, 'admits'>
  readonly log: Log
  readonly clock: Clock
  readonly audit: Audit
  readonly sink: RequestSink
  readonly tracer: Tracer | undefined
  readonly metrics: Metrics
}
