import type { UpstreamConfig } from '../config/model/upstream.ts'
import type { CanonicalTarget } from '../http/request-target.ts'
import { createRouteTable } from './rules/route-table.ts'

/**
 * Returns a function that finds whether a GET request for a target at a host (without port) is a
 * logout link of an application. It throws `ERR_REQUEST_TARGET` when the target is ambiguous.
 */
export function createLogoutLinks(
  upstreams: readonly UpstreamConfig[],
): (host: string, target: CanonicalTarget) => boolean {
  const routes = createRouteTable(upstreams)
  return (host, target) => routes.route(host, 'GET', target)?.isLogout === true
}
