import { decodeJwt } from 'jose'
import type { TokenEndpointResponse } from 'openid-client'
import type { Log } from '../observe/log.ts'

/**
 * Looks at token responses for what an operator has to change at the provider or in the configuration, and warns of each such thing
 * once: it holds for every sign-in alike.
 */
export class TokenResponseWarnings {
  readonly #log: Log
  readonly #told = new Set<string>()

  constructor(log: Log) {
    this.#log = log
  }

  /** Reviews the response to an authorization code. */
  reviewSignIn(response: TokenEndpointResponse): void {
    if (isOffline(response))
      this.#warnOnce('provider.offline_session', {
        reason:
          'the refresh token is an offline token, which Keycloak gives for the scope offline_access: no Logout Token is sent for such a session',
        hint: 'Remove offline_access from provider.scopes, and from the default client scopes of the client at the provider.',
      })
  }

  #warnOnce(event: string, fields: { readonly reason: string; readonly hint: string }): void {
    const what = `${event} ${fields.reason}`
    if (this.#told.has(what)) return
    this.#told.add(what)
    this.#log.warn(event, fields)
  }
}

/** Keycloak writes it into the refresh token (`typ`), and gives an offline session without an end a life of 0 seconds. */
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
