import { isDomainOf } from '../core/addresses.ts'
import { withoutSpaceAround } from '../wire/fields.ts'

/** A cookie that an application has set, as a browser would keep it (RFC 6265bis §5.7). */
export interface KeptCookie {
  /** May be empty: a cookie without a name is a value alone. */
  readonly name: string
  /** A character is a byte. */
  readonly value: string
  /** The host that set the cookie, or its `Domain`. */
  readonly domain: string
  /** Absent: also for the hosts below `domain`. */
  readonly hostOnly?: true
  readonly path: string
  /** In ms since the epoch. Absent: until the session ends. */
  readonly expires_at?: number
}

/** The request that a cookie belongs to. */
export interface CookieScope {
  /** A host name in lower case or an IP address, without port. */
  readonly host: string
  /** The path of the request, without the query. */
  readonly path: string
}

/** The cookies of one response, by where they are kept. */
export interface ReceivedCookies {
  /** The session keeps them. */
  readonly kept: readonly KeptCookie[]
  /** The browser gets them, and the session remembers where they are. */
  readonly inBrowser: readonly KeptCookie[]
}

/** The longest name and value together, and the longest value of an attribute, in bytes. */
const maxPairBytes = 4096
const maxAttributeLength = 1024
/** The longest lifetime of a cookie, in ms: 400 days. */
const maxLifetimeMs = 400 * 24 * 60 * 60 * 1000
/** A cookie whose expiry moves by less than this share of its lifetime is not stored again. */
const expiryShare = 0.1

/**
 * Reads a `Set-Cookie` value (RFC 6265bis §5.6 and §5.7). `Secure`, `HttpOnly` and `SameSite` have
 * no meaning for a cookie that never reaches a browser. `now` is in ms since the epoch.
 * @returns a cookie, which has expired when it deletes one; `undefined` for a value that browsers
 * ignore
 */
export function readSetCookie(text: string, { host, path }: CookieScope, now: number): KeptCookie | undefined {
  if (hasControlCharacter.test(text)) return undefined
  const [pair = '', ...attributes] = text.split(';')
  const equals = pair.indexOf('=')
  const name = withoutSpaceAround(pair.slice(0, Math.max(equals, 0)))
  const value = withoutSpaceAround(pair.slice(equals + 1))
  if (name.length + value.length > maxPairBytes || (name === '' && value === '')) return undefined
  const read = new Map<string, string>()
  for (const text of attributes) {
    const attribute = readAttribute(text)
    if (attribute.value.length <= maxAttributeLength) read.set(attribute.name, attribute.value)
  }
  if (violatesPrefix(name === '' ? value : name, name === '', read)) return undefined
  const domain = read.get('domain')?.replace(/^\./, '').toLowerCase() ?? ''
  if (domain !== '' && !isDomainOf(domain, host)) return undefined
  const expires_at = expiryOf(read, now)
  const cookiePath = read.get('path') ?? ''
  return {
    name,
    value,
    domain: domain === '' ? host : domain,
    ...(domain === '' && { hostOnly: true }),
    path: cookiePath.startsWith('/') ? cookiePath : defaultPath(path),
    ...(expires_at !== undefined && { expires_at }),
  }
}

/** Reads an attribute of a `Set-Cookie` value (RFC 6265bis §5.6). The name is in lower case. */
export function readAttribute(text: string): { readonly name: string; readonly value: string } {
  const end = text.indexOf('=')
  return end < 0
    ? { name: withoutSpaceAround(text).toLowerCase(), value: '' }
    : { name: withoutSpaceAround(text.slice(0, end)).toLowerCase(), value: withoutSpaceAround(text.slice(end + 1)) }
}

/** The name in a `Set-Cookie` value. A browser may take `=name=value` and ` name` for `name`. */
export function nameInSetCookie(text: string): string {
  return /^[=\s]*([^=;]*)/.exec(text)?.[1]?.trim() ?? ''
}

/**
 * Stores cookies, and removes those that have expired. A cookie replaces one of the same name,
 * domain and path, and keeps its place (RFC 6265bis §5.7).
 * @returns the same list when nothing would be sent differently
 */
export function keepCookies(
  kept: readonly KeptCookie[],
  received: readonly KeptCookie[],
  now: number,
): readonly KeptCookie[] {
  const cookies = [...kept]
  let hasChanged = false
  for (const cookie of received) {
    const at = cookies.findIndex((other) => isSameCookie(cookie, other))
    const other = cookies[at]
    if (hasExpired(cookie, now)) {
      if (other === undefined) continue
      cookies.splice(at, 1)
    } else if (other === undefined) cookies.push(cookie)
    else if (isUnchanged(cookie, other, now)) continue
    else cookies[at] = cookie
    hasChanged = true
  }
  return hasChanged ? cookies.filter((cookie) => !hasExpired(cookie, now)) : kept
}

