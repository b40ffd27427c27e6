import type { SessionKey } from '../core/names.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import { cookies, json, type Response } from '../http/response.ts'
import type { DeviceParts } from './parts.ts'
import { proofAlgorithms } from './proof.ts'

/**
 * The header field of the response with a new session: it asks the browser for a key (§8.1). Empty
 * when sessions are not bound.
 */
export function registrationHeader(
  key: SessionKey,
  { boundCookie, challenges, prefix }: Pick<DeviceParts, 'boundCookie' | 'challenges' | 'prefix'>,
): Response['headers'] {
  if (!boundCookie.isOn) return {}
  const challenge = challenges.create(key, 'registration')
  const algorithms = proofAlgorithms.join(' ')
  return {
    'Secure-Session-Registration': `(${algorithms});path="${prefix}device-registration";challenge="${challenge}"`,
  }
}

/** The response to a proof: a new cookie, and how the browser renews it (§8.6). */
export function boundResponse(
  key: SessionKey,
  identifier: string,
  { externalUrl }: Pick<EndpointRequest, 'externalUrl'>,
  { boundCookie, prefix }: DeviceParts,
): Response {
  const { name, attributes } = boundCookie
  const instructions = {
    session_identifier: identifier,
    refresh_url: `${prefix}device-refresh`,
    scope: { origin: externalUrl.origin, include_site: false, scope_specification: [] },
    credentials: [{ type: 'cookie', name, attributes }],
    // Otherwise a link on another site would open a page without the cookie. Other requests of
    // other sites do not renew it, because they have no cookies with SameSite.
    allowed_refresh_initiators: ['*'],
  }
  return json(200, instructions, cookies([boundCookie.set(key)]))
}

/** The response when a session has ended: the browser deletes its key (§8.6). */
export function endedResponse(identifier: string): Response {
  return json(200, { session_identifier: identifier, continue: false })
}

/** The response that asks for a proof (§8.2). */
export function challengeResponse(key: SessionKey, identifier: string, { challenges }: DeviceParts): Response {
  const challenge = challenges.create(key, 'refresh')
  const headers = { 'Secure-Session-Challenge': `"${challenge}";id="${identifier}"` }
  return json(403, { code: 'ERR_DEVICE_PROOF', detail: 'Sign the challenge.' }, headers)
}
