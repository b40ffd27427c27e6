import type { ErrorCode } from '../core/error-codes.ts'
import { GatewayError } from '../core/errors.ts'
import type { Incoming, Received } from '../http/incoming.ts'
import {
  clearCache,
  cookies,
  redirect,
  type Redirect,
  type Response,
  withHeaders,
  writeResponse,
} from '../http/response.ts'
import type { PageContext, Pages } from '../pages/pages.ts'
import { isSentCompletely } from '../proxy/client-response.ts'

/** Sends a response of the gateway itself. */
export function respond(received: Received, response: Response, close = false): void {
  const { record } = received
  endRecord(received)
  record.code = response.code
  record.bytes = writeResponse(received, response, close)
}

/** Ends the record of a request when its response has ended, or its connection. */
export function endRecord({ res, record }: Received): void {
  const closed = () => record.end(res.headersSent ? res.statusCode : undefined, isSentCompletely(res))
  if (res.destroyed) return closed()
  res.once('close', closed)
}

/**
 * The sign-in endpoint checks by the `Referer` whether the browser is at `external_url`. With
 * "no-referrer" the browser would not send it (Fetch §4.4).
 */
const keepsReferer = { 'Referrer-Policy': 'same-origin' }

export function redirectToSignIn(to: Redirect): Response {
  return redirect(to, keepsReferer)
}

/**
 * A page in place of one of an ended session, which the browser removes. It leads to the sign-in.
 */
export function pageToSignIn({ location, setCookies }: Redirect, incoming: Incoming, pages: Pages): Response {
  const page = pages.redirectPage(location, pageContext(incoming))
  return withHeaders(page, { ...cookies(setCookies), ...clearCache })
}

export function pageContext({ req, record }: Received): PageContext {
  return { requestId: record.id, acceptLanguage: req.headers['accept-language'] }
}

export function codeOf(error: unknown): ErrorCode {
  return error instanceof GatewayError ? error.code : 'ERR_INTERNAL'
}
