import type { SessionCookieConfig } from '../../config/model/session.ts'
import type { ApplicationCookie } from '../../config/model/upstream.ts'
import { isDomainOf } from '../../core/addresses.ts'
import { BoundedMap } from '../../core/bounded-map.ts'
import { GatewayError } from '../../core/errors.ts'
import type { SessionId, SessionKey } from '../../core/names.ts'
import { matchesName } from '../../core/patterns.ts'
import type { KeptCookie } from '../../http/cookie-jar.ts'
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
import type { SessionsOfAudience } from '../live/live-sessions.ts'
import { sessionIdFromCookie, sessionKey, type StoredSession } from '../record/record.ts'

/** The suffix of the name of the cookie that proves the device of a session. See `BoundCookie`. */
export const boundSuffix = 'bound'
/** The prefixes that browsers give a meaning (RFC 6265bis §4.1.3). */
const prefixes = /^__(?:Host|Secure)-/

/** For how many cookies of a request a response expires the places that they may have. */
const maxExpiredNames = 16
/** How many folders above a path are considered. */
const maxFolders = 8

/** The paths of cookies that a browser sends for this path (RFC 6265bis §5.1.4), shortest first. */
function pathsThatMatch(path: string): readonly string[] {
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
function domainsOf(host: string): readonly string[] {
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
  /** Whether frames in pages of other sites get a session, with a cookie of its own. */
  readonly isForFrames: boolean
  readonly #ofFrames: CookieAttributes
  readonly #ownNames: readonly { readonly whole: string; readonly start: string }[]

  constructor(config: SessionCookieConfig, { isForFrames = false } = {}) {
    const { domain, ...attributes } = config
    this.#attributes = { ...attributes, ...(domain !== undefined && { domain }) }
    this.#plainName = config.name.replace(prefixes, '')
    const formerPrefix = config.domain === undefined ? '__Secure-' : '__Host-'
    this.#formerName = config.secure ? `${formerPrefix}${this.#plainName}` : undefined
    const names = [config.name, ...(this.#formerName === undefined ? [] : [this.#formerName])]
    this.#ownNames = names.map((whole) => ({ whole, start: `${whole}-` }))
    this.isForFrames = isForFrames
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
  severalIn(header: string | undefined): readonly string[] {
    const { name } = this.#attributes
    if (header === undefined) return []
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
        .flatMap((each) => this.#expireNamed(name, at, each)),
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
    return domains.flatMap((domain) => this.#expireNamed(name, '/', domain))
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
      ...this.expireApplications(header, applicationCookies, ended),
    ]
  }

  /** The same without the session cookie. */
  expireApplications(
    header: string | undefined,
    applicationCookies: readonly ApplicationCookie[],
    { cookies = [], path }: EndedCookies = {},
  ): string[] {
    const expired = [
      ...cookies.flatMap((cookie) => this.#expireAt(cookie)),
      ...applicationCookies.flatMap((cookie) => this.#expireOfApplication(cookie, header, path)),
    ]
    return [...new Set(expired)]
  }

  /**
   * `Set-Cookie` values that expire cookies of these names that the browser sent for `path`: at the
   * path and each folder above it, with and without `Domain`.
   * @param kept the cookies that stay
   */
  expireWherever(
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
    return names
      .slice(0, maxExpiredNames)
      .flatMap((name) =>
        (name.startsWith('__Host-') ? ['/'] : pathsThatMatch(path)).flatMap((at) =>
          (name.startsWith('__Host-') ? [undefined] : domains)
            .filter((domain) => !isKept(name, at, domain))
            .flatMap((domain) => this.#expireNamed(name, at, domain)),
        ),
      )
  }

  #expireAt({ name, path, domain, hostOnly }: KeptCookie): readonly string[] {
    return this.#expireNamed(name, path, hostOnly ? undefined : domain)
  }

  #expireOfApplication(
    { names, paths, domains }: ApplicationCookie,
    header: string | undefined,
    requestPath: string | undefined,
  ): string[] {
    const sent = new Set(cookieNames(header, '').filter((name) => matchesName(names, name)))
    const isPattern = names.parts.length > 1
    const ofSent = [...sent].slice(0, maxExpiredNames).flatMap((name) => [
      ...this.#expireNamed(name, '/'),
      // A cookie with this prefix has the path "/" and no `Domain` (RFC 6265bis §4.1.3.2).
      ...(name.startsWith('__Host-')
        ? []
        : [
            // For a browser, a cookie with a `Domain` differs from one without (RFC 6265 §5.3 step
            // 11).
            ...domains.flatMap((domain) => this.#expireNamed(name, '/', domain)),
            ...(requestPath === undefined ? [] : pathsThatMatch(requestPath)).flatMap((at) =>
              this.#expireNamed(name, at),
            ),
            ...(isPattern ? paths.flatMap((at) => this.#expireNamed(name, at)) : []),
          ]),
    ])
    if (isPattern || names.text.startsWith('__Host-')) return ofSent
    // The browser sends these cookies below their path only, so they are expired even if not sent.
    return [...ofSent, ...paths.flatMap((at) => this.#expireNamed(names.text, at))]
  }

  #expireNamed(name: string, path: string, domain?: string): readonly string[] {
    // In a frame of another site, browsers delete only cookies for such frames.
    const kinds = this.isForFrames ? (['none', 'partitioned'] as const) : (['lax'] as const)
    const cookie = { name, secure: this.#attributes.secure, path, ...(domain !== undefined && { domain }) }
    return kinds.map((sameSite) => expireCookie({ ...cookie, sameSite }))
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
    return { name: `${name}-${suffix}`, secure, sameSite: 'lax', ...(domain !== undefined && { domain }) }
  }

  /** Whether a cookie belongs to the gateway, now or formerly, so that no upstream receives it. */
  readonly isGatewayCookie = (name: string): boolean =>
    this.#ownNames.some(({ whole, start }) => name === whole || name.startsWith(start))

  get isStrict(): boolean {
    return this.#attributes.sameSite === 'strict'
  }
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

/** How many session cookies of a request are compared, and how many of them are looked up. */
const maxCompared = 64
const maxLookedUp = 8

/** A request has the session cookies of two people. */
export class SeveralSessionsError extends GatewayError {
  /** `Set-Cookie` values that expire the cookies which another host may have added. */
  readonly setCookies: readonly string[]

  constructor(setCookies: readonly string[]) {
    super('ERR_SESSION_AMBIGUOUS', 'the request has session cookies of two people')
    this.setCookies = setCookies
  }
}

interface CookieOfProvider {
  readonly cookie: SessionCookie
  readonly sessions: Pick<SessionsOfAudience, 'peek' | 'findInMemory'>
}

/** A request with its `Cookie` header. `host` is without port, `path` without query. */
interface RequestWithCookies {
  readonly cookie: string | undefined
  readonly host: string
  readonly path: string
}

/** Whether a request has several session cookies of one name: see {@link withOneSession}. */
export function hasSeveral(header: string | undefined, realms: readonly CookieOfProvider[]): boolean {
  return realms.some(({ cookie }) => cookie.severalIn(header).length > 0)
}

/** A `Cookie` header with one session cookie of each name. */
interface OneSession {
  readonly cookie: string | undefined
  /** `Set-Cookie` values that expire the cookies beside that of a live session. */
  readonly expireAdded: readonly string[]
}

/**
 * Chooses the session cookie of a live session. One of the same name that another host has added
 * must neither hide the session of the person nor take its place.
 * @throws {SeveralSessionsError} when there are live sessions of different people
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
 */
export async function withOneSession(
  { cookie: header, host, path }: RequestWithCookies,
  realms: readonly CookieOfProvider[],
): Promise<OneSession> {
  let one = header
  const expireAdded: string[] = []
  for (const { cookie, sessions } of realms) {
    const values = cookie.severalIn(one)
    if (one === undefined || values.length === 0) continue
    const found: (readonly [value: string, session: StoredSession])[] = []
    for (const id of candidates(values, sessions)) {
      const session = await sessions.peek(sessionKey(id))
      if (session !== undefined) found.push([id, session])
    }
    const [live, ...further] = found
    if (live !== undefined && further.some(([, other]) => !isOfSamePerson(live[1], other)))
      throw new SeveralSessionsError(cookie.expireAdded(host, path))
    if (live !== undefined) expireAdded.push(...cookie.expireAdded(host, path))
    one = cookie.withOnly(one, live?.[0] ?? values[0] ?? '')
  }
  return { cookie: one, expireAdded }
}

/**
 * The values that are looked up: first sessions in memory, because another host can add many, then
 * the last ones, because browsers send longer paths first (RFC 6265bis §5.8.3).
 */
function candidates(
  values: readonly string[],
  sessions: Pick<SessionsOfAudience, 'findInMemory'>,
): readonly SessionId[] {
  const ids = [...new Set(values.slice(-maxCompared))].flatMap((value) => sessionIdFromCookie(value) ?? [])
  const isInMemory = (id: SessionId) => sessions.findInMemory(sessionKey(id)) !== undefined
  const inMemory = ids.filter(isInMemory)
  return [...inMemory, ...ids.filter((id) => !inMemory.includes(id)).toReversed()].slice(0, maxLookedUp)
}

function isOfSamePerson({ record: one }: StoredSession, { record: other }: StoredSession): boolean {
  return one.iss === other.iss && one.sub === other.sub
}
