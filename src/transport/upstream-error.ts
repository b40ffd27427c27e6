import type { ErrorCode } from '../core/error-codes.ts'
import { GatewayError, reason } from '../core/errors.ts'
import { ownMember } from '../core/json.ts'
import type { ResponseHandler } from './transport.ts'

const codes: Readonly<Record<string, ErrorCode>> = {
  ETIMEDOUT: 'ERR_UPSTREAM_TIMEOUT',
  UND_ERR_HEADERS_OVERFLOW: 'ERR_UPSTREAM_RESPONSE',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'ERR_UPSTREAM_RESPONSE',
  ERR_ASSERTION: 'ERR_UPSTREAM_RESPONSE',
  // Such a response is rejected when it is written to the client.
  ERR_INVALID_CHAR: 'ERR_UPSTREAM_RESPONSE',
  ERR_HTTP_INVALID_STATUS_CODE: 'ERR_UPSTREAM_RESPONSE',
  // nghttp2 has ended the connection, because of what the upstream has sent.
  ERR_HTTP2_ERROR: 'ERR_UPSTREAM_RESPONSE',
  ERR_HTTP2_TOO_MANY_INVALID_FRAMES: 'ERR_UPSTREAM_RESPONSE',
}

export const connectTimeout = new GatewayError('ERR_UPSTREAM_TIMEOUT', 'no connection within connect_timeout')
export const closedByGateway = new GatewayError(
  'ERR_UPSTREAM_UNREACHABLE',
  'the gateway has closed its connections: it stops, or it has loaded another configuration',
)
export const closedByUpstream = new GatewayError('ERR_UPSTREAM_UNREACHABLE', 'the upstream closed the connection')

/** The error of a failed exchange as the client may see it. The message is for the log. */
export function upstreamError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  return new GatewayError(codeOf(error), reason(error), { cause: error })
}

/** Fails a request that was never sent. */
export function failUnsent(handler: ResponseHandler, error: GatewayError): void {
  handler.onDone()
  handler.onError(error, 'unsent')
}

function codeOf(error: unknown): ErrorCode {
  if (!(error instanceof Error)) return 'ERR_UPSTREAM_UNREACHABLE'
  // Only some versions of undici set a code on the errors of its parser.
  if (error.name === 'HTTPParserError') return 'ERR_UPSTREAM_RESPONSE'
  if (!('code' in error) || typeof error.code !== 'string') return 'ERR_UPSTREAM_UNREACHABLE'
  // The messages are "bad response" and "bad upgrade".
  if (error.code === 'UND_ERR_SOCKET' && /^bad /.test(error.message)) return 'ERR_UPSTREAM_RESPONSE'
  return ownMember(codes, error.code) ?? 'ERR_UPSTREAM_UNREACHABLE'
}
