import type { UpstreamConfig } from '../config/model.ts'
import type { RequestFacts } from '../http/request-facts.ts'

type Initiated = Pick<RequestFacts, 'method' | 'isUpgrade' | 'secFetchSite' | 'origin' | 'forwarded'>

/**
 * Why a request must not be carried out in the person's name, for the log: a page of another origin
 * makes it, and it may change something (RFC 9110 §9.2.1) or opens a WebSocket, which no CORS
 * guards (RFC 6455 §10.2). `undefined`: it may be.
 *
 * The browser sends the cookie along, and the browser says whose page asks: no script can set
 * `Sec-Fetch-Site` or `Origin`. Who sends neither is no browser, and carries no cookie but its own.
 */
export function crossSiteReason(facts: Initiated, { trustedOrigins, externalUrl }: UpstreamConfig): string | undefined {
  const { method, isUpgrade, secFetchSite, origin } = facts
  if (!isUpgrade && (method === 'GET' || method === 'HEAD' || method === 'OPTIONS')) return undefined
  if (secFetchSite === undefined) {
    if (origin === undefined) return undefined
    // The scheme is that of the configuration: whether a proxy before us is believed makes no
    // difference.
    if (origin === externalUrl.origin || origin === `${externalUrl.protocol}//${facts.forwarded.host}`) return undefined
  } else if (secFetchSite === 'same-origin' || secFetchSite === 'none') {
    return undefined
  }
  if (trustedOrigins === 'any' || (origin !== undefined && trustedOrigins.includes(origin))) return undefined
  return `a page of ${shown(origin)} makes it${secFetchSite === undefined ? '' : `, which is ${shown(secFetchSite)}`}`
}

/** What a client wrote, as far as it can be one of the two. */
function shown(text: string | undefined): string {
  return text !== undefined && /^[\w.:/[\]-]{1,200}$/.test(text) ? text : 'another origin'
}
