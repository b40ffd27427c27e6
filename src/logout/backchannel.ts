import { GatewayError } from '../core/errors.ts'
import type { EndpointRequest } from '../http/endpoint-request.ts'
import { empty, json, type Response } from '../http/response.ts'
import type { Audit } from '../observe/audit.ts'
import { pageContext, type Pages } from '../pages/pages.ts'
import type { Provider } from '../provider/provider.ts'
import type { SessionEndings } from '../session/live/endings.ts'
import type { SessionsOfAudience } from '../session/live/live-sessions.ts'

export interface BackchannelParts {
  readonly provider: Pick<Provider, 'verifyLogoutToken'>
  readonly sessions: Pick<SessionsOfAudience, 'audience'>
  readonly endings: Pick<SessionEndings, 'endSid' | 'endSub'>
  readonly audit: Audit
  readonly pages: Pick<Pages, 'refusal'>
}

/**
 * `POST backchannel-logout`: OpenID Connect Back-Channel Logout 1.0 §2.5 to §2.8. Resolves when the
 * sessions have ended on every replica, and also when there were none, or the token was used
 * before.
 * @throws {GatewayError} `ERR_LOGOUT_TOKEN_MISSING` or `ERR_LOGOUT_TOKEN_INVALID` (400), or
 * `ERR_STORE_UNAVAILABLE` or `ERR_PROVIDER_UNAVAILABLE` (503), for the provider to repeat it
 */
export async function backchannelLogout({ form, cause }: EndpointRequest, parts: BackchannelParts): Promise<Response> {
  const [logout_token, ...more] = form.getAll('logout_token')
  if (logout_token === undefined || logout_token === '')
    throw new GatewayError('ERR_LOGOUT_TOKEN_MISSING', 'the form has no logout_token')
  // RFC 6749 §3.1 forbids repeated parameters, because it is unclear which one is meant.
  if (more.length > 0) throw new GatewayError('ERR_LOGOUT_TOKEN_INVALID', 'the form has more than one logout_token')

  const { iss, jti, iat, exp, sid, sub } = await parts.provider.verifyLogoutToken(logout_token)
  const order = { audience: parts.sessions.audience, jti, issued_at: iat * 1000, exp }
  // A token with `sid` does not end all sessions of its `sub`, which may be on other devices.
  const ended =
    sid !== undefined
      ? await parts.endings.endSid(sid, { ...order, sub }, 'provider', cause)
      : await parts.endings.endSub(sub ?? '', order, 'provider', cause)
  if (ended === 'replayed') parts.audit.record('logout_token.replayed', { iss, sub, sid, jti }, cause)
  else parts.audit.record('logout_token.obeyed', { iss, sub, sid, jti, ended: ended.length }, cause)
  return empty(200)
}

/** The response to a rejected Logout Token. It has the members of an OAuth 2.0 error (§2.8). */
export function rejectLogoutToken(error: GatewayError, request: EndpointRequest, parts: BackchannelParts): Response {
  const { code, status, message, publicText } = error
  parts.audit.record('logout_token.refused', { code, reason: message }, request.cause)
  if (status === 503) return parts.pages.refusal(code, pageContext(request))
  return { ...json(status, { error: 'invalid_request', error_description: publicText }), code }
}
