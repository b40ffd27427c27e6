import type { ApplicationCookie } from '../../config/model/upstream.ts'
import { matchesName } from '../../core/patterns.ts'
import type { KeptCookie } from '../../http/cookie-jar.ts'
import { cookieNames, expireCookie } from '../../http/cookies.ts'

/** For how many cookies of a request a response expires the places that they may have. */
const maxExpiredNames = 16
/** How many folders above a path are considered. */
const maxFolders = 8

/** The paths of cookies that a browser sends for this path (RFC 6265bis §5.1.4), shortest first. */
export function pathsThatMatch(path: string): readonly string[] {
  const folders = path.split('/').slice(1, -1).slice(0, maxFolders)
  const above = folders.flatMap((_, last) => {
    const folder = `/${folders.slice(0, last + 1).join('/')}`
    return [folder, `${folder}/`]
  })
  return [...new Set(['/', ...above, path])]
}

/**
 * The domains that a host may set cookies for: with two labels or more, and none for an address.
 */
export function domainsOf(host: string): readonly string[] {
  if (/\d$|:/.test(host)) return []
  const labels = host.split('.')
  return labels.slice(0, -1).map((_, first) => labels.slice(first).join('.'))
}

/** What is known about the cookies of applications in an ended session. */
export interface EndedCookies {
  /** Where the applications have set them. */
  readonly cookies?: readonly KeptCookie[]
  /** The path of the request that had them. */
  readonly path?: string
}

/**
 * Makes the `Set-Cookie` values by which a browser deletes cookies that the gateway has not set.
 */
export class CookieExpiry {
  readonly #secure: boolean
  readonly #isForFrames: boolean

  constructor({ secure, isForFrames }: { readonly secure: boolean; readonly isForFrames: boolean }) {
    this.#secure = secure
    this.#isForFrames = isForFrames
  }

  /** `Set-Cookie` values that expire the cookie of this name, path and domain. */
  named(name: string, path: string, domain?: string): readonly string[] {
    // In a frame of another site, browsers delete only cookies for such frames.
    const kinds = this.#isForFrames ? (['none', 'partitioned'] as const) : (['lax'] as const)
    return kinds.map((sameSite) => expireCookie({ name, secure: this.#secure, path, domain, sameSite }))
  }

  /** `Set-Cookie` values that expire the cookies of applications. */
  ofApplications(
    header: string | undefined,
    applicationCookies: readonly ApplicationCookie[],
    { cookies = [], path }: EndedCookies = {},
  ): string[] {
    const expired = [
      ...cookies.flatMap(({ name, path: at, domain, hostOnly }) => this.named(name, at, hostOnly ? undefined : domain)),
      ...applicationCookies.flatMap((cookie) => this.#ofApplication(cookie, header, path)),
    ]
    return [...new Set(expired)]
  }

  /**
   * `Set-Cookie` values that expire cookies of these names that the browser sent for `path`: at the
   * path and each folder above it, with and without `Domain`.
   * @param kept the cookies that stay
   */
  wherever(
    names: readonly string[],
    path: string,
    {
      applicationCookies,
      kept,
    }: { readonly applicationCookies: readonly ApplicationCookie[]; readonly kept: readonly KeptCookie[] },
  ): string[] {
    const domains = [undefined, ...new Set(applicationCookies.flatMap((cookie) => cookie.domains))]
    const isKept = (name: string, at: string, domain: string | undefined) =>
      kept.some(
        (cookie) =>
          cookie.name === name && cookie.path === at && (cookie.hostOnly ? undefined : cookie.domain) === domain,
      )
    return names.slice(0, maxExpiredNames).flatMap((name) => {
      const isOfHost = name.startsWith('__Host-')
      const places = (isOfHost ? ['/'] : pathsThatMatch(path)).flatMap((at) =>
        (isOfHost ? [undefined] : domains).map((domain) => [at, domain] as const),
      )
      return places.flatMap(([at, domain]) => (isKept(name, at, domain) ? [] : this.named(name, at, domain)))
    })
  }

  #ofApplication(
    { names, paths, domains }: ApplicationCookie,
    header: string | undefined,
    requestPath: string | undefined,
  ): string[] {
    const sent = new Set(cookieNames(header, '').filter((name) => matchesName(names, name)))
    const isPattern = names.parts.length > 1
    const ofSent = [...sent].slice(0, maxExpiredNames).flatMap((name) => {
      // A cookie with this prefix has the path "/" and no `Domain` (RFC 6265bis §4.1.3.2).
      if (name.startsWith('__Host-')) return this.named(name, '/')
      const matching = requestPath === undefined ? [] : pathsThatMatch(requestPath)
      return [
        ...this.named(name, '/'),
        // For a browser, a cookie with a `Domain` differs from one without (RFC 6265 §5.3 step 11).
        ...domains.flatMap((domain) => this.named(name, '/', domain)),
        ...[...matching, ...(isPattern ? paths : [])].flatMap((at) => this.named(name, at)),
      ]
    })
    if (isPattern || names.text.startsWith('__Host-')) return ofSent
    // The browser sends these cookies below their path only, so they are expired even if not sent.
    return [...ofSent, ...paths.flatMap((at) => this.named(names.text, at))]
  }
}
