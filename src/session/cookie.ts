import type { ApplicationCookie, SessionCookieConfig } from '../config/model.ts'
import type { SessionId } from '../core/names.ts'
import { cookieNames, expireCookie, readCookie, setCookie, type CookieAttributes } from '../http/cookies.ts'
import { sessionIdFromCookie } from './record.ts'

/** The cookie that carries the session id, and the names of the gateway's other cookies. */
export class SessionCookie {
  readonly #attributes: CookieAttributes

  constructor(config: SessionCookieConfig) {
    this.#attributes = config
  }

  /** The session id in a `Cookie` header; `undefined` when it is absent or malformed. */
  read(header: string | undefined): SessionId | undefined {
    return sessionIdFromCookie(readCookie(header, this.#attributes.name))
  }

  /** Whether the browser sent a session cookie, valid or not. */
  isIn(header: string | undefined): boolean {
    return header !== undefined && readCookie(header, this.#attributes.name) !== undefined
  }

  /** The cookie has no `Max-Age`, because the store decides when the session expires. */
  set(id: SessionId): string {
    return setCookie(this.#attributes, id)
  }

  expire(): string {
    return expireCookie(this.#attributes)
  }

  /**
   * `Set-Cookie` values for a browser whose session has ended. They expire the session cookie and
   * the cookies of the applications. `header` is the `Cookie` header of the request.
   */
  expireAll(header: string | undefined, applicationCookies: readonly ApplicationCookie[]): string[] {
    const expired = applicationCookies.flatMap((cookie) => this.#expireOfApplication(cookie, header))
    return [...(this.isIn(header) ? [this.expire()] : []), ...new Set(expired)]
  }

  #expireOfApplication({ name, paths, domains }: ApplicationCookie, header: string | undefined): string[] {
    const wasSent = cookieNames(header, name).includes(name)
    const withoutDomain = wasSent ? [this.#expireNamed(name, '/')] : []
    // A cookie with this prefix has the path "/" and no `Domain` (RFC 6265bis §4.1.3.2).
    if (name.startsWith('__Host-')) return withoutDomain
    return [
      ...withoutDomain,
      // For a browser, a cookie with a `Domain` differs from one without (RFC 6265 §5.3 step 11).
      ...(wasSent ? domains.map((domain) => this.#expireNamed(name, '/', domain)) : []),
      // The browser sends these cookies below their path only, so they are expired even if not
      // sent.
      ...paths.map((path) => this.#expireNamed(name, path)),
    ]
  }

  #expireNamed(name: string, path: string, domain?: string): string {
    const cookie = { name, secure: this.#attributes.secure, sameSite: 'lax', path } as const
    return expireCookie(domain === undefined ? cookie : { ...cookie, domain })
  }

  /**
   * The attributes of another cookie of the gateway: its name is that of the session cookie with a
   * suffix. It is always `Lax`, because the browser must send it when the provider redirects back.
   */
  withSuffix(suffix: string): CookieAttributes {
    return { name: `${this.#attributes.name}-${suffix}`, secure: this.#attributes.secure, sameSite: 'lax' }
  }

  /** Whether a cookie belongs to the gateway, so that no upstream receives it. */
  readonly isGatewayCookie = (name: string): boolean =>
    name === this.#attributes.name || name.startsWith(`${this.#attributes.name}-`)

  get isStrict(): boolean {
    return this.#attributes.sameSite === 'strict'
  }
}
