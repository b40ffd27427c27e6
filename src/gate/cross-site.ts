import type { UpstreamConfig } from '../config/model/upstream.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import { isFromSite, originsAt } from '../http/requesting-page.ts'

type InitiatorFacts = Pick<RequestFacts, 'method' | 'isUpgrade' | 'secFetchSite' | 'origin' | 'forwarded'>

/**
 * Why a request must not act in the name of the signed-in person, for the log; `undefined` when it
 * may. A page of another origin made the request, and the method is not safe (RFC 9110 §9.2.1), or
 * the request opens a WebSocket, which CORS does not protect (RFC 6455 §10.2).
 *
 * The browser sends the session cookie with requests of other pages. See `requesting-page.ts`.
 */
export function crossSiteReason(
  facts: InitiatorFacts,
  { trustedOrigins, externalUrl }: UpstreamConfig,
): string | undefined {
  const { secFetchSite, origin } = facts
  if (isSafe(facts)) return undefined
  if (isFromSite('application', facts, originsAt(externalUrl, facts.forwarded.host))) return undefined
  if (trustedOrigins === 'any' || (origin !== undefined && trustedOrigins.includes(origin))) return undefined
  const page = isPrintable(origin) ? origin : 'another origin'
  const site = isPrintable(secFetchSite) ? ` (${secFetchSite})` : ''
  return `a page of ${page} made the request${site}`
}

/** Whether a request changes nothing, so that any page may make it. */
export function isSafe({ method, isUpgrade }: Pick<RequestFacts, 'method' | 'isUpgrade'>): boolean {
  return !isUpgrade && (method === 'GET' || method === 'HEAD' || method === 'OPTIONS')
}

/** Whether the log may quote the value: it has only characters of an origin or a token. */
function isPrintable(text: string | undefined): text is string {
  return text !== undefined && /^[\w.:/[\]-]{1,200}$/.test(text)
}
