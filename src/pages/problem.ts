import { type ErrorCode, errorRow } from '../core/error-codes.ts'
import { clearCache, cookies, ownHeaders, reasonPhrase, type Response } from '../http/response.ts'

export interface ProblemOptions {
  /** The ID of the request in the log. */
  readonly requestId: string
  /** The URL where the person can sign in. */
  readonly signIn?: string | undefined
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
  // With "about:blank", the title is the reason phrase of the status (RFC 9457 §4.2.1).
  const title = reasonPhrase(status)
  const repeat = mayRepeat === true ? 'after_sign_in' : undefined
  const document = { type: 'about:blank', title, status, detail, sign_in: signIn, repeat, rule, request_id: requestId }
  return {
    status,
    headers: {
      'Content-Type': 'application/problem+json',
      ...ownHeaders,
      ...refusalHeaders(status, options),
    },
    body: JSON.stringify(document) + '\n',
    code,
  }
}

/** The headers of each refusal, with or without a page. */
export function refusalHeaders(
  status: number,
  { setCookies = [], sessionEnded = false, headers }: Pick<ProblemOptions, 'setCookies' | 'sessionEnded' | 'headers'>,
): Response['headers'] {
  return {
    // RFC 9110 §15.5.2 requires a challenge. Browsers open no password dialog for an unknown
    // scheme.
    ...(status === 401 ? { 'WWW-Authenticate': 'Gatehouse realm="sign-in"' } : {}),
    ...(status === 503 ? { 'Retry-After': '5' } : {}),
    ...cookies(setCookies),
    ...(sessionEnded ? clearCache : {}),
    ...headers,
  }
}
