import type { GatewayConfig } from '../config/model/gateway.ts'
import { GatewayError } from '../core/errors.ts'
import { foldCase } from '../core/patterns.ts'
import type { TrustedProxies } from './forwarded.ts'
import { requestFacts, type ReceivedRequest, type RequestFacts } from './request-facts.ts'
import { type CanonicalTarget, isAuthority } from './request-target.ts'

/** The part of Node's `IncomingMessage` that says how a request is framed. */
export interface FramedRequest {
  readonly httpVersion: string
  readonly rawHeaders: readonly string[]
  readonly headers: {
    readonly host?: string | undefined
    readonly 'content-length'?: string | undefined
    readonly 'transfer-encoding'?: string | undefined
  }
  readonly url?: string | undefined
}

const absoluteForm = /^[a-z][a-z\d+.-]*:\/\/([^/?#]*)/i

/**
 * Why a request must be rejected: the gateway and an upstream could read its framing or its
 * authority in different ways (RFC 9112 §3.2, §6.1, §11.2). Node's parser accepts these requests.
 * Returns `undefined` for a valid request.
 */
function framingFault(req: FramedRequest): string | undefined {
  if (req.httpVersion !== '1.1' && req.httpVersion !== '1.0') return `HTTP version ${req.httpVersion}`
  let hosts = 0
  let codings = 0
  let lengths = 0
  for (let index = 0; index < req.rawHeaders.length; index += 2) {
    const name = req.rawHeaders[index] as string
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1
    else if (name.length === 17 && name.toLowerCase() === 'transfer-encoding') codings += 1
    else if (name.length === 14 && name.toLowerCase() === 'content-length') lengths += 1
  }
  if (hosts > 1) return 'more than one Host'
  // RFC 9112 §3.2 requires it in HTTP/1.1. Health checks of load balancers use HTTP/1.0 without it.
  if (hosts === 0 && req.httpVersion === '1.1') return 'no Host'
  if (hosts === 1 && !isAuthority(req.headers.host ?? '')) return 'a malformed Host'
  // Both must be equal (RFC 9112 §3.2), because a server may route by either of them.
  const authority = absoluteForm.exec(req.url ?? '')?.[1]
  if (hosts === 1 && authority !== undefined && authority.toLowerCase() !== req.headers.host?.toLowerCase())
    return 'a Host that differs from the request target'
  if (codings + lengths > 1) return 'more than one of Content-Length and Transfer-Encoding'
  // Servers read a number beyond the precision of a double in different ways.
  if (lengths === 1 && !/^\d{1,15}$/.test(req.headers['content-length'] ?? ''))
    return 'a Content-Length that is too long'
  if (codings === 1 && req.httpVersion === '1.0') return 'Transfer-Encoding in HTTP/1.0'
  if (codings === 1 && req.headers['transfer-encoding']?.toLowerCase() !== 'chunked')
    return 'a transfer coding other than chunked'
  return undefined
}

/**
 * The facts of a request that can be interpreted in only one way.
 * @throws {GatewayError} when the request is ambiguous, or has a method that a gateway does not
 * forward
 */
export function unambiguousFacts(
  req: ReceivedRequest & FramedRequest,
  { limits, externalUrl }: Pick<GatewayConfig, 'limits' | 'externalUrl'>,
  trusted: TrustedProxies,
): RequestFacts {
  requireUnambiguous(req, limits)
  requireForwardable(req.method)
  return requestFacts(req, trusted, externalUrl.host)
}

/**
 * @throws {GatewayError} when the end of the request, or its host, can be read in two ways, or when
 * it has too many header fields
 */
export function requireUnambiguous(req: FramedRequest, limits: Pick<GatewayConfig['limits'], 'headerCount'>): void {
  if (req.rawHeaders.length > 2 * limits.headerCount)
    throw new GatewayError('ERR_HEADERS_TOO_LARGE', 'more header fields than limits.header_count')
  const fault = framingFault(req)
  if (fault !== undefined) throw new GatewayError('ERR_REQUEST_MALFORMED', fault)
}

/** Whether a path is below the reserved prefix in any reading and case. No upstream gets it. */
export function isReserved(target: CanonicalTarget, reservedPrefix: string): boolean {
  const reserved = segmentsOf(reservedPrefix)
  if (isBelow(reserved, target.segments)) return true
  return target.otherReadings !== undefined && target.otherReadings.some((segments) => isBelow(reserved, segments))
}

function isBelow(reserved: readonly string[], segments: readonly string[]): boolean {
  for (let index = 0; index < reserved.length; index++)
    if (foldCase(segments[index] ?? '') !== reserved[index]) return false
  return true
}

/** The folded segments of each reserved prefix. A gateway has one. */
const segments = new Map<string, readonly string[]>()

function segmentsOf(prefix: string): readonly string[] {
  const known = segments.get(prefix)
  if (known !== undefined) return known
  const folded = prefix.split('/').flatMap((segment) => (segment === '' ? [] : foldCase(segment)))
  segments.set(prefix, folded)
  return folded
}

/**
 * A gateway does not forward `TRACE` and `CONNECT` (RFC 9110 §9.3.6, §9.3.8).
 * @throws {GatewayError} ERR_METHOD_UNKNOWN
 */
export function requireForwardable(method: string | undefined): void {
  if (method === 'TRACE' || method === 'CONNECT')
    throw new GatewayError('ERR_METHOD_UNKNOWN', `the method ${method} is not supported`)
}
