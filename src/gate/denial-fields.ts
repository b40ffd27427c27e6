import { lineText } from '../config/document/sources.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { withoutParameters } from '../observe/access-log.ts'
import type { AuditEvents } from '../observe/audit.ts'
import type { RequestRecord } from '../observe/request-record.ts'
import type { Denial } from './admission.ts'

/** The fields of the audit event about a denial. */
export function denialFields(
  { method, path, askedBy }: RequestRecord,
  code: ErrorCode,
  { upstream, rule, session, why }: Denial & { readonly why: string },
): AuditEvents['access.denied'] {
  const { iss, sub, sid } = session.record
  return {
    ...{ session: session.key, iss, sub, sid, code, reason: why },
    ...{ upstream: upstream.name, rule: rule.place === undefined ? 'default' : lineText(rule.place) },
    ...(rule.name !== undefined && { rule_name: rule.name }),
    ...{ method, path: withoutParameters(path) },
    ...(askedBy !== undefined && { asked_by: askedBy }),
  }
}
