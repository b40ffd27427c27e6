import { maxReturnToLength, signedInPath } from '../core/return-to.ts'

/**
 * The path to return to after a sign-in. Everything except a path on this origin becomes `/`, so
 * that a sign-in cannot lead to another site (RFC 9700 §4.11). A path below the reserved prefix
 * becomes `/` too, except that of the page for signed-in people.
 */
export function returnToOrHome(value: string | undefined, externalUrl: URL, reservedPrefix: string): string {
  if (value === signedInPath(reservedPrefix)) return value
  if (
    value === undefined ||
    !value.startsWith('/') ||
    value.length > maxReturnToLength ||
    !URL.canParse(value, externalUrl.origin)
  )
    return '/'
  // The URL parser works like that of browsers, so "/\evil" and "//evil" become another origin.
  const target = new URL(value, externalUrl)
  if (target.origin !== externalUrl.origin) return '/'
  // "/.//evil" keeps the origin, but its path "//evil" alone would lead to another one.
  if (target.pathname.startsWith('//') || `${target.pathname}/`.toLowerCase().startsWith(reservedPrefix)) return '/'
  // The parser keeps a backslash in a query, but a URI must not contain one (RFC 3986 §2).
  return target.pathname + target.search.replaceAll('\\', '%5C')
}
