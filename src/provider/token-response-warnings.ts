import { decodeJwt } from 'jose'
import type { TokenEndpointResponse } from 'openid-client'
import { offlineAccess } from '../config/provider-kind.ts'
import type { Log } from '../observe/log.ts'
import { asksForRefreshToken, type RequestedAccess } from './requested-access.ts'

/**
 * Looks at token responses for what an operator has to change at the provider or in the
 * configuration, and warns of each such thing once: it holds for every sign-in alike.
 */
export class TokenResponseWarnings {
  readonly #log: Log
  readonly #told = new Set<string>()

  constructor(log: Log) {
    this.#log = log
  }

  /** Reviews the response to an authorization code. */
  reviewSignIn(response: TokenEndpointResponse, access: RequestedAccess): void {
    if (response.refresh_token === undefined && asksForRefreshToken(access))
      this.#warnOnce('provider.no_refresh_token', {
        reason:
          'a refresh token was asked for, and none came: a session that has expired at the provider goes on here until session.absolute_timeout',
        hint: 'Allow the client refresh tokens at the provider. If it gives them only with consent (OpenID Connect Core §11), set provider.authorization_params: { prompt: consent }.',
      })
    this.reviewScope(response, access)
    if (isOffline(response))
      this.#warnOnce('provider.offline_session', {
        reason:
          'the refresh token is an offline token, which Keycloak gives for the scope offline_access: no Logout Token is sent for such a session',
        hint: 'Remove offline_access from provider.scopes, and from the default client scopes of the client at the provider.',
      })
  }

  /**
   * Reviews the scopes of any token response: fewer may be granted than were asked for (RFC 6749
   * §3.3).
   */
  reviewScope({ scope }: TokenEndpointResponse, { scopes }: RequestedAccess): void {
    if (scope === undefined) return
    const granted = scope.split(' ')
    // The ID Token and the refresh token show by themselves whether these two were granted; some
    // providers leave them out.
    const missing = scopes.filter(
      (asked) => asked !== 'openid' && asked !== offlineAccess && !granted.some((one) => isCalled(one, asked)),
    )
    if (missing.length > 0)
      this.#warnOnce('provider.scope_narrowed', {
        reason: `the provider did not grant ${missing.join(', ')}: claims that belong to it may be missing`,
        hint: 'Allow the client these scopes at the provider, or remove them from provider.scopes.',
      })
  }

  #warnOnce(event: string, fields: { readonly reason: string; readonly hint: string }): void {
    const what = `${event} ${fields.reason}`
    if (this.#told.has(what)) return
    this.#told.add(what)
    this.#log.warn(event, fields)
  }
}

/**
 * Some providers call a scope by a longer name: `https://www.googleapis.com/auth/userinfo.email` is
 * `email`.
 */
function isCalled(granted: string, asked: string): boolean {
  return granted === asked || granted.endsWith(`/${asked}`) || granted.endsWith(`.${asked}`)
}

/**
 * Keycloak writes it into the refresh token (`typ`), and gives an offline session without an end a
 * life of 0 seconds.
 */
function isOffline({ refresh_token, refresh_expires_in }: TokenEndpointResponse): boolean {
  if (refresh_token === undefined) return false
  if (refresh_expires_in === 0) return true
  try {
    return decodeJwt(refresh_token)['typ'] === 'Offline'
  } catch {
    // A refresh token need not be a JWT (RFC 6749 §1.5).
    return false
  }
}
