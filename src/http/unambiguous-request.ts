import type { GatewayConfig } from '../config/model/gateway.ts'
import { GatewayError } from '../core/errors.ts'
import { foldCase } from '../core/path-pattern.ts'
import type { TrustedProxies } from './forwarded.ts'
import { framingFault, type FramedRequest } from './framing.ts'
import { requestFacts, type ReceivedRequest, type RequestFacts } from './request-facts.ts'
import type { CanonicalTarget } from './request-target.ts'

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

/**
 * Whether a path is below the reserved prefix in any reading, and in any letter case. Such requests
 * never reach an upstream.
 */
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
