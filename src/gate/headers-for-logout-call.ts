import type { UpstreamConfig } from '../config/model/upstream.ts'
import type { Claims } from '../core/claims.ts'
import { canonicalTarget } from '../http/request-target.ts'
import { type BearerTokens, identityHeaders } from '../identity/claim-headers.ts'
import { anonymousHeaders, type ForwardableFacts, requestFields } from '../identity/request-headers.ts'
import { createRouteTable } from './rules/route-table.ts'

/**
 * The identity header fields of a logout call: those that a request of the person for the same
 * address would have. Names and values, alternating. The person need not meet the requirements of
 * the rule, because the call only ends what began earlier.
 * @param target path and query, as clients use them
 * @returns the name of a required header without a value, if there is one
 */
export function headersForLogoutCall(
  upstream: UpstreamConfig,
  { method, target }: { readonly method: string; readonly target: string },
  person: { readonly claims: Claims; readonly tokens: BearerTokens },
  facts: ForwardableFacts,
): readonly string[] | { readonly missing: string } {
  const routes = createRouteTable([{ ...upstream, hosts: [] }])
  const configured = routes.route('', method, canonicalTarget(target))?.rule.headers ?? upstream.headers
  const headers = identityHeaders(configured, person.claims, person.tokens)
  if ('missing' in headers) return headers
  return [...headers.fields, ...requestFields(anonymousHeaders(configured), facts, upstream.path)]
}
