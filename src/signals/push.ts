import { GatewayError } from '../core/errors.ts'
import { isSameSecret } from '../core/same-secret.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import { empty, json, type Response } from '../http/response.ts'
import { pageContext, type Pages } from '../pages/pages.ts'
import { carryOut } from './carry-out.ts'
import { AuthenticationFailed, errorCode } from './error-code.ts'
import type { SignalParts } from './parts.ts'

/**
 * `POST security-events`: push delivery of a security event (RFC 8935 §2). Resolves when the event
 * was carried out on every replica. The response is also 202 when no session was concerned, or when
 * the same token was received before.
 * @throws {GatewayError} `ERR_SECURITY_EVENT_INVALID` (400), or `ERR_STORE_UNAVAILABLE` or
 * `ERR_PROVIDER_UNAVAILABLE` (503), after which the transmitter may repeat the request
 */
export async function securityEvents(request: EndpointRequest, parts: SignalParts): Promise<Response> {
  const { pushSecret } = parts.provider.config.signals ?? {}
  if (pushSecret !== undefined && !isSameSecret(request.authorization ?? '', pushSecret))
    throw new AuthenticationFailed()
  if (request.securityEvent === undefined)
    throw new GatewayError('ERR_SECURITY_EVENT_INVALID', 'Content-Type is not application/secevent+jwt')
  const token = await parts.provider.verifySecurityEvent(request.securityEvent.trim())
  await carryOut(token, parts, request.cause)
  return empty(202)
}

/** The response to a rejected security event (RFC 8935 §2.3). */
export function rejectSecurityEvent(
  error: GatewayError,
  request: EndpointRequest,
  { audit, pages }: Pick<SignalParts, 'audit'> & { readonly pages: Pages },
): Response {
  const { code, status, message, publicText } = error
  audit.record('signal.refused', { code, reason: message }, request.cause)
  if (status >= 500) return pages.refusal(code, pageContext(request))
  return {
    ...json(status, { err: errorCode(error), description: publicText }, { 'Content-Language': 'en' }),
    code,
  }
}
