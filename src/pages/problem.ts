import { type ErrorCode, publicAnswer } from '../core/errors.ts'
import { type Answer, clearCache, ownAnswerHeaders } from './page.ts'

export interface ProblemOptions {
  /** By what an operator finds the request in the log. */
  readonly requestId: string
  /** Where the person may sign in. */
  readonly signIn?: string | undefined
  /** `Set-Cookie` values that expire what is left of a session that has ended. */
  readonly setCookies?: readonly string[] | undefined
  readonly headers?: Readonly<Record<string, string | string[]>> | undefined
}

const titles: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  413: 'Content Too Large',
  414: 'URI Too Long',
  415: 'Unsupported Media Type',
  417: 'Expectation Failed',
  421: 'Misdirected Request',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
  508: 'Loop Detected',
}

/** The answer to a request that is not carried out, for programs: `application/problem+json` (RFC 9457), in English. */
export function problem(code: ErrorCode, options: ProblemOptions): Answer {
  const { status, text: detail } = publicAnswer(code)
  const { signIn, requestId } = options
  // With "about:blank" the title is that of the status: RFC 9457 §4.2.1.
  const title = titles[status] ?? 'Error'
  const document = { type: 'about:blank', title, status, detail, sign_in: signIn, request_id: requestId }
  return {
    status,
    headers: {
      'Content-Type': 'application/problem+json',
      ...ownAnswerHeaders,
      ...refusalHeaders(status, options),
    },
    body: JSON.stringify(document) + '\n',
  }
}

/** What stands on each refusal, whatever its content is. */
export function refusalHeaders(
  status: number,
  { setCookies = [], headers }: Pick<ProblemOptions, 'setCookies' | 'headers'>,
): Readonly<Record<string, string | string[]>> {
  return {
    // RFC 9110 §15.5.2 asks for a challenge. A scheme that no browser knows keeps its password dialogue closed.
    ...(status === 401 ? { 'WWW-Authenticate': 'Gatehouse realm="sign-in"' } : {}),
    ...(status === 503 ? { 'Retry-After': '5' } : {}),
    ...(setCookies.length > 0 ? { 'Set-Cookie': [...setCookies], ...clearCache } : {}),
    ...headers,
  }
}
