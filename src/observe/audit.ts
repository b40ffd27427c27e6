import type { Log, LogFields } from './log.ts'

export type AuditEvent =
  | 'session.created'
  | 'session.ended'
  | 'session.refreshed'
  | 'sign_in.failed'
  | 'logout_token.obeyed'
  | 'logout_token.refused'
  | 'logout_token.replayed'
  | 'provider.end_session'
  | 'provider.revocation'

/** What an auditor asks for later: who ended which session, and why. People appear as their `sub`, sessions as their hash. */
export interface Audit {
  record(event: AuditEvent, fields: LogFields): void
}

export function createAudit(log: Log): Audit {
  return { record: (event, fields) => log.info(event, { audit: true, ...fields }) }
}
