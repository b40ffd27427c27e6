import type { CanonicalTarget } from '../http/request-target.ts'
import type { RouteTable } from './rules/route-table.ts'

/**
 * Returns a function that finds whether a GET request for a target at a host (without port) is a
 * logout link of an application. It throws `ERR_REQUEST_TARGET` when the target is ambiguous.
 */
export function createLogoutLinks(routes: RouteTable): (host: string, target: CanonicalTarget) => boolean {
  return (host, target) => routes.route(host, 'GET', target)?.isLogout === true
}
