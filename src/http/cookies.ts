import { matchesAny, type NamePattern } from '../core/patterns.ts'
import { withoutSpaceAround } from '../wire/fields.ts'

/**
 * The end of the names of session cookies for frames in pages of other sites. Browsers send them
 * with requests of all pages in a tab with such a page: see `RequestFacts.cookie`. No name of a
 * cookie or of a provider in a configuration has a dot.
 */
export const frameSuffix = 'frame.session'

/** How a cookie is set. Deleting it takes the same attributes (RFC 6265 §5.3). */
export interface CookieAttributes {
  readonly name: string
  readonly secure: boolean
  /** `partitioned`: also in frames of other sites, but for the site of the tab alone. */
  readonly sameSite: 'lax' | 'strict' | 'none' | 'partitioned'
  /** Absent: `/`. */
  readonly path?: string
  /** Absent: only the host that sets the cookie (RFC 6265 §5.3). */
  readonly domain?: string | undefined
}

/** The value of a cookie. A name that occurs twice counts as absent: either may be valid. */
export function readCookie(header: string | undefined, name: string): string | undefined {
  if (header === undefined) return undefined
  let value: string | undefined
  // Runs for each request, so it creates no list of pairs.
  for (let start = 0; start < header.length;) {
    const semicolon = header.indexOf(';', start)
    const end = semicolon < 0 ? header.length : semicolon
    const equals = header.indexOf('=', start)
    // Without "=" it is a value without a name (RFC 6265bis §5.7).
    if (equals >= 0 && equals < end && exactName(header, start, equals) === name) {
      if (value !== undefined) return undefined
      value = withoutSpaceAround(header, equals + 1, end)
    }
    start = end + 1
  }
  return value
}

/** All values of the cookies of a name in a `Cookie` header. */
export function cookieValues(header: string, name: string): readonly string[] {
  return namedPairs(header).flatMap(([each, value]) => (each === name ? [value] : []))
}

/** The names of all cookies in a `Cookie` header that start with `prefix`. */
export function cookieNames(header: string | undefined, prefix: string): string[] {
  return pairs(header)
    .map(cookieNameOf)
    .filter((name) => name.startsWith(prefix))
}

/** The cookies whose names start with `prefix`. For a name that occurs twice, the last value. */
export function cookiesNamed(header: string | undefined, prefix: string): ReadonlyMap<string, string> {
  return new Map(namedPairs(header).filter(([name]) => name.startsWith(prefix)))
}

/**
 * A `Cookie` header without the cookies for which `drop` returns true, also when only some
 * applications find a cookie of this name in it. The others stay unchanged. `undefined` when none
 * is left.
 */
export function withoutCookies(header: string, drop: (name: string) => boolean): string | undefined {
  let kept = ''
  // Runs for each request, so it creates no list of pairs.
  let start = 0
  while (start < header.length) {
    const semicolon = header.indexOf(';', start)
    const end = semicolon < 0 ? header.length : semicolon
    const pair = header.slice(start, end).trim()
    if (pair !== '' && !mayHaveName(pair, drop)) kept = kept === '' ? pair : `${kept}; ${pair}`
    start = end + 1
  }
  return kept === '' ? undefined : kept
}

/**
 * Whether an application may read a cookie as one of these names. PHP takes `.`, space and `[` in a
 * name for `_`, and takes `name[key]` for an array. Older versions decode escapes and `+`, remove
 * white space before the name, and end it at a NUL.
 */
export function mayBeNamed(patterns: readonly NamePattern[], name: string): boolean {
  if (matchesAny(patterns, name)) return true
  if (patterns.length === 0 || !/[.[ %+]/.test(name)) return false
  return [name, unescaped(name), unescaped(name.replaceAll('+', ' '))].some((text) => {
    const plain = text.replace(/\0.*$/s, '').trim()
    return [plain, plain.replace(/\[.*$/s, '')].some(
      (part) => matchesAny(patterns, part) || matchesAny(patterns, part.replaceAll(/[.[ +]/g, '_')),
    )
  })
}

/**
 * Whether an upstream whose cookies of these names are kept must not get a cookie from a browser.
 * With `$Version`, some servers read all cookies by RFC 2109, where a quoted value may contain
 * other cookies.
 */
export function isWithheld(patterns: readonly NamePattern[], name: string): boolean {
  return patterns.length > 0 && (name.startsWith('$') || mayBeNamed(patterns, name))
}

const sameSiteTexts = { lax: 'Lax', strict: 'Strict', none: 'None', partitioned: 'None; Partitioned' } as const

/** A `Set-Cookie` value. Without `maxAge` (in seconds) the cookie lasts while the browser runs. */
export function setCookie(cookie: CookieAttributes, value: string, maxAge?: number): string {
  const parts = [
    `${cookie.name}=${value}`,
    `Path=${cookie.path ?? '/'}`,
    ...(cookie.domain === undefined ? [] : [`Domain=${cookie.domain}`]),
    'HttpOnly',
    `SameSite=${sameSiteTexts[cookie.sameSite]}`,
  ]
  if (cookie.secure) parts.push('Secure')
  if (maxAge !== undefined) parts.push(`Max-Age=${maxAge}`)
  return parts.join('; ')
}

/** A `Set-Cookie` value that deletes the cookie. */
export function expireCookie(cookie: CookieAttributes): string {
  return setCookie(cookie, '', 0)
}

function pairs(header: string | undefined): string[] {
  return header === undefined ? [] : header.split(';').filter((pair) => pair.trim() !== '')
}

/** The cookies that have a name. */
function namedPairs(header: string | undefined): readonly (readonly [name: string, value: string])[] {
  return pairs(header).flatMap((pair) => {
    const equals = pair.indexOf('=')
    return equals < 0 ? [] : [[exactName(pair, 0, equals), withoutSpaceAround(pair, equals + 1)] as const]
  })
}

/**
 * The name of a cookie as the browser knows it. Only the spaces that separate cookies are removed
 * (RFC 6265 §5.4), and no other white space: any host of the domain can set a cookie whose name is
 * a no-break space and then `__Host-`, because it does not begin with that prefix.
 */
function exactName(text: string, start: number, equals: number): string {
  let at = start
  while (text.charCodeAt(at) === 0x20) at += 1
  return text.slice(at, equals)
}

/** The name of a cookie as some applications read it. */
function cookieNameOf(pair: string): string {
  const end = pair.indexOf('=')
  return (end < 0 ? pair : pair.slice(0, end)).trim()
}

/**
 * Whether `matches` holds for the name of a pair, or for a name that some applications find in its
 * value: those that read a comma (RFC 2109 §4.4) or white space as a separator.
 */
function mayHaveName(pair: string, matches: (name: string) => boolean): boolean {
  if (matches(cookieNameOf(pair))) return true
  const value = pair.slice(pair.indexOf('=') + 1)
  if (!/[,\s]/.test(value)) return false
  return [...value.matchAll(/[,\s]([^\s,=]+)\s*=/g)].some(([, inner = '']) => matches(inner))
}

function unescaped(name: string): string {
  return name.replaceAll(/%([\da-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}
