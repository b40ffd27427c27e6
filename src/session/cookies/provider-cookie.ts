import { expireCookie, readCookie, setCookie, type CookieAttributes } from '../../http/cookies.ts'
import type { SessionCookie } from './cookie.ts'

/** How long a choice is remembered, in seconds. */
const rememberSeconds = 365 * 24 * 60 * 60

/**
 * The cookie with the name of the provider at which a person signed in last, where people choose
 * between several. It gives access to nothing: a client may send any name. A sign-out expires it.
 */
export class ProviderCookie {
  readonly #attributes: CookieAttributes

  constructor(cookie: Pick<SessionCookie, 'withSuffixForSite'>) {
    this.#attributes = cookie.withSuffixForSite('provider')
  }

  set(provider: string): string {
    return setCookie(this.#attributes, provider, rememberSeconds)
  }

  read(cookieHeader: string | undefined): string | undefined {
    return readCookie(cookieHeader, this.#attributes.name)
  }

  /** `Set-Cookie` values that expire the cookie, if the browser has sent it. */
  expire(cookieHeader: string | undefined): readonly string[] {
    return this.read(cookieHeader) === undefined ? [] : [expireCookie(this.#attributes)]
  }
}
