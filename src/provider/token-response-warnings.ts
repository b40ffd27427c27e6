import { decodeJwt } from 'jose'
import type { ServerMetadata, TokenEndpointResponse } from 'openid-client'
import { offlineAccess } from '../config/provider-kind.ts'
import type { Log } from '../observe/log.ts'
import { asksForRefreshToken, type RequestedAccess } from './authorization-request.ts'
import type { IdToken } from './id-token.ts'

/**
 * Finds faults in the configuration of the provider or the gateway in token responses. Each is
 * logged once, because it affects every sign-in.
 */
export class TokenResponseWarnings {
  readonly #log: Log
  readonly #warned = new Set<string>()

  constructor(log: Log) {
    this.#log = log
  }

  reviewSignIn(response: TokenEndpointResponse, access: RequestedAccess): void {
    if (response.refresh_token === undefined && asksForRefreshToken(access))
      this.#warnOnce('provider.no_refresh_token', {
        reason:
          'the gateway requested a refresh token, but received none: a session that has expired at the provider lasts here until session.absolute_timeout',
        hint: 'Allow the client refresh tokens at the provider. If the provider issues them only with consent (OpenID Connect Core §11), set provider.authorization_params: { prompt: consent }.',
      })
    this.reviewScope(response, access)
    if (isOffline(response))
      this.#warnOnce('provider.offline_session', {
        reason:
          'the refresh token is an offline token, which Keycloak issues for the scope offline_access: the provider sends no Logout Token for such a session',
        hint: 'Remove offline_access from provider.scopes, and from the default client scopes of the client at the provider.',
      })
  }

  /** Reviews the ID Token of a sign-in. The provider announces what its Logout Tokens contain. */
  reviewIdToken({ sid }: Pick<IdToken, 'sid'>, metadata: ServerMetadata): void {
    const announced = ['backchannel_logout_session_supported', 'frontchannel_logout_session_supported'].find(
      (name) => metadata[name] === true,
    )
    if (sid !== undefined || announced === undefined) return
    this.#warnOnce('provider.no_sid', {
      reason: `the ID Token has no sid, although the provider announces ${announced}: a Logout Token cannot name one of these sessions, so one with sub ends all sessions of the person that have no sid; one without sub, and a frame of the provider, end none`,
      hint: 'Let the provider add sid to the ID Tokens of this client: backchannel_logout_session_required, or "session required".',
    })
  }

  /** Reviews the scopes, of which the provider may grant fewer (RFC 6749 §3.3). */
  reviewScope({ scope }: TokenEndpointResponse, { scopes }: RequestedAccess): void {
    if (scope === undefined) return
    // GitHub separates them with commas.
    const granted = scope.split(/[ ,]+/)
    // Some providers leave out these two. ID Token and refresh token show that they were granted.
    const missing = scopes.filter(
      (requested) =>
        requested !== 'openid' && requested !== offlineAccess && !granted.some((one) => isSameScope(one, requested)),
    )
    if (missing.length > 0)
      this.#warnOnce('provider.scope_narrowed', {
        reason: `the provider did not grant ${missing.join(', ')}: claims that belong to it may be missing`,
        hint: 'Allow the client these scopes at the provider, or remove them from provider.scopes.',
      })
  }

  #warnOnce(event: string, fields: { readonly reason: string; readonly hint: string }): void {
    const warning = `${event} ${fields.reason}`
    if (this.#warned.has(warning)) return
    this.#warned.add(warning)
    this.#log.warn(event, fields)
  }
}

/** Some providers use longer names: `https://www.googleapis.com/auth/userinfo.email` is `email`. */
function isSameScope(granted: string, requested: string): boolean {
  return granted === requested || granted.endsWith(`/${requested}`) || granted.endsWith(`.${requested}`)
}

/**
 * Whether it is an offline session of Keycloak, by the `typ` of the refresh token, or a
 * `refresh_expires_in` of 0.
 */
function isOffline({ refresh_token, refresh_expires_in }: TokenEndpointResponse): boolean {
  if (refresh_token === undefined) return false
  if (refresh_expires_in === 0) return true
  // A refresh token need not be a JWT (RFC 6749 §1.5). An error for each would take long.
  if (refresh_token.split('.', 4).length !== 3) return false
  try {
    return decodeJwt(refresh_token)['typ'] === 'Offline'
  } catch {
    return false
  }
}
