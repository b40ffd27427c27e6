import type { Clock } from '../core/clock.ts'
import type { Audit } from '../observe/audit.ts'
import type { Log } from '../observe/log.ts'
import type { OpenidProvider } from '../provider/openid-provider.ts'
import type { SessionEndings } from '../session/live/endings.ts'
import type { SessionsOfAudience } from '../session/people/sessions-of-audience.ts'
import type { SessionStore } from '../session/store/store.ts'
import type { Upkeep } from '../tokens/upkeep.ts'
import type { StreamRecord } from './stream-record.ts'

/** What the receiver of security events needs. */
export interface SignalParts {
  readonly provider: Pick<OpenidProvider, 'config' | 'verifySecurityEvent'>
  readonly store: Pick<
    SessionStore,
    'list' | 'listSid' | 'listSub' | 'takeOnce' | 'isMarked' | 'time' | 'readDocument' | 'writeDocument'
  >
  readonly sessions: Pick<SessionsOfAudience, 'audience' | 'read' | 'replace'>
  readonly endings: Pick<SessionEndings, 'endSid' | 'endSub' | 'endOne'>
  readonly upkeep: Pick<Upkeep, 'reread'>
  readonly streamRecord: Pick<StreamRecord, 'noteVerified'>
  readonly clock: Clock
  readonly log: Log
  readonly audit: Audit
}
