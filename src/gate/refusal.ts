import type { BearerChallenge } from '../core/bearer-challenge.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { unreachable } from '../core/errors.ts'
import { retryAfter } from '../core/retry-after.ts'
import type { StepUp } from '../core/step-up.ts'
import type { Admission, CallerRefused, SignInFirst } from './admission.ts'

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
    case 'preflight':
    case 'reload':
    case 'sign_out':
      return { code: 'ERR_NO_ROUTE', why: 'this URL cannot be upgraded', options: {} }
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
