import { clientOf } from '../core/addresses.ts'
import type { Caller } from '../core/credentials.ts'
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

/** An access key, without its name, because the log has no text that people enter. */
interface AboutKey extends AboutSession {
  readonly upstream: string
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

/** A request for an upstream that is refused. */
interface RefusedRequest extends Fault {
  readonly upstream: string
  readonly method: string
  readonly path: string
  readonly asked_by?: string | undefined
  readonly repeated?: number
}

interface AboutDenial extends AboutSession, RefusedRequest {
  readonly rule: string
  readonly rule_name?: string | undefined
}

/** A request with credentials of its own. */
interface AboutCaller extends Partial<Pick<Person, 'iss' | 'sub'>>, RefusedRequest {
  readonly caller: Caller
  /** The client of an accepted access token, as `iss` and `sub` are its person. */
  readonly client_id?: string | undefined
  /** The name of the service account. Absent: there is no such account. */
  readonly account?: string | undefined
  /** The subject of the client certificate. Absent: it cannot be read. */
  readonly subject?: string | undefined
  /** The name of the event in 0.1.0, which had no keys. */
  readonly formerly?: string
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
  /** A person has made a key for a program. `session` is the key of its record. */
  'key.created': AboutKey
  'key.ended': AboutKey & { readonly by: string }
  'sign_in.failed': Fault
  /**
   * A signed-in person was denied access. `rule` is the place of the rule in the configuration, or
   * `default`, and `rule_name` its name. `repeated`: the event replaces this many equal events of
   * the same session and rule, and has the fields of the last one.
   */
  'access.denied': AboutDenial
  /** As `access.denied`, but the rule is only observed, so the person had access. */
  'access.would_be_denied': AboutDenial
  /** The credentials of a request were not accepted, or a rule refused it. `repeated`: as above. */
  'caller.refused': AboutCaller
  /** As `caller.refused`, but the rule is only observed, so the request was forwarded. */
  'caller.would_be_refused': AboutCaller
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
  /** A person has entered a password for an application, or removed it: `kept`, `removed`. */
  'application.secret': AboutSession & Pick<Outcome, 'outcome'> & { readonly upstream: string }
  /**
   * The gateway has sent a sign-in to an application. `outcome`: `done`, `refused` (the password is
   * wrong), or `failed` (neither is certain).
   */
  'application.sign_in': AboutSession & Outcome & { readonly upstream: string }
  'provider.end_session': Person & Outcome
  /** `upstream` got the revoked token in exchange. Absent: it is the refresh token of a session. */
  'provider.revocation': Person & Outcome & { readonly upstream?: string }
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

/** How long equal denials are combined, in ms. */
const windowMs = 10_000
/** How many different denials are combined at a time. Further ones are recorded individually. */
const maxWatched = 1000

const denials = ['access.denied', 'access.would_be_denied', 'caller.refused', 'caller.would_be_refused'] as const
type Denial = (typeof denials)[number]

interface Watched {
  repeated: number
  readonly event: Denial
  fields: AuditEvents[Denial]
  cause: Cause | undefined
  readonly timer: NodeJS.Timeout
}

/**
 * Wraps an audit and combines repeated denials. The first denial of a session by a rule is recorded
 * at once. Those of the next ten seconds become one event with their number and the fields of the
 * last one. Refused credentials are combined in the same way, for each client.
 */
export class RepeatedDenials implements Audit {
  readonly #audit: Audit
  readonly #watched = new Map<string, Watched>()

  constructor(audit: Audit) {
    this.#audit = audit
  }

  record<E extends keyof AuditEvents>(event: E, fields: AuditEvents[E], cause?: Cause): void {
    if ((denials as readonly string[]).includes(event))
      this.#denied(event as Denial, fields as AuditEvents[Denial], cause)
    else this.#audit.record(event, fields, cause)
  }

  /** Records the denials that were combined so far. */
  flush(): void {
    for (const key of [...this.#watched.keys()]) this.#close(key)
  }

  #denied(event: Denial, fields: AuditEvents[Denial], cause: Cause | undefined): void {
    const isFull = this.#watched.size >= maxWatched
    const key = keyOf(event, fields, isFull ? undefined : cause?.client)
    const watched = this.#watched.get(key)
    if (watched !== undefined) {
      watched.repeated += 1
      watched.fields = fields
      watched.cause = cause
      return
    }
    this.#audit.record(event, fields, cause)
    // One more for each upstream, when a flood comes from many addresses.
    if (isFull && 'session' in fields) return
    const timer = setTimeout(() => this.#close(key), windowMs).unref()
    this.#watched.set(key, { repeated: 0, event, fields, cause, timer })
  }

  #close(key: string): void {
    const watched = this.#watched.get(key)
    if (watched === undefined) return
    const { repeated, event, fields, cause, timer } = watched
    clearTimeout(timer)
    this.#watched.delete(key)
    if (repeated > 0) this.#audit.record(event, { ...fields, repeated }, cause)
  }
}

/** The reason of refused credentials is no part of it, because a client can choose the text. */
function keyOf(event: Denial, fields: AuditEvents[Denial], client: string | undefined): string {
  const { upstream, code } = fields
  if ('session' in fields) return [event, fields.session, upstream, fields.rule, code].join('\n')
  const { caller, iss, sub, account, subject } = fields
  // Without a client, the flood comes from many.
  const who = client === undefined ? [] : [iss, sub, account, subject, clientOf(client)]
  return JSON.stringify([event, caller, upstream, code, ...who])
}
