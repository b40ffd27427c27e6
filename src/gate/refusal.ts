import { lineText } from '../config/document/diagnostics.ts'
import type { BearerChallenge } from '../core/credentials.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { unreachable } from '../core/errors.ts'
import { retryAfter } from '../core/repeating.ts'
import type { StepUp } from '../core/step-up.ts'
import type { Audit, AuditEvents } from '../observe/audit.ts'
import { type RequestRecord, withoutParameters } from '../observe/request-record.ts'
import type { StoredSession } from '../session/record/record.ts'
import type { Admission, CallerRefused, Denial, ObservedDenial, SignInFirst } from './admission.ts'

export interface Refusal {
  readonly code: ErrorCode
  /** The reason, for the log. */
  readonly why: string
  /** Options of the error response. */
  readonly options: RefusalDetails
}

interface RefusalDetails {
  readonly signIn?: string
  readonly setCookies?: readonly string[]
  readonly sessionEnded?: boolean
  readonly stepUp?: StepUp | undefined
  readonly rule?: string | undefined
  /** How the request can get access with an access token. */
  readonly bearer?: BearerChallenge | undefined
  /** Whether it can get access with the secret of a service account. */
  readonly offersBasic?: boolean | undefined
  /** The request has credentials of its own, so a sign-in would not help. */
  readonly isCaller?: boolean
  readonly headers?: Readonly<Record<string, string>>
  /** When the application is back after maintenance, in ms from now. */
  readonly retryAfterMs?: number
}

/** An admission without which the upstream gets nothing. */
export type Refused = Exclude<Admission, { kind: 'pass' }>

export function refusalOf(admission: Refused): Refusal {
  switch (admission.kind) {
    // A WebSocket cannot follow a redirect to a page.
    case 'sign_in':
    case 'unauthorized':
      return signInRefusal(admission)
    case 'forbidden': {
      const { code, why, setCookies, rule } = admission
      const ofCaller = 'challenge' in admission ? { bearer: admission.challenge, isCaller: true } : {}
      return { code, why, options: { setCookies, rule: rule.name, ...ofCaller } }
    }
    case 'caller_refused':
      return callerRefusal(admission)
    case 'cross_site':
      return { code: 'ERR_CROSS_SITE', why: admission.why, options: {} }
    // A WebSocket is neither a page load nor a logout link, nor a preflight.
    case 'respond':
    case 'preflight':
    case 'reload':
    case 'sign_out':
      return { code: 'ERR_NO_ROUTE', why: 'this URL cannot be upgraded', options: {} }
    case 'maintenance':
      return {
        code: 'ERR_MAINTENANCE',
        why: `upstreams.${admission.upstream.name} is under maintenance`,
        options: { headers: retryAfter(admission.retryAfterMs), retryAfterMs: admission.retryAfterMs },
      }
    case 'no_route':
      return { code: 'ERR_NO_ROUTE', why: admission.why, options: {} }
    case 'unavailable':
      return { code: admission.code, why: admission.why, options: {} }
    default:
      return unreachable(admission)
  }
}

function callerRefusal({ code, why, challenge, offersBasic, waitMs }: CallerRefused): Refusal {
  const headers = waitMs === undefined ? {} : retryAfter(waitMs)
  return { code, why, options: { bearer: challenge, offersBasic, isCaller: true, headers } }
}

function signInRefusal(admission: SignInFirst): Refusal {
  const { location, setCookies, sessionEnded, stepUp, insufficient, challenge, offersBasic } = admission
  const options = { signIn: location, setCookies, sessionEnded, bearer: challenge, offersBasic }
  return insufficient === undefined
    ? { code: 'ERR_UNAUTHENTICATED', why: 'nobody is signed in', options }
    : { code: 'ERR_STEP_UP', why: insufficient, options: { ...options, stepUp } }
}

// The audit events about requests that a rule denies.

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
  audit.record('caller.refused', callerFields(record, callerOf(denial)), record.cause)
}

/** Records that the credentials of a request are not accepted, or do not suffice. */
export function auditCaller(audit: Audit, record: RequestRecord, refusal: CallerRefused): void {
  record.upstream = refusal.upstream.name
  record.caller = refusal.caller
  audit.record('caller.refused', callerFields(record, refusal), record.cause)
}

/** Records that a rule with `mode: observe` would have denied the request. */
export function auditObserved(audit: Audit, record: RequestRecord, denial: ObservedDenial): void {
  const { session } = denial.principal
  if (session !== undefined)
    return audit.record('access.would_be_denied', denialFields(record, denial, session), record.cause)
  const fields = callerFields(record, callerOf(denial), 'would_be_refused')
  audit.record('caller.would_be_refused', fields, record.cause)
}

function denialFields(
  request: RequestRecord,
  denial: Denial & Reason,
  { key: session, record: { iss, sub, sid } }: StoredSession,
): AuditEvents['access.denied'] {
  const { rule } = denial
  const place = rule.place === undefined ? 'default' : lineText(rule.place)
  return { session, iss, sub, sid, rule: place, rule_name: rule.name, ...requestFields(request, denial) }
}

function requestFields(
  { method, path, askedBy }: RequestRecord,
  { code, why, upstream }: Reason & Pick<Denial, 'upstream'>,
) {
  return { code, reason: why, upstream: upstream.name, method, path: withoutParameters(path), asked_by: askedBy }
}

type AboutCaller = Pick<CallerRefused, 'caller' | 'account' | 'subject' | 'upstream'> &
  Partial<Pick<Denial, 'principal'>> &
  Reason

/** A request without a session, whose credentials are accepted, but do not suffice. */
function callerOf(denial: Denial & Reason): AboutCaller {
  const { caller = 'access_token', principal } = denial
  if (caller === 'service_account') return { ...denial, caller, account: String(principal.record.claims['client_id']) }
  return caller === 'client_certificate' ? { ...denial, caller, subject: principal.record.sub } : { ...denial, caller }
}

const formerNames = {
  access_token: 'token',
  service_account: 'service_account',
  client_certificate: 'client_certificate',
  key: undefined,
} as const

function callerFields(
  request: RequestRecord,
  refused: AboutCaller,
  outcome: 'refused' | 'would_be_refused' = 'refused',
): AuditEvents['caller.refused'] {
  const { caller, account, subject, principal } = refused
  const { iss, sub, claims } = (caller === 'access_token' && principal?.record) || {}
  const client_id = claims?.['client_id']
  const formerName = formerNames[caller]
  return {
    ...{ caller, iss, sub, account, subject },
    ...requestFields(request, refused),
    ...(typeof client_id === 'string' && { client_id }),
    ...(formerName !== undefined && { formerly: `${formerName}.${outcome}` }),
  }
}
