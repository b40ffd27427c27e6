import { longestReturnTo } from '../core/return-to.ts'

/**
 * Keeps a sign-in from ending on somebody else's site: RFC 9700 §4.11. Below the reserved prefix is
 * no place to come back to either.
 */
export function returnToOrHome(value: string | undefined, externalUrl: URL, reservedPrefix: string): string {
  if (
    value === undefined ||
    !value.startsWith('/') ||
    value.length > longestReturnTo ||
    !URL.canParse(value, externalUrl.origin)
  )
    return '/'
  // The URL parser is the browser's: it turns "/\evil" and "//evil" into another origin, and we see
  // it.
  const target = new URL(value, externalUrl)
  if (target.origin !== externalUrl.origin) return '/'
  // "/.//evil" keeps the origin, but its path alone would be another one.
  if (target.pathname.startsWith('//') || `${target.pathname}/`.toLowerCase().startsWith(reservedPrefix)) return '/'
  // Of a backslash in a query the parser makes nothing, but it is no character of a URI (RFC 3986
  // §2).
  return target.pathname + target.search.replaceAll('\\', '%5C')
}
