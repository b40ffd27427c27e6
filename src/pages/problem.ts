import { type BearerChallenge, bearerChallenge } from '../core/credentials.ts'
import { type ErrorCode, errorRow } from '../core/error-codes.ts'
import { type StepUp, stepUpParameters } from '../core/step-up.ts'
import { clearCache, cookies, ownHeaders, reasonPhrase, type Response } from '../http/response.ts'

export interface ProblemOptions {
  /** The ID of the request in the log. */
  readonly requestId: string
  /** The URL where the person can sign in. */
  readonly signIn?: string | undefined
  /** How the person has to authenticate, for the sign-in (RFC 9470). */
  readonly stepUp?: StepUp | undefined
  /** How the request can get access with an access token. */
  readonly bearer?: BearerChallenge | undefined
  /** Whether it can get access with the secret of a service account. */
  readonly offersBasic?: boolean | undefined
  /** The request has credentials of its own, so a sign-in would not help. */
  readonly isCaller?: boolean | undefined
  /** The request was not forwarded, so that a script may repeat it after the sign-in. */
  readonly mayRepeat?: boolean | undefined
  /** The name of the rule that denies access. */
  readonly rule?: string | undefined
  /** `Set-Cookie` values that expire the cookies of an ended session. */
  readonly setCookies?: readonly string[] | undefined
  /** The request has the cookie of an ended session: the browser removes what it keeps of it. */
  readonly sessionEnded?: boolean | undefined
  readonly headers?: Response['headers'] | undefined
}

/**
 * The response to a refused request for programs: `application/problem+json` (RFC 9457), in
 * English.
 */
export function problem(code: ErrorCode, options: ProblemOptions): Response {
  const { status, text: detail } = errorRow(code)
  const { signIn, mayRepeat, rule, requestId } = options
  const error = options.isCaller === true ? options.bearer?.error : isStepUp(status, options) ? insufficient : undefined
  // With "about:blank", the title is the reason phrase of the status (RFC 9457 §4.2.1).
  const title = reasonPhrase(status)
  const repeat = mayRepeat === true ? 'after_sign_in' : undefined
  const document = {
    type: 'about:blank',
    title,
    status,
    detail,
    error,
    sign_in: signIn,
    repeat,
    rule,
    request_id: requestId,
  }
  return {
    status,
    headers: { 'Content-Type': 'application/problem+json', ...ownHeaders, ...refusalHeaders(status, options) },
    body: JSON.stringify(document) + '\n',
    code,
  }
}

/** The headers of each refusal, with or without a page. */
export function refusalHeaders(
  status: number,
  {
    setCookies = [],
    sessionEnded = false,
    headers,
    ...credentials
  }: Pick<ProblemOptions, 'setCookies' | 'sessionEnded' | 'headers' | keyof Credentials>,
): Response['headers'] {
  const isNeeded = status === 401 || (status === 403 && credentials.bearer !== undefined)
  return {
    ...(isNeeded ? { 'WWW-Authenticate': challenges(credentials) } : {}),
    ...(status === 503 ? { 'Retry-After': '5' } : {}),
    ...cookies(setCookies),
    ...(sessionEnded ? clearCache : {}),
    ...headers,
  }
}

type Credentials = Pick<ProblemOptions, 'stepUp' | 'bearer' | 'offersBasic' | 'isCaller'>

/** RFC 7617 §2.1. */
const basicChallenge = 'Basic realm="account or key", charset="UTF-8"'

/**
 * The challenges for people, for access tokens and for service accounts in one field (RFC 9110
 * §11.6.1). RFC 9110 §15.5.2 requires one.
 */
function challenges({ stepUp, bearer, offersBasic = false, isCaller = false }: Credentials): string {
  const ofCallers = [
    ...(bearer === undefined ? [] : [bearerChallenge(bearer)]),
    ...(offersBasic ? [basicChallenge] : []),
  ]
  // That for tokens is the first one: clients of MCP read no other.
  return [...ofCallers, ...(isCaller && ofCallers.length > 0 ? [] : [challenge(stepUp)])].join(', ')
}

function isStepUp(status: number, { stepUp }: Pick<ProblemOptions, 'stepUp'>): boolean {
  return status === 401 && stepUp !== undefined
}

const insufficient = 'insufficient_user_authentication'

/**
 * The challenge that RFC 9110 §15.5.2 requires. Browsers open no password dialog for an unknown
 * scheme. With a step-up, its parameters are those of RFC 9470 §3.
 */
function challenge(stepUp: StepUp | undefined): string {
  const parameters = { realm: 'sign-in', ...(stepUp && { error: insufficient, ...stepUpParameters(stepUp) }) }
  const list = Object.entries(parameters).map(([name, value]) => `${name}="${value}"`)
  return `Gatehouse ${list.join(', ')}`
}
