import type { OwnResponseConfig, RedirectConfig } from '../config/model/respond.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import type { PathPattern } from '../core/patterns.ts'
import type { Caching, Respond } from '../gate/admission.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import { cookies, type Incoming, type Response } from '../http/response.ts'
import { fileResponse } from './files.ts'

/** The gateway refuses the request, although the rule admits it. */
export interface Refused {
  readonly code: ErrorCode
  readonly headers?: Response['headers']
}

/** The response of a rule with `respond`. */
export async function responseOf(admission: Respond, incoming: Incoming): Promise<Response | Refused> {
  const { pass, respond } = admission
  const response = await contentOf(admission, incoming)
  if (!('status' in response)) return response
  const { set, defaults } = pass.upstream.responseHeaders
  const cache = cacheFields(respond, pass.caching)
  const vary = [response.headers['Vary'] ?? [], cache['Vary'] ?? []].flat()
  return {
    ...response,
    headers: {
      'X-Content-Type-Options': 'nosniff',
      ...Object.fromEntries(defaults.map(({ name, value }) => [name, value])),
      ...set,
      ...response.headers,
      ...respond.headers,
      ...cache,
      ...(vary.length > 0 && { Vary: vary.join(', ') }),
      ...cookies(pass.expire?.() ?? []),
    },
  }
}

async function contentOf({ path, pass, respond }: Respond, incoming: Incoming): Promise<Response | Refused> {
  switch (respond.kind) {
    case 'redirect':
      return redirectTo(respond, path, incoming.facts)
    case 'fixed':
      return { status: respond.status, headers: {}, body: '', bytes: respond.bytes }
    case 'files': {
      if (!isLoad(incoming.facts)) return safeOnly
      const response = await fileResponse(respond, path.segments.length, incoming, pass.upstream.idleTimeoutMs)
      return response ?? { code: 'ERR_NO_ROUTE' }
    }
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

function isLoad({ method }: RequestFacts): boolean {
  return method === 'GET' || method === 'HEAD'
}

const safeOnly: Refused = { code: 'ERR_METHOD_NOT_ALLOWED', headers: { Allow: 'GET, HEAD' } }

function redirectTo({ status, to, rest }: RedirectConfig, path: PathPattern, facts: RequestFacts): Response | Refused {
  const { target } = facts
  // After another status, browsers would send GET in place of POST, and nobody would get the form.
  if (!isLoad(facts) && status !== 307 && status !== 308) return safeOnly
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
