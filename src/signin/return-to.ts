import { GatewayError } from '../core/errors.ts'
import { maxReturnToLength, signedInPath } from '../core/return-to.ts'
import { canonicalTarget } from '../http/request-target.ts'
import { isReserved } from '../http/unambiguous-request.ts'
import type { SignInParts } from './parts.ts'

type Parts = Pick<SignInParts, 'reservedPrefix' | 'isLogoutLink'>

/**
 * The path to return to after a sign-in. Everything except a path on this origin becomes `/`, so
 * that a sign-in cannot lead to another site (RFC 9700 §4.11). So does a path that is not a page of
 * an application: an endpoint of the gateway, except the page for signed-in people, and a logout
 * link. With a `Strict` cookie, the browser continues from a page of this origin, so a link on
 * another site could otherwise sign a person out.
 */
export function returnToOrHome(value: string | undefined, externalUrl: URL, parts: Parts): string {
  if (value === signedInPath(parts.reservedPrefix)) return value
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
  if (target.pathname.startsWith('//')) return '/'
  // Also when the request handler would reject the path.
  if (`${target.pathname}/`.toLowerCase().startsWith(parts.reservedPrefix.toLowerCase())) return '/'
  // The parser keeps a backslash in a query, but a URI must not contain one (RFC 3986 §2).
  const path = target.pathname + target.search.replaceAll('\\', '%5C')
  return mayReturnTo(path, externalUrl.hostname, parts) ? path : '/'
}

/** Reads the path as the request handler does: `/%2egatehouse/` is the reserved prefix too. */
function mayReturnTo(path: string, host: string, { reservedPrefix, isLogoutLink }: Parts): boolean {
  try {
    const target = canonicalTarget(path)
    return !isReserved(target, reservedPrefix) && !isLogoutLink(host, target)
  } catch (error) {
    // The request handler rejects such a path, so it leads nowhere.
    if (error instanceof GatewayError) return true
    throw error
  }
}
