import type { IncomingMessage, ServerOptions } from 'node:http'
import { carriedProtocols, requestsUpgrade } from '../http/upgrade-field.ts'

/**
 * The option of Node's servers that decides which requests are upgrades. A request that offers no
 * listed protocol is an ordinary request with its content (RFC 9110 §7.8). For example, Java's
 * HttpClient offers h2c with each request, also with a form that contains a Logout Token.
 *
 * @param listed the protocols that any upstream lists, at the moment
 */
export function upgradeOptions(
  listed: () => readonly string[],
): Required<Pick<ServerOptions, 'shouldUpgradeCallback'>> {
  return {
    // HTTP/1.0 cannot switch protocols (RFC 9110 §7.8).
    shouldUpgradeCallback: ({ httpVersionMinor, headers }) =>
      httpVersionMinor > 0 && carriedProtocols(headers.upgrade, listed()) !== '',
  }
}

/**
 * Whether Node's parser treats the request as an upgrade although it is an ordinary one. The parser
 * loses the bytes that arrived together with the request, so it is unknown where the next request
 * begins.
 */
export function isIgnoredUpgrade({ headers }: IncomingMessage): boolean {
  return requestsUpgrade(headers)
}
