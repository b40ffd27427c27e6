import type { ErrorCode } from '../core/error-codes.ts'
import { unreachable } from '../core/errors.ts'
import type { Admission } from './admission.ts'

/** The error of a rejected request, the reason for the log, and options of the error response. */
export function refusalOf(admission: Exclude<Admission, { kind: 'pass' }>): readonly [
  code: ErrorCode,
  why: string,
  options: {
    readonly signIn?: string
    readonly setCookies?: readonly string[]
    readonly sessionEnded?: boolean
    readonly rule?: string | undefined
  },
] {
  switch (admission.kind) {
    // A WebSocket cannot follow a redirect to a page.
    case 'sign_in':
    case 'unauthorized':
      return [
        'ERR_UNAUTHENTICATED',
        'nobody is signed in',
        { signIn: admission.location, setCookies: admission.setCookies, sessionEnded: admission.sessionEnded },
      ]
    case 'forbidden':
      return [admission.code, admission.why, { setCookies: admission.setCookies, rule: admission.rule.name }]
    case 'cross_site':
      return ['ERR_CROSS_SITE', admission.why, {}]
    // A WebSocket is neither a page load nor a logout link, nor a preflight.
    case 'preflight':
    case 'reload':
    case 'sign_out':
      return ['ERR_NO_ROUTE', 'this URL cannot be upgraded', {}]
    case 'no_route':
      return ['ERR_NO_ROUTE', admission.why, {}]
    case 'unavailable':
      return [admission.code, admission.why, {}]
    default:
      return unreachable(admission)
  }
}
