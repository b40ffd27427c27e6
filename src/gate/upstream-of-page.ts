import type { UpstreamConfig } from '../config/model/upstream.ts'
import { GatewayError } from '../core/errors.ts'
import { canonicalTarget } from '../http/request-target.ts'
import type { RouteTable } from './rules/route-table.ts'

/**
 * Returns a function that finds the upstream of a page: a host (without port) with a path and
 * query. It returns `undefined` when no upstream serves the page, or the path is ambiguous.
 */
export function createUpstreamOfPage(routes: RouteTable): (host: string, path: string) => UpstreamConfig | undefined {
  return (host, path) => {
    try {
      return routes.route(host, 'GET', canonicalTarget(path))?.upstream
    } catch (error) {
      if (error instanceof GatewayError) return undefined
      throw error
    }
  }
}
