/**
 * How a cookie is set. It must be deleted with the same attributes, or the browser keeps it (RFC
 * 6265 §5.3).
 */
export interface CookieAttributes {
  readonly name: string
  readonly secure: boolean
  readonly sameSite: 'lax' | 'strict'
  /** Absent: `/`. */
  readonly path?: string
  /** Absent: only the host that sets the cookie (RFC 6265 §5.3). */
  readonly domain?: string
}

/**
 * The value of a cookie in a `Cookie` header. A name that occurs twice counts as absent, because
 * either of its values may be the valid one.
 */
export function readCookie(header: string | undefined, name: string): string | undefined {
  let value: string | undefined
  for (const pair of pairs(header)) {
    const end = pair.indexOf('=')
    // Without "=" it is a value without a name (RFC 6265bis §5.7).
    if (end < 0 || pair.slice(0, end).trim() !== name) continue
    if (value !== undefined) return undefined
    value = pair.slice(end + 1).trim()
  }
  return value
}

/** The names of all cookies in a `Cookie` header that start with `prefix`. */
export function cookieNames(header: string | undefined, prefix: string): string[] {
  return pairs(header)
    .map(nameOf)
    .filter((name) => name.startsWith(prefix))
}

/**
 * The cookies in a `Cookie` header whose names start with `prefix`. For a name that occurs twice,
 * the last value.
 */
export function cookiesNamed(header: string | undefined, prefix: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const pair of pairs(header)) {
    const name = nameOf(pair)
    if (name.startsWith(prefix)) found.set(name, pair.slice(pair.indexOf('=') + 1).trim())
  }
  return found
}

/**
 * A `Cookie` header without the cookies for which `drop` returns true. The others stay unchanged.
 * `undefined` when none is left.
 */
export function withoutCookies(header: string, drop: (name: string) => boolean): string | undefined {
  const kept = pairs(header).filter((pair) => !drop(nameOf(pair)))
  return kept.length > 0 ? kept.map((pair) => pair.trim()).join('; ') : undefined
}

/**
 * A `Set-Cookie` value. Without `maxAge` (seconds) the cookie lasts as long as the browser runs.
 */
export function setCookie(cookie: CookieAttributes, value: string, maxAge?: number): string {
  const parts = [
    `${cookie.name}=${value}`,
    `Path=${cookie.path ?? '/'}`,
    ...(cookie.domain === undefined ? [] : [`Domain=${cookie.domain}`]),
    'HttpOnly',
    `SameSite=${cookie.sameSite === 'strict' ? 'Strict' : 'Lax'}`,
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

function nameOf(pair: string): string {
  const end = pair.indexOf('=')
  return (end < 0 ? pair : pair.slice(0, end)).trim()
}
