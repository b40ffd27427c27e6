import type { TokenSet } from '../../core/token-set.ts'
import type { SessionRecord, StoredSession } from './record.ts'

/**
 * What is known about who sends a request: by a session record, or by credentials of the request
 * itself.
 */
export interface PrincipalRecord extends Pick<
  SessionRecord,
  'iss' | 'sub' | 'sid' | 'claims' | 'authentication' | 'absolute_expires_at'
> {
  readonly tokens: Partial<Pick<TokenSet, 'access_token' | 'id_token'>>
}

/** Who a request is from. */
export interface Principal {
  readonly record: PrincipalRecord
  /** Absent: the request has credentials of its own. */
  readonly session?: StoredSession
}
