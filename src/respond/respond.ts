import type { FixedResponseConfig, OwnResponseConfig, RedirectConfig } from '../config/model/respond.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import type { PathPattern } from '../core/patterns.ts'
import type { Caching, Respond } from '../gate/admission.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import { cookies, type Response } from '../http/response.ts'

/** The gateway refuses the request, although the rule admits it. */
export interface Refused {
  readonly code: ErrorCode
  readonly headers?: Response['headers']
}

/** The response of a rule with `respond`. */
export function responseOf(admission: Respond, facts: RequestFacts): Response | Refused {
  const { path, pass, respond } = admission
  const response = respond.kind === 'redirect' ? redirectTo(respond, path, facts) : fixed(respond)
  if (!('status' in response)) return response
  const { set } = pass.upstream.responseHeaders
  return {
    ...response,
    headers: {
      'X-Content-Type-Options': 'nosniff',
      ...cacheFields(respond, pass.caching),
      ...set,
      ...response.headers,
      ...respond.headers,
      ...cookies(pass.expire?.() ?? []),
    },
  }
}

/**
 * How caches may store the response. Only a response that everybody gets may be in shared caches
 * (RFC 9111 §5.2.2.7).
 */
function cacheFields({ maxAgeMs }: OwnResponseConfig, caching: Caching): Response['headers'] {
  if (caching === 'no_store') return { 'Cache-Control': 'no-store' }
  const age = maxAgeMs === 0 ? 'no-cache' : `max-age=${Math.floor(maxAgeMs / 1000)}`
  return caching === 'anybody' ? { 'Cache-Control': age } : { 'Cache-Control': `private, ${age}`, Vary: 'Cookie' }
}

const safeOnly: Refused = { code: 'ERR_METHOD_NOT_ALLOWED', headers: { Allow: 'GET, HEAD' } }

function redirectTo({ status, to, rest }: RedirectConfig, path: PathPattern, facts: RequestFacts): Response | Refused {
  const { method, target } = facts
  // After another status, browsers would send GET in place of POST, and nobody would get the form.
  if (method !== 'GET' && method !== 'HEAD' && status !== 307 && status !== 308) return safeOnly
  const matched = rest ? target.segments.slice(path.segments.length).join('/') : ''
  const query = /[?#]/.test(to) ? '' : target.query
  const location = to + matched + query
  // The request must never choose the host (RFC 9700 §4.11). The parser is that of browsers.
  if (originOf(location) !== originOf(to)) return { code: 'ERR_REQUEST_TARGET' }
  return { status, headers: { Location: location }, body: '' }
}

/** The origin that a browser reads in a location; for a path, a stand-in for the same origin. */
function originOf(location: string): string | undefined {
  return URL.parse(location, 'https://same.invalid')?.origin
}

function fixed({ status, bytes }: FixedResponseConfig): Response {
  return { status, headers: {}, body: '', bytes }
}
