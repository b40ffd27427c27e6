import type { SessionKey } from '../core/names.ts'
import type { Log } from './log.ts'

/**
 * The version of schemas/audit-event.schema.json. It changes when a field is removed or changes its
 * meaning, not when one is added.
 */
export const auditVersion = 1

/** The request that caused an event. */
export interface Cause {
  /** The ID of the request, as in the access log. */
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

interface KeptRequestFields {
  readonly upstream: string
  readonly path: string
  readonly bytes: number
}

/** What failed, and why. */
interface Fault {
  /** An error's code. */
  readonly code: string
  readonly reason: string
}

/** The result of a request to the provider. */
interface Outcome {
  readonly outcome: string
  readonly reason?: string
}

interface AboutDenial extends AboutSession, Fault {
  readonly upstream: string
  readonly rule: string
  readonly rule_name?: string
  readonly method: string
  readonly path: string
  readonly asked_by?: string
  readonly repeated?: number
}

/**
 * A request with an access token. The person or client is absent when the token is not accepted.
 */
interface AboutToken extends Partial<Pick<Person, 'iss' | 'sub'>>, Fault {
  readonly client_id?: string | undefined
  readonly upstream: string
  readonly method: string
  readonly path: string
  readonly asked_by?: string | undefined
  readonly repeated?: number
}

/** A request with the name and secret of a service account. */
interface AboutAccount extends Fault {
  /** Its name. Absent: there is no such account. */
  readonly account?: string | undefined
  readonly upstream: string
  readonly method: string
  readonly path: string
  readonly asked_by?: string | undefined
  readonly repeated?: number
}

/** A security event. `event` is the last segment of its type. */
interface AboutSignal extends Partial<Pick<Person, 'sub' | 'sid'>> {
  readonly iss: string
  readonly jti: string
  readonly event: string
}

/** The fields of each event, besides those of its {@link Cause}. */
export interface AuditEvents {
  'session.created': AboutSession
  /** `by`: who or what ended it. */
  'session.ended': AboutSession & { readonly by: string }
  /** `still_there`: the session did not end during the refresh. */
  'session.refreshed': AboutSession & { readonly still_there: boolean }
  /** The session is bound to a key of the browser's device. */
  'session.bound': AboutSession
  /**
   * A request has the cookie of a bound session, but does not come from its device: `missing`,
   * `expired` or `invalid` proof. `skipped`: why the browser says that it could not renew the
   * proof.
   */
  'session.bound_cookie_refused': AboutSession & { readonly reason: string; readonly skipped?: string }
  'sign_in.failed': Fault
  /**
   * A signed-in person was denied access. `rule` is the place of the rule in the configuration, or
   * `default`, and `rule_name` its name. `repeated`: the event replaces this many equal events of
   * the same session and rule, and has the fields of the last one.
   */
  'access.denied': AboutDenial
  /** As `access.denied`, but the rule is only observed, so the person had access. */
  'access.would_be_denied': AboutDenial
  /** A request with an access token was refused. */
  'token.refused': AboutToken
  /** As `token.refused`, but the rule is only observed, so the request was forwarded. */
  'token.would_be_refused': AboutToken
  /** A request of a service account was refused. `repeated` in both: as in `access.denied`. */
  'service_account.refused': AboutAccount
  /** As `service_account.refused`, but the rule is only observed. */
  'service_account.would_be_refused': AboutAccount
  /**
   * A person has sent or declined a request that was kept during the sign-in, or has signed in
   * where another person had left one, which was deleted. `bytes`: the size of its content.
   */
  'kept_request.sent': AboutSession & KeptRequestFields
  'kept_request.declined': AboutSession & KeptRequestFields
  'kept_request.discarded': AboutSession
  /** `ended`: how many sessions. */
  'logout_token.obeyed': Person & { readonly jti: string; readonly ended: number }
  'logout_token.replayed': Person & { readonly jti: string }
  'logout_token.refused': Fault
  /**
   * A security event of the provider was carried out. `matched`: how many sessions it was about.
   * See `signals`.
   */
  'signal.obeyed': AboutSignal & { readonly action: string; readonly matched: number }
  /** The event has no effect here, for this reason. */
  'signal.ignored': AboutSignal & { readonly reason: string }
  'signal.replayed': AboutSignal
  'signal.refused': Fault
  /** `ended`: how many sessions, at least one. */
  'frontchannel_logout.obeyed': Pick<Person, 'iss' | 'sid'> & { readonly ended: number }
  'frontchannel_logout.refused': Fault
  /**
   * The logout call of an upstream for an ended session. `outcome`: `done`, `rejected` (a status
   * from 400 to 499), `failed` (no response below 500 in all attempts), or `no_cookie` (no call was
   * sent).
   */
  'application.logout': AboutSession & Outcome & { readonly upstream: string; readonly status?: number }
  'provider.end_session': Person & Outcome
  'provider.revocation': Person & Outcome
  /** The number of audit events that were lost because nothing read the log. */
  'audit.dropped': { readonly events: number }
}

export type AuditEvent = keyof AuditEvents

/**
 * Records audit events: who ended which session, and why. Events name people by `sub` and sessions
 * by their key.
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
