/** Everything that can go wrong with a request: its status, and all that a visitor ever reads about it. */
const codes = {
  ERR_REQUEST_MALFORMED: { status: 400, text: 'The request could not be understood.' },
  ERR_REQUEST_TARGET: { status: 400, text: 'The address of this page is malformed.' },
  ERR_METHOD_NOT_ALLOWED: { status: 405, text: 'This method is not available here.' },
  ERR_METHOD_UNKNOWN: { status: 501, text: 'This method is not supported.' },
  ERR_REQUEST_TIMEOUT: { status: 408, text: 'The request did not arrive in time.' },
  ERR_PAYLOAD_TOO_LARGE: { status: 413, text: 'The request is too large.' },
  ERR_MEDIA_TYPE: { status: 415, text: 'The request is of a kind that is not accepted here.' },
  ERR_EXPECTATION: { status: 417, text: 'The request expects what is not supported here.' },
  ERR_HEADERS_TOO_LARGE: { status: 431, text: 'The request has too many header lines.' },
  ERR_TOO_MANY_REQUESTS: { status: 429, text: 'Too many requests came from your network. Please try again shortly.' },
  ERR_UNAUTHENTICATED: { status: 401, text: 'Please sign in.' },
  ERR_FORBIDDEN: { status: 403, text: 'You are signed in, but this is not open to you.' },
  ERR_CROSS_SITE: { status: 403, text: 'This request came from another site and was not carried out.' },
  ERR_NO_ROUTE: { status: 404, text: 'There is nothing at this address.' },
  ERR_WRONG_HOST: { status: 421, text: 'Sign-in is not possible at this address.' },
  ERR_SIGN_IN_EXPIRED: { status: 400, text: 'Your sign-in could not be completed. Please start again.' },
  ERR_SIGN_IN_ISSUER: { status: 400, text: 'This link is for another sign-in service.' },
  ERR_SIGN_IN_REFUSED: { status: 403, text: 'The sign-in service did not let you in.' },
  ERR_SIGN_IN_ENDED: { status: 403, text: 'Your session was ended while you were signing in. Please start again.' },
  ERR_SIGN_IN_ANSWER: { status: 502, text: 'The sign-in service gave an answer that cannot be accepted.' },
  ERR_PROVIDER_UNAVAILABLE: { status: 503, text: 'The sign-in service cannot be reached. Please try again shortly.' },
  ERR_STORE_UNAVAILABLE: {
    status: 503,
    text: 'Sign-in and sessions are not available right now. Please try again shortly.',
  },
  ERR_LOGOUT_REQUEST: { status: 400, text: 'This does not say which session is over.' },
  ERR_LOGOUT_TOKEN_MISSING: { status: 400, text: 'logout_token is missing.' },
  ERR_LOGOUT_TOKEN_INVALID: { status: 400, text: 'logout_token is invalid.' },
  ERR_OVERLOADED: { status: 503, text: 'Too much is under way at the moment. Please try again shortly.' },
  ERR_UPSTREAM_UNREACHABLE: { status: 502, text: 'The application cannot be reached.' },
  ERR_UPSTREAM_BUSY: { status: 503, text: 'The application is busy. Please try again shortly.' },
  ERR_UPSTREAM_ANSWER: { status: 502, text: 'The application gave an answer that cannot be passed on.' },
  ERR_UPSTREAM_TIMEOUT: { status: 504, text: 'The application did not answer in time.' },
  ERR_LOOP: { status: 508, text: 'The request came back to where it had been sent from.' },
  ERR_INTERNAL: { status: 500, text: 'Something went wrong.' },
} as const

export type ErrorCode = keyof typeof codes

/** What a visitor may be told of an error code. */
export function publicAnswer(code: ErrorCode): { readonly status: number; readonly text: string } {
  return codes[code]
}

/** A request that cannot be served. `message` is for the operator's log and may name things; `publicText` is all a visitor ever sees. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError'
  readonly code: ErrorCode
  readonly status: number
  readonly publicText: string

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
    this.status = codes[code].status
    this.publicText = codes[code].text
  }
}

/** Something only the operator can mend (a taken port, a missing file). `message` says where, and what to do. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError'
}

/** For the `default` of a switch over a closed set: a new member breaks the build there. */
export function unreachable(value: never): never {
  throw new TypeError(`not a member of the set: ${String(value)}`)
}

/** The innermost message of an error and its causes, on one line, for a log: with a code where the system or a library gave one. */
export function reason(error: unknown): string {
  const texts: string[] = []
  for (let at: unknown = error; at instanceof Error && texts.length < 4; at = at.cause) {
    // Ours has a place of its own in the log, and the message says it all.
    const code = at instanceof GatewayError ? '' : codeBehind(at)
    const text = `${at.message || at.name}${code}`
    if (!texts.some((known) => known.includes(text))) texts.push(text)
    if (at instanceof AggregateError && at.errors.length > 0) texts.push(reason(at.errors[0]))
  }
  return texts.length > 0 ? texts.join(': ').replaceAll(/\s+/g, ' ') : String(error)
}

function codeBehind(error: Error): string {
  const hasOne = 'code' in error && typeof error.code === 'string' && !error.message.includes(error.code)
  return hasOne ? ` (${String(error.code)})` : ''
}
