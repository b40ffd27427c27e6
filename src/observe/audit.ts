import type { SessionKey } from '../core/names.ts'
import type { Log } from './log.ts'

/**
 * The version of schemas/audit-event.schema.json. A field that is added keeps it; one that goes or
 * changes its meaning does not.
 */
export const auditVersion = 1

/** The request that something was done for. */
export interface Cause {
  /** Its id, as in the access log. */
  readonly request: string
  /** The client's address. */
  readonly client: string
}

/** A person, as the provider names them. */
interface Person {
  readonly iss: string | undefined
  readonly sub: string | undefined
  readonly sid: string | undefined
}

interface AboutSession extends Person {
  readonly session: SessionKey
}

/** What was not done, and why. */
interface Fault {
  /** An error's code. */
  readonly code: string
  readonly reason: string
}

/** How a call to the provider went. */
interface Outcome {
  readonly outcome: string
  readonly reason?: string
}

/** Each event with its fields, beside those of its {@link Cause} when there is one. */
export interface AuditEvents {
  'session.created': AboutSession
  /** `by`: who or what ended it. */
  'session.ended': AboutSession & { readonly by: string }
  /** `still_there`: it had not ended meanwhile. */
  'session.refreshed': AboutSession & { readonly still_there: boolean }
  'sign_in.failed': Fault
  /**
   * Somebody who is signed in was refused. `rule` is the place of the rule in the configuration, or
   * `default`. `repeated`: this event stands for so many alike, of the same session and rule; the
   * other fields are those of the last one.
   */
  'access.denied': AboutSession &
    Fault & {
      readonly upstream: string
      readonly rule: string
      readonly method: string
      readonly path: string
      readonly repeated?: number
    }
  /** `ended`: how many sessions. */
  'logout_token.obeyed': Person & { readonly jti: string; readonly ended: number }
  'logout_token.replayed': Person & { readonly jti: string }
  'logout_token.refused': Fault
  /** `ended`: how many sessions; there are none without one. */
  'frontchannel_logout.obeyed': Pick<Person, 'iss' | 'sid'> & { readonly ended: number }
  'frontchannel_logout.refused': Fault
  'provider.end_session': Person & Outcome
  'provider.revocation': Person & Outcome
  /** Nobody read the log for a while: so many audit events are lost. */
  'audit.dropped': { readonly events: number }
}

export type AuditEvent = keyof AuditEvents

/**
 * What an auditor asks for later: who ended which session, and why. People appear as their `sub`,
 * sessions as their key.
 */
export interface Audit {
  record<E extends AuditEvent>(event: E, fields: AuditEvents[E], cause?: Cause): void
}

export function createAudit(log: Pick<Log, 'info'>): Audit {
  return {
    record: (event, fields, cause) =>
      log.info(event, { audit: true, audit_version: auditVersion, ...fields, ...cause }),
  }
}
