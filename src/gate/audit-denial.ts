// The audit events about requests that a rule denies.
import { lineText } from '../config/document/sources.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { withoutParameters } from '../observe/access-log.ts'
import type { Audit, AuditEvents } from '../observe/audit.ts'
import type { RequestRecord } from '../observe/request-record.ts'
import type { StoredSession } from '../session/record/record.ts'
import type { CallerRefused, Denial, ObservedDenial } from './admission.ts'

type Reason = { readonly code: ErrorCode; readonly why: string }

/** Records the denial to a signed-in person or a caller, which replaces `request.refused`. */
export function auditDenial(audit: Audit, record: RequestRecord, denial: Denial & Reason): void {
  record.upstream = denial.upstream.name
  const { session } = denial.principal
  if (session !== undefined) {
    record.session = session.key
    return audit.record('access.denied', denialFields(record, denial, session), record.cause)
  }
  record.caller = denial.caller
  if (denial.caller === 'access_token') audit.record('token.refused', tokenFields(record, denial), record.cause)
  else audit.record('service_account.refused', accountFields(record, denial, nameOf(denial)), record.cause)
}

/** Records that the credentials of a request are not accepted, or do not suffice. */
export function auditCaller(audit: Audit, record: RequestRecord, refusal: CallerRefused): void {
  record.upstream = refusal.upstream.name
  record.caller = refusal.caller
  if (refusal.caller === 'access_token') audit.record('token.refused', tokenFields(record, refusal), record.cause)
  else audit.record('service_account.refused', accountFields(record, refusal, refusal.account), record.cause)
}

/** Records that a rule with `mode: observe` would have denied the request. */
export function auditObserved(audit: Audit, record: RequestRecord, denial: ObservedDenial): void {
  const { session } = denial.principal
  if (session !== undefined)
    return audit.record('access.would_be_denied', denialFields(record, denial, session), record.cause)
  if (denial.caller === 'access_token')
    return audit.record('token.would_be_refused', tokenFields(record, denial), record.cause)
  audit.record('service_account.would_be_refused', accountFields(record, denial, nameOf(denial)), record.cause)
}

function denialFields(
  { method, path, askedBy }: RequestRecord,
  { code, upstream, rule, why }: Denial & Reason,
  { key, record: { iss, sub, sid } }: StoredSession,
): AuditEvents['access.denied'] {
  return {
    ...{ session: key, iss, sub, sid, code, reason: why },
    ...{ upstream: upstream.name, rule: rule.place === undefined ? 'default' : lineText(rule.place) },
    ...(rule.name !== undefined && { rule_name: rule.name }),
    ...{ method, path: withoutParameters(path) },
    ...(askedBy !== undefined && { asked_by: askedBy }),
  }
}

type AboutCaller = Pick<Denial, 'upstream'> & Partial<Pick<Denial, 'principal'>> & Reason

function tokenFields(record: RequestRecord, refusal: AboutCaller): AuditEvents['token.refused'] {
  const { iss, sub, claims } = refusal.principal?.record ?? {}
  const client_id = claims?.['client_id']
  return { ...{ iss, sub }, ...callerFields(record, refusal), ...(typeof client_id === 'string' && { client_id }) }
}

function accountFields(
  record: RequestRecord,
  refusal: AboutCaller,
  account: string | undefined,
): AuditEvents['service_account.refused'] {
  return { ...(account !== undefined && { account }), ...callerFields(record, refusal) }
}

function callerFields({ method, path, askedBy }: RequestRecord, { code, why, upstream }: AboutCaller) {
  return {
    ...{ code, reason: why, upstream: upstream.name, method, path: withoutParameters(path) },
    ...(askedBy !== undefined && { asked_by: askedBy }),
  }
}

function nameOf({ principal }: Pick<Denial, 'principal'>): string {
  return String(principal.record.claims['client_id'])
}
