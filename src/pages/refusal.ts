import { type ErrorCode, publicAnswer } from '../core/errors.ts'
import { type Answer, ownAnswerHeaders, page } from './page.ts'

export interface RefusalOptions {
  /** A page load in a browser gets a page; everything else a problem document. */
  readonly asPage: boolean
  /** By what an operator finds the request in the log. */
  readonly requestId?: string | undefined
  /** Where the person may sign in: a link on the page, `sign_in` in the problem document. */
  readonly signIn?: string | undefined
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
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
}

/** The answer to a request that is not carried out: a page, or `application/problem+json` (RFC 9457). */
export function refusal(code: ErrorCode, options: RefusalOptions): Answer {
  const { status, text } = publicAnswer(code)
  const title = titles[status] ?? 'Error'
  const { headers, body } = options.asPage
    ? page(status, {
        title: text,
        text: `${status} ${title}`,
        link: options.signIn === undefined ? undefined : { href: options.signIn, text: 'Sign in' },
        requestId: options.requestId,
      })
    : problem(status, title, text, options)

  return { status, headers: { ...headers, ...statusHeaders(status), ...cookies(options), ...options.headers }, body }
}

function problem(status: number, title: string, detail: string, { signIn, requestId }: RefusalOptions) {
  // With "about:blank" the title is that of the status: RFC 9457 §4.2.1.
  const document = { type: 'about:blank', title, status, detail, sign_in: signIn, request_id: requestId }
  return {
    headers: { 'Content-Type': 'application/problem+json', ...ownAnswerHeaders },
    body: JSON.stringify(document) + '\n',
  }
}

function statusHeaders(status: number): Record<string, string> {
  // RFC 9110 §15.5.2 asks for a challenge. A scheme that no browser knows keeps its password dialogue closed.
  if (status === 401) return { 'WWW-Authenticate': 'Gatehouse realm="sign-in"' }
  if (status === 503) return { 'Retry-After': '5' }
  return {}
}

function cookies({ setCookies }: RefusalOptions): Record<string, string[]> {
  return setCookies === undefined || setCookies.length === 0 ? {} : { 'Set-Cookie': [...setCookies] }
}
