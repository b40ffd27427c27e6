import { GatewayError } from '../core/errors.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import type { Response } from '../http/response.ts'
import type { LogoutParts } from './parts.ts'

/** Longer ones, in characters, are none that a provider made. */
const longestSid = 1_000

/**
 * `GET frontchannel-logout?iss=…&sid=…`: OpenID Connect Front-Channel Logout 1.0 §2. The provider
 * has the browser load it in a frame, where no cookie of ours comes along, so that the sessions are
 * found by (iss, sid) alone. Nothing is signed: no tombstone is left behind, and nothing is
 * remembered of a sid that nobody has here.
 * @throws {GatewayError} `ERR_LOGOUT_REQUEST` (400) unless both are there, once, and `iss` is ours;
 * or `ERR_STORE_UNAVAILABLE`
 */
export async function frontchannelLogout(request: EndpointRequest, parts: LogoutParts): Promise<Response> {
  const { query: asked, cause } = request
  const [iss, ...moreIss] = asked.getAll('iss')
  const [sid, ...moreSid] = asked.getAll('sid')
  const refuse = (why: string): never => {
    throw new GatewayError('ERR_LOGOUT_REQUEST', `front-channel logout refused: ${why}`)
  }
  if (moreIss.length + moreSid.length > 0) return refuse('a parameter is repeated')
  if (iss !== parts.provider.config.issuer) return refuse('"iss" is missing or another issuer')
  if (sid === undefined || sid === '' || sid.length > longestSid) return refuse('"sid" is missing or malformed')
  const ended = await parts.endings.endPresentSid(sid, 'provider_frame', cause)
  if (ended.length > 0) parts.audit.record('frontchannel_logout.obeyed', { iss, sid, ended: ended.length }, cause)
  return parts.pages.sessionOver(parts.provider.frameOrigins, request)
}

/** @throws the error again, once it is in the audit log */
export function rejectFrontchannelLogout(
  error: GatewayError,
  { cause }: EndpointRequest,
  { audit }: LogoutParts,
): never {
  const { code, message } = error
  if (code === 'ERR_LOGOUT_REQUEST') audit.record('frontchannel_logout.refused', { code, reason: message }, cause)
  throw error
}
