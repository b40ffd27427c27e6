import type { CorsConfig, UpstreamConfig } from '../config/model/upstream.ts'
import { GatewayError } from '../core/errors.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import type { RouteTable } from './rules/route-table.ts'

/** Header fields for pages of other origins, by name. */
export type CorsFields = Readonly<Record<string, string>>

/**
 * The fields with which a response permits pages of this origin to read it (Fetch §3.2.3). For an
 * origin that is not listed there is only `Vary`, because caches must not give its response to
 * pages of other origins.
 */
export function corsFields({ origins, expose, credentials }: CorsConfig, origin: string | undefined): CorsFields {
  if (origin === undefined || !origins.includes(origin)) return { Vary: 'Origin' }
  return {
    'Access-Control-Allow-Origin': origin,
    ...(credentials && { 'Access-Control-Allow-Credentials': 'true' }),
    ...(expose.length > 0 && { 'Access-Control-Expose-Headers': expose.join(', ') }),
    Vary: 'Origin',
  }
}

/** The fields of the response to a preflight: which requests pages of the origin may send. */
export function preflightFields(cors: CorsConfig, origin: string | undefined): CorsFields {
  const { 'Access-Control-Expose-Headers': _, ...fields } = corsFields(cors, origin)
  if (fields['Access-Control-Allow-Origin'] === undefined) return fields
  return {
    ...fields,
    'Access-Control-Allow-Methods': cors.methods.join(', '),
    ...(cors.headers.length > 0 && { 'Access-Control-Allow-Headers': cors.headers.join(', ') }),
    'Access-Control-Max-Age': String(Math.floor(cors.maxAgeMs / 1000)),
  }
}

/**
 * Returns a function that finds the fields for the gateway's own responses to a request. There are
 * none for a request without `Origin`, for a preflight, and for an upstream without `cors`.
 */
export function createCors(
  upstreams: readonly UpstreamConfig[],
  routes: RouteTable,
): (facts: RequestFacts) => CorsFields | undefined {
  if (upstreams.every(({ cors }) => cors === undefined)) return () => undefined
  return ({ origin, isPreflight, host, method, target, forwarded }) => {
    if (origin === undefined || isPreflight === true) return undefined
    try {
      const cors = routes.route(host, method, target, forwarded.clientAddress)?.upstream.cors
      return cors && corsFields(cors, origin)
    } catch (error) {
      // The path is ambiguous, so the gateway refuses the request later.
      if (error instanceof GatewayError) return undefined
      throw error
    }
  }
}
