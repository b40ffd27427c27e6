import { GatewayError } from '../core/errors.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import type { Response } from '../http/response.ts'
import type { Audit } from '../observe/audit.ts'
import type { Pages } from '../pages/pages.ts'
import type { Provider } from '../provider/provider.ts'
import type { SessionEndings } from '../session/live/endings.ts'
import type { SessionsOfAudience } from '../session/live/live-sessions.ts'

export interface FrontchannelParts {
  readonly provider: Pick<Provider, 'config' | 'frameOrigins'>
  readonly sessions: Pick<SessionsOfAudience, 'audience'>
  readonly endings: Pick<SessionEndings, 'endPresentSid'>
  readonly audit: Audit
  readonly pages: Pick<Pages, 'sessionEnded'>
}

/** The longest `sid` that is accepted, in characters. */
const longestSid = 1_000

/**
 * `GET frontchannel-logout?iss=…&sid=…`: OpenID Connect Front-Channel Logout 1.0 §2. A frame of the
 * provider sends no cookies of the gateway, so the sessions are found by (iss, sid). The request is
 * not signed, so the store keeps nothing of it, not even a tombstone.
 * @throws {GatewayError} `ERR_LOGOUT_REQUEST` (400) for other parameters; `ERR_STORE_UNAVAILABLE`
 */
export async function frontchannelLogout(request: EndpointRequest, parts: FrontchannelParts): Promise<Response> {
  const { query, cause } = request
  const [iss, ...moreIss] = query.getAll('iss')
  const [sid, ...moreSid] = query.getAll('sid')
  const reject = (why: string): never => {
    throw new GatewayError('ERR_LOGOUT_REQUEST', `front-channel logout refused: ${why}`)
  }
  if (moreIss.length + moreSid.length > 0) return reject('a parameter is repeated')
  if (iss !== parts.provider.config.issuer) return reject('"iss" is missing or names another issuer')
  if (sid === undefined || sid === '' || sid.length > longestSid) return reject('"sid" is missing or malformed')
  const ended = await parts.endings.endPresentSid(parts.sessions.audience, sid, 'provider_frame', cause)
  if (ended.length > 0) parts.audit.record('frontchannel_logout.obeyed', { iss, sid, ended: ended.length }, cause)
  return parts.pages.sessionEnded(parts.provider.frameOrigins, request)
}

/** Records a rejected request in the audit log, and throws the error again. */
export function rejectFrontchannelLogout(
  error: GatewayError,
  { cause }: EndpointRequest,
  { audit }: Pick<FrontchannelParts, 'audit'>,
): never {
  const { code, message } = error
  if (code === 'ERR_LOGOUT_REQUEST') audit.record('frontchannel_logout.refused', { code, reason: message }, cause)
  throw error
}