/**
 * The value of a `Cookie` field for a request (RFC 6265bis §5.8.3): cookies with longer paths
 * first.
 * @returns `undefined` when no cookie matches
 */
export function cookieField(kept: readonly KeptCookie[], scope: CookieScope, now: number): string | undefined {
  const matching = kept.filter((cookie) => belongsTo(cookie, scope) && !hasExpired(cookie, now))
  if (matching.length === 0) return undefined
  return matching
    .toSorted((a, b) => b.path.length - a.path.length)
    .map(({ name, value }) => (name === '' ? value : `${name}=${value}`))
    .join('; ')
}

/** The size that limits apply to, in bytes: names, values, domains and paths. */
export function sizeOf(kept: readonly KeptCookie[]): number {
  return kept.reduce(
    (sum, { name, value, domain, path }) => sum + name.length + value.length + domain.length + path.length,
    0,
  )
}

/** Whether a request of this scope has the cookie (RFC 6265bis §5.8.3). */
export function belongsTo({ domain, hostOnly, path }: KeptCookie, scope: CookieScope): boolean {
  if (hostOnly ? domain !== scope.host : !isDomainOf(domain, scope.host)) return false
  return scope.path.startsWith(path) && (path.endsWith('/') || /^(?:\/|$)/.test(scope.path.slice(path.length)))
}

/** RFC 6265bis §5.1.4. */
function defaultPath(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf('/'), 1))
}

/**
 * RFC 6265bis §5.7: a name that begins with `__Secure-` or `__Host-` promises attributes. A value
 * without a name must not look like such a name.
 */
function violatesPrefix(name: string, isNameless: boolean, attributes: ReadonlyMap<string, string>): boolean {
  const prefix = /^__(?:secure|host)-/i.exec(name)?.[0].toLowerCase()
  if (prefix === undefined) return false
  if (isNameless || !attributes.has('secure')) return true
  return prefix === '__host-' && (attributes.get('path') !== '/' || (attributes.get('domain') ?? '') !== '')
}

/** `Max-Age` counts before `Expires`. In ms since the epoch. */
function expiryOf(attributes: ReadonlyMap<string, string>, now: number): number | undefined {
  const maxAge = attributes.get('max-age')
  const latest = now + maxLifetimeMs
  if (maxAge !== undefined && /^-?\d+$/.test(maxAge)) return Math.max(0, Math.min(now + Number(maxAge) * 1000, latest))
  const expires = attributes.get('expires')
  const date = expires === undefined ? undefined : cookieDate(expires)
  return date === undefined ? undefined : Math.max(0, Math.min(date, latest))
}

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

/** Reads a date as browsers do (RFC 6265bis §5.1.1). In ms since the epoch. */
function cookieDate(text: string): number | undefined {
  let time: readonly number[] | undefined
  let [day, month, year]: (number | undefined)[] = []
  for (const token of text.split(/[\t\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+/)) {
    const clock = /^(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\D|$)/.exec(token)
    const monthAt = months.indexOf(token.slice(0, 3).toLowerCase())
    if (time === undefined && clock !== null) time = clock.slice(1).map(Number)
    else if (day === undefined && /^\d{1,2}(?:\D|$)/.test(token)) day = Number.parseInt(token, 10)
    else if (month === undefined && monthAt >= 0) month = monthAt
    else if (year === undefined && /^\d{2,4}(?:\D|$)/.test(token)) year = Number.parseInt(token, 10)
  }
  if (time === undefined || day === undefined || month === undefined || year === undefined) return undefined
  if (year >= 70 && year <= 99) year += 1900
  else if (year <= 69) year += 2000
  const [hour = 0, minute = 0, second = 0] = time
  if (day < 1 || day > 31 || year < 1601 || hour > 23 || minute > 59 || second > 59) return undefined
  const date = Date.UTC(year, month, day, hour, minute, second)
  // There is no 31st of April.
  return new Date(date).getUTCDate() === day ? date : undefined
}

function isSameCookie(one: KeptCookie, other: KeptCookie): boolean {
  return (
    one.name === other.name && one.domain === other.domain && one.hostOnly === other.hostOnly && one.path === other.path
  )
}

function isUnchanged(cookie: KeptCookie, kept: KeptCookie, now: number): boolean {
  if (cookie.value !== kept.value) return false
  const [expires = Infinity, present = Infinity] = [cookie.expires_at, kept.expires_at]
  return expires === present || Math.abs(expires - present) < (expires - now) * expiryShare
}

function hasExpired({ expires_at }: KeptCookie, now: number): boolean {
  return expires_at !== undefined && expires_at <= now
}

const hasControlCharacter = /[\x00-\x08\x0a-\x1f\x7f]/
