import type { BearerChallenge } from '../core/bearer-challenge.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { unreachable } from '../core/errors.ts'
import type { StepUp } from '../core/step-up.ts'
import type { Admission, CallerRefused, SignInFirst } from './admission.ts'

/** The error of a rejected request, the reason for the log, and options of the error response. */
type Refusal = readonly [code: ErrorCode, why: string, options: RefusalDetails]

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

export function refusalOf(admission: Exclude<Admission, { kind: 'pass' }>): Refusal {
  switch (admission.kind) {
    // A WebSocket cannot follow a redirect to a page.
    case 'sign_in':
    case 'unauthorized':
      return signInRefusal(admission)
    case 'forbidden':
      return [
        admission.code,
        admission.why,
        {
          setCookies: admission.setCookies,
          rule: admission.rule.name,
          ...('challenge' in admission && { bearer: admission.challenge, isCaller: true }),
        },
      ]
    case 'caller_refused':
      return callerRefusal(admission)
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

function callerRefusal({ code, why, challenge, offersBasic, waitMs }: CallerRefused): Refusal {
  const headers = waitMs === undefined ? {} : { 'Retry-After': String(Math.max(1, Math.ceil(waitMs / 1000))) }
  return [code, why, { bearer: challenge, offersBasic, isCaller: true, headers }]
}

function signInRefusal(admission: SignInFirst): Refusal {
  const { location, setCookies, sessionEnded, stepUp, insufficient, challenge, offersBasic } = admission
  const options = { signIn: location, setCookies, sessionEnded, bearer: challenge, offersBasic }
  return insufficient === undefined
    ? ['ERR_UNAUTHENTICATED', 'nobody is signed in', options]
    : ['ERR_STEP_UP', insufficient, { ...options, stepUp }]
}
