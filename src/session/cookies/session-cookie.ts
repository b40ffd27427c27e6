import type { SessionCookieConfig } from '../../config/model/session.ts'
import type { ApplicationCookie } from '../../config/model/upstream.ts'
import { isDomainOf } from '../../core/addresses.ts'
import { BoundedMap } from '../../core/bounded-map.ts'
import type { SessionId, SessionKey } from '../../core/names.ts'
import {
  type CookieAttributes,
  cookieNames,
  cookieValues,
  frameSuffix,
  expireCookie,
  readCookie,
  setCookie,
  withoutCookies,
} from '../../http/cookies.ts'
import { sessionIdFromCookie } from '../record/record.ts'
import { CookieExpiry, domainsOf, type EndedCookies, pathsThatMatch } from './cookie-expiry.ts'

/** The suffix of the name of the cookie that proves the device of a session. See `BoundCookie`. */
export const boundSuffix = 'bound'
/** The prefixes that browsers give a meaning (RFC 6265bis §4.1.3). */
const prefixes = /^__(?:Host|Secure)-/

/** The cookie that carries the session id, and the names of the gateway's other cookies. */
export class SessionCookie {
  readonly #attributes: CookieAttributes
  /** The name without its prefix. */
  readonly #plainName: string
  /**
   * The name before `session.cookie.domain` was set or removed, because browsers may still have the
   * cookie. Absent without https: the name is the same.
   */
  readonly #formerName: string | undefined
  readonly isStrict: boolean
  /** Whether frames in pages of other sites get a session, with a cookie of its own. */
  readonly isForFrames: boolean
  readonly #ofFrames: CookieAttributes
  /** How browsers delete cookies of applications, and those that others have set. */
  readonly expiry: CookieExpiry
  readonly #ownNames: readonly { readonly whole: string; readonly start: string }[]

