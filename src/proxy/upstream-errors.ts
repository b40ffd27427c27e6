import type { UpstreamConfig } from '../config/model.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { GatewayError, reason } from '../core/errors.ts'
import { httpSchemeMismatch } from '../core/scheme-mismatch.ts'
import type { Log } from '../observe/log.ts'

const codes: Readonly<Record<string, ErrorCode>> = {
  ETIMEDOUT: 'ERR_UPSTREAM_TIMEOUT',
  UND_ERR_CONNECT_TIMEOUT: 'ERR_UPSTREAM_TIMEOUT',
  UND_ERR_HEADERS_TIMEOUT: 'ERR_UPSTREAM_TIMEOUT',
  UND_ERR_BODY_TIMEOUT: 'ERR_UPSTREAM_TIMEOUT',
  UND_ERR_HEADERS_OVERFLOW: 'ERR_UPSTREAM_ANSWER',
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'ERR_UPSTREAM_ANSWER',
  ERR_ASSERTION: 'ERR_UPSTREAM_ANSWER',
  ERR_INVALID_CHAR: 'ERR_UPSTREAM_ANSWER',
  ERR_HTTP_INVALID_STATUS_CODE: 'ERR_UPSTREAM_ANSWER',
  // undici checks method, path and headers before anything is sent.
  UND_ERR_INVALID_ARG: 'ERR_REQUEST_MALFORMED',
  UND_ERR_NOT_SUPPORTED: 'ERR_REQUEST_MALFORMED',
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: 'ERR_REQUEST_MALFORMED',
}

/**
 * What a failed exchange with an upstream means for the client; what really happened stays in the
 * message, for the log.
 */
export function upstreamError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  return new GatewayError(meaning(error), reason(error), { cause: error })
}

function meaning(error: unknown): ErrorCode {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string')
    return 'ERR_UPSTREAM_UNREACHABLE'
  if (error.code.startsWith('HPE_')) return 'ERR_UPSTREAM_ANSWER'
  if (error.code === 'UND_ERR_SOCKET' && /^bad /.test(error.message)) return 'ERR_UPSTREAM_ANSWER'
  return codes[error.code] ?? 'ERR_UPSTREAM_UNREACHABLE'
}

/** An upstream is asked what it speaks at most once in this time, in ms. */
const probeAfterMs = 60_000
const probedAt = new WeakMap<UpstreamConfig, number>()

/**
 * Logs `upstream.wrong_scheme` when an upstream speaks TLS and its `url` says http, or the reverse.
 * To be called after a failed exchange that may be due to that; asks the upstream at most once a
 * minute.
 */
export function reportWrongScheme(why: string, upstream: UpstreamConfig, log: Log): void {
  const now = performance.now()
  if (now - (probedAt.get(upstream) ?? -Infinity) < probeAfterMs) return
  probedAt.set(upstream, now)
  void httpSchemeMismatch(why, upstream.url).then((mismatch) => {
    if (mismatch === undefined) return
    const { name, url } = upstream
    log.warn('upstream.wrong_scheme', { upstream: name, url: url.origin, hint: `${mismatch} in upstreams.${name}.url` })
  })
}
