import type { UpstreamConfig } from '../config/model/upstream.ts'
import type { RequestFacts } from '../http/request-facts.ts'

type InitiatorFacts = Pick<RequestFacts, 'method' | 'isUpgrade' | 'secFetchSite' | 'origin' | 'forwarded'>

/**
 * Why a request must not act in the name of the signed-in person, for the log; `undefined` when it
 * may. A page of another origin made the request, and the method is not safe (RFC 9110 §9.2.1), or
 * the request opens a WebSocket, which CORS does not protect (RFC 6455 §10.2).
 *
 * The browser sends the session cookie with requests of other pages. It describes these pages in
 * `Sec-Fetch-Site` and `Origin`, which scripts cannot set. A client that sends neither field is not
 * a browser.
 */
export function crossSiteReason(
  facts: InitiatorFacts,
  { trustedOrigins, externalUrl }: UpstreamConfig,
): string | undefined {
  const { method, isUpgrade, secFetchSite, origin } = facts
  if (!isUpgrade && (method === 'GET' || method === 'HEAD' || method === 'OPTIONS')) return undefined
  if (secFetchSite === undefined) {
    if (origin === undefined) return undefined
    // The scheme comes from the configuration, so it is right even behind a proxy that is not in
    // `trusted_proxies`.
    if (origin === externalUrl.origin || origin === `${externalUrl.protocol}//${facts.forwarded.host}`) return undefined
  } else if (secFetchSite === 'same-origin' || secFetchSite === 'none') {
    return undefined
  }
  if (trustedOrigins === 'any' || (origin !== undefined && trustedOrigins.includes(origin))) return undefined
  const page = isPrintable(origin) ? origin : 'another origin'
  const site = isPrintable(secFetchSite) ? ` (${secFetchSite})` : ''
  return `a page of ${page} made the request${site}`
}

/** Whether the log may quote the value: it has only characters of an origin or a token. */
function isPrintable(text: string | undefined): text is string {
  return text !== undefined && /^[\w.:/[\]-]{1,200}$/.test(text)
}
