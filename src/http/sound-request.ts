import type { GatewayConfig } from '../config/model.ts'
import { GatewayError } from '../core/errors.ts'
import { foldCase } from '../core/path-pattern.ts'
import type { TrustedProxies } from './forwarded.ts'
import { framingFault, type FramedRequest } from './framing.ts'
import { requestFacts, type ReceivedRequest, type RequestFacts } from './request-facts.ts'
import type { CanonicalTarget } from './request-target.ts'

/**
 * The facts of a request that can be read in one way only.
 * @throws {GatewayError} when there are more than one, or when it is not for a gateway to pass on
 */
export function soundFacts(
  req: ReceivedRequest & FramedRequest,
  { limits, externalUrl }: Pick<GatewayConfig, 'limits' | 'externalUrl'>,
  trusted: TrustedProxies,
): RequestFacts {
  if (req.rawHeaders.length > 2 * limits.headerCount)
    throw new GatewayError('ERR_HEADERS_TOO_LARGE', 'more header lines than limits.header_count')
  const fault = framingFault(req)
  if (fault !== undefined) throw new GatewayError('ERR_REQUEST_MALFORMED', fault)
  // Neither is for a gateway to pass on: RFC 9110 §9.3.6, §9.3.8.
  if (req.method === 'TRACE' || req.method === 'CONNECT')
    throw new GatewayError('ERR_METHOD_UNKNOWN', `the method ${req.method}`)
  return requestFacts(req, trusted, externalUrl.host)
}

/**
 * Below the prefix nothing reaches an upstream, in whatever way the path may be read, and in
 * whatever case.
 */
export function isReserved(target: CanonicalTarget, reservedPrefix: string): boolean {
  const reserved = reservedPrefix.split('/').filter((segment) => segment !== '')
  const isBelow = (segments: readonly string[]) =>
    reserved.every((segment, index) => foldCase(segments[index] ?? '') === foldCase(segment))
  return isBelow(target.segments) || (target.otherReadings?.some(isBelow) ?? false)
}