  constructor(config: SessionCookieConfig, { isForFrames = false } = {}) {
    this.#attributes = config
    this.#plainName = config.name.replace(prefixes, '')
    const formerPrefix = config.domain === undefined ? '__Secure-' : '__Host-'
    this.#formerName = config.secure ? `${formerPrefix}${this.#plainName}` : undefined
    const names = [config.name, ...(this.#formerName === undefined ? [] : [this.#formerName])]
    this.#ownNames = names.map((whole) => ({ whole, start: `${whole}-` }))
    this.isStrict = config.sameSite === 'strict'
    this.isForFrames = isForFrames
    this.expiry = new CookieExpiry({ secure: config.secure, isForFrames })
    this.#ofFrames = { ...this.withSuffix(frameSuffix), sameSite: 'partitioned' }
  }

  /** The session id in a `Cookie` header; `undefined` when it is absent or malformed. */
  read(header: string | undefined): SessionId | undefined {
    return sessionIdFromCookie(this.#valueIn(header))
  }

  /** Without a session cookie, that of a frame. Browsers send both only to a frame of this site. */
  #valueIn(header: string | undefined): string | undefined {
    const value = readCookie(header, this.#attributes.name)
    return value === undefined && this.isForFrames ? readCookie(header, this.#ofFrames.name) : value
  }

  /** Whether the session is that of a frame. */
  isOfFrame(header: string | undefined): boolean {
    return this.isIn(header) && readCookie(header, this.#attributes.name) === undefined
  }

  /** The cookie of a frame. The browser keeps it for the site of the tab alone. */
  setForFrame(id: SessionId): string {
    return setCookie(this.#ofFrames, id)
  }

  /**
   * The values of several session cookies of a request; empty for one or none. Another host of the
   * domain can add one (RFC 6265bis §8.6): only the prefix `__Host-` prevents that.
   */
  severalIn(header: string): readonly string[] {
    const { name } = this.#attributes
    // This is part of each request, so it does not split the header.
    const start = `${name}=`
    if (header.indexOf(start) === header.lastIndexOf(start)) return []
    const values = cookieValues(header, name)
    return values.length > 1 ? values : []
  }

  /** A `Cookie` header with one session cookie, that has this value. */
  withOnly(header: string, value: string): string {
    const { name } = this.#attributes
    const others = withoutCookies(header, (each) => each === name)
    return others === undefined ? `${name}=${value}` : `${name}=${value}; ${others}`
  }

  /**
   * `Set-Cookie` values that expire the cookies of this name that a request for `path` at `host`
   * has, and another host may have added: none with the prefix `__Host-`.
   */
  expireAdded(host: string, path: string): readonly string[] {
    const { name, domain } = this.#attributes
    if (name.startsWith('__Host-')) return []
    const domains = domainsOf(host).filter((each) => domain === undefined || isDomainOf(domain, each))
    return pathsThatMatch(path).flatMap((at) =>
      [undefined, ...domains]
        .filter((each) => at !== '/' || each !== domain)
        .flatMap((each) => this.expiry.named(name, at, each)),
    )
  }

  /** Whether the browser sent a session cookie, valid or not. */
  isIn(header: string | undefined): boolean {
    return this.#valueIn(header) !== undefined
  }

  /** The cookie has no `Max-Age`, because the store decides when the session expires. */
  set(id: SessionId): string {
    return setCookie(this.#attributes, id)
  }

  /** The session id in the cookie that {@link SessionCookie.expireFormer} expires: no access. */
  readFormer(header: string | undefined): SessionId | undefined {
    return this.#formerName === undefined ? undefined : sessionIdFromCookie(readCookie(header, this.#formerName))
  }

  /**
   * `Set-Cookie` values that expire the cookie from before `session.cookie.domain` was set or
   * removed, at this host (without port). Otherwise it would be valid again after the next change.
   */
  expireFormer(header: string | undefined, host: string): readonly string[] {
    const name = this.#formerName
    if (name === undefined || header === undefined || !cookieNames(header, name).includes(name)) return []
    // The configuration does not name the former domain any more.
    const domains = name.startsWith('__Host-') ? [undefined] : domainsOf(host)
    return domains.flatMap((domain) => this.expiry.named(name, '/', domain))
  }

  /** `Set-Cookie` values that expire the session cookie and those of applications. */
  expireAll(
    header: string | undefined,
    applicationCookies: readonly ApplicationCookie[],
    ended: EndedCookies = {},
  ): string[] {
    const own = [this.#attributes, this.withSuffix(boundSuffix), this.#ofFrames]
    return [
      ...own.filter(({ name }) => readCookie(header, name) !== undefined).map(expireCookie),
      ...this.expiry.ofApplications(header, applicationCookies, ended),
    ]
  }

  /**
   * The attributes of another cookie of the gateway, by its suffix. It is `Lax`, because the
   * browser must send it when the provider redirects back, and for one host, so that no other can
   * set it.
   */
  withSuffix(suffix: string): CookieAttributes {
    const { secure } = this.#attributes
    return { name: `${secure ? '__Host-' : ''}${this.#plainName}-${suffix}`, secure, sameSite: 'lax' }
  }

  /** The same for a cookie that all hosts need which share the session. */
  withSuffixForSite(suffix: string): CookieAttributes {
    const { name, secure, domain } = this.#attributes
    return { name: `${name}-${suffix}`, secure, sameSite: 'lax', domain }
  }

  /** Whether a cookie belongs to the gateway, now or formerly, so that no upstream receives it. */
  readonly isGatewayCookie = (name: string): boolean =>
    this.#ownNames.some(({ whole, start }) => name === whole || name.startsWith(start))
}

/** Whether a request has several session cookies of one name: see `withOneSession`. */
export function hasSeveral(
  header: string,
  realms: readonly { readonly cookie: Pick<SessionCookie, 'severalIn'> }[],
): boolean {
  return realms.some(({ cookie }) => cookie.severalIn(header).length > 0)
}

/** How long an expired cookie is remembered, in ms. */
const rememberedMs = 10_000

/**
 * The session cookies that this process has just expired or replaced. None is expired twice,
 * because the browser may have a new cookie of this name meanwhile.
 */
export class ExpiredCookies {
  readonly #keys = new BoundedMap<SessionKey, true>('expired_cookies', 10_000, { lifetimeMs: rememberedMs })

  add(key: SessionKey): void {
    this.#keys.set(key, true)
  }

  has(key: SessionKey): boolean {
    return this.#keys.has(key)
  }
}
