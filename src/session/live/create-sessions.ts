import type { SessionConfig } from '../../config/model/session.ts'
import type { Clock } from '../../core/clock.ts'
import type { Keyring } from '../../core/seal.ts'
import type { Audit } from '../../observe/audit.ts'
import type { Log } from '../../observe/log.ts'
import type { SessionStore } from '../store/store.ts'
import { SessionEndings } from './endings.ts'
import type { LogoutJobs } from './logout-jobs.ts'
import { NearCache } from './near-cache.ts'
import { NearCaches } from './near-caches.ts'
import type { PendingEndings } from './pending-endings.ts'
import { Sessions } from './sessions.ts'

export interface CreateSessionsParts {
  readonly store: SessionStore
  readonly keyring: Keyring
  /** See `SessionsParts`. */
  readonly audiences: readonly string[]
  readonly config: Pick<SessionConfig, 'idleTimeoutMs' | 'absoluteTimeoutMs' | 'storeOutageGraceMs'>
  readonly clock: Clock
  readonly log: Log
  readonly audit: Audit
  /** One for the whole process. */
  readonly pending: PendingEndings
  /** One for the whole process and this store. Absent: no other generation uses the store. */
  readonly caches?: NearCaches
  /** See `SessionsParts`. */
  readonly jobs?: ReadonlyMap<string, LogoutJobs> | undefined
}

/** Creates the two objects that find and end sessions. They share a new near-cache. */
export function createSessions(parts: CreateSessionsParts): {
  readonly sessions: Sessions
  readonly endings: SessionEndings
} {
  const { caches = new NearCaches(), ...others } = parts
  const near = new NearCache(others)
  const endings = new SessionEndings({ ...others, near, caches })
  return { sessions: new Sessions({ ...others, near, caches, endings }), endings }
}
