import type { GatewayConfig } from './model.ts'

/** The part of the configuration that endpoints depend on. */
export type EndpointConfig = Pick<GatewayConfig, 'provider' | 'upstreams'>

/** Whether another proxy carries the requests of some upstream. */
function someForwardAuth({ upstreams }: EndpointConfig): boolean {
  return upstreams.some(({ forwardAuth }) => forwardAuth)
}

/** One of the gateway's own URLs below `reserved_prefix`, with the methods that share a handler. */
export interface Endpoint {
  /** The last segment of its path. */
  readonly name: string
  readonly methods: readonly ('GET' | 'HEAD' | 'POST')[]
  /** The limit of `limits.per_client` that requests count against. */
  readonly limit?: 'sign_ins' | 'callbacks' | 'frames' | 'refused_logout_tokens'
  /**
   * Only a page load is served, because a sign-in needs a page: scripts, images and prefetches are
   * refused.
   */
  readonly isForPageLoads?: true
  /** The endpoint exists only when this returns true. Absent: it always exists. */
  readonly exists?: (config: EndpointConfig) => boolean
}

/**
 * All endpoints. The routes, the methods that are allowed, the limits per client and `explain` are
 * derived from this table. HEAD is allowed where GET changes nothing that lasts (RFC 9110 §9.3.2):
 * a callback and a sign-out happen once.
 */
export const endpoints = {
  signIn: { name: 'sign-in', methods: ['GET', 'HEAD'], limit: 'sign_ins', isForPageLoads: true },
  initiateLogin: { name: 'initiate-login', methods: ['GET', 'HEAD'], limit: 'sign_ins', isForPageLoads: true },
  initiateLoginPost: { name: 'initiate-login', methods: ['POST'] },
  callback: { name: 'callback', methods: ['GET'], limit: 'callbacks', isForPageLoads: true },
  callbackPost: {
    name: 'callback',
    methods: ['POST'],
    exists: ({ provider }: EndpointConfig) => provider.response_mode === 'form_post',
  },
  signOut: { name: 'sign-out', methods: ['GET', 'POST'] },
  signedOut: { name: 'signed-out', methods: ['GET', 'HEAD'] },
  backchannelLogout: { name: 'backchannel-logout', methods: ['POST'], limit: 'refused_logout_tokens' },
  frontchannelLogout: {
    name: 'frontchannel-logout',
    methods: ['GET'],
    limit: 'frames',
    exists: ({ provider }: EndpointConfig) => provider.frontchannelLogout,
  },
  signedIn: { name: 'signed-in', methods: ['GET', 'HEAD'] },
  keptRequest: { name: 'kept-request', methods: ['GET'], isForPageLoads: true },
  declineKeptRequest: { name: 'kept-request', methods: ['POST'], isForPageLoads: true },
  session: { name: 'session', methods: ['GET', 'HEAD'] },
  extendSession: { name: 'session', methods: ['POST'] },
  sessionScript: { name: 'session.js', methods: ['GET', 'HEAD'] },
  events: { name: 'events', methods: ['GET'] },
  jwks: {
    name: 'jwks.json',
    methods: ['GET', 'HEAD'],
    exists: ({ upstreams }: EndpointConfig) => upstreams.some(({ signedIdentity }) => signedIdentity !== undefined),
  },
  forwardAuth: { name: 'forward-auth', methods: ['GET', 'HEAD', 'POST'], exists: someForwardAuth },
  authRequest: { name: 'forward-auth/auth-request', methods: ['GET', 'HEAD', 'POST'], exists: someForwardAuth },
  extAuthz: { name: 'forward-auth/ext-authz', methods: ['GET', 'HEAD', 'POST'], exists: someForwardAuth },
  authResponse: { name: 'forward-auth/response', methods: ['GET', 'HEAD', 'POST'], exists: someForwardAuth },
} as const satisfies Readonly<Record<string, Endpoint>>

export type EndpointKey = keyof typeof endpoints

/** The largest form that an endpoint reads, in bytes. */
export const maxFormBytes = 16 * 1024

/** The endpoints that exist with this configuration. */
export function endpointsOf(config: EndpointConfig): readonly (readonly [EndpointKey, Endpoint])[] {
  const all = Object.entries(endpoints) as [EndpointKey, Endpoint][]
  return all.filter(([, { exists }]) => exists?.(config) ?? true)
}

/**
 * Why a request below `reserved_prefix` is not served: no endpoint has this path, or it does not
 * allow the method.
 */
export type EndpointRefusal =
  { readonly code: 'ERR_NO_ROUTE' } | { readonly code: 'ERR_METHOD_NOT_ALLOWED'; readonly allowed: readonly string[] }

/**
 * Why no endpoint serves a request, or `undefined` when one does. `path` is canonical and has no
 * query.
 */
export function endpointRefusal(
  method: string,
  path: string,
  config: EndpointConfig & Pick<GatewayConfig, 'reservedPrefix'>,
): EndpointRefusal | undefined {
  const { reservedPrefix } = config
  const name = path.startsWith(reservedPrefix) ? path.slice(reservedPrefix.length) : ''
  const allowed = endpointsOf(config).flatMap(([, endpoint]): readonly string[] =>
    endpoint.name === name ? endpoint.methods : [],
  )
  if (allowed.length === 0) return { code: 'ERR_NO_ROUTE' }
  return allowed.includes(method) ? undefined : { code: 'ERR_METHOD_NOT_ALLOWED', allowed }
}
