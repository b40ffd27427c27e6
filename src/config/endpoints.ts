import { decryptionAlgorithms } from './encryption.ts'
import type { GatewayConfig } from './model/gateway.ts'
import type { ProviderConfig } from './model/provider.ts'

/** The part of the configuration that endpoints depend on. */
export type EndpointConfig = Pick<GatewayConfig, 'providers' | 'upstreams' | 'reservedPrefix'> & {
  readonly session: Pick<GatewayConfig['session'], 'deviceBinding' | 'page' | 'maxPerPerson' | 'embeddedIn'>
}

/** Whether an endpoint exists with a configuration. */
type Exists = (provider: ProviderConfig, config: EndpointConfig) => boolean

const getsFormPosts: Exists = ({ response_mode }) => response_mode.startsWith('form_post')
const hasSignals: Exists = ({ signals }) => signals !== undefined
const hasGlobalRevocation: Exists = ({ globalTokenRevocation }) => globalTokenRevocation !== undefined
const decrypts: Exists = (provider) => decryptionAlgorithms(provider).size > 0
const bindsDevices: Exists = (_, { session }) => session.deviceBinding.isOn
const isEmbedded: Exists = (_, { session }) => session.embeddedIn.length > 0
const showsSessions: Exists = (_, { session }) => session.page
/** People end sessions on their page, or before a sign-in that was refused. */
const letsEndSessions: Exists = (_, { session }) => session.page || session.maxPerPerson?.whenExceeded === 'refuse'
const makesKeys: Exists = ({ name }, { upstreams }) =>
  upstreams.some(({ keys, providers }) => keys !== undefined && providers.includes(name))
const signsIdentities: Exists = (_, { upstreams }) => upstreams.some((each) => each.signedIdentity !== undefined)
/** People enter a password for some application. */
const asksForSecret: Exists = (_, { upstreams }) => upstreams.some((each) => each.applicationSignIn?.password === 'ask')
/** Another proxy carries the requests of some upstream. */
const someForwardAuth: Exists = (_, { upstreams }) => upstreams.some(({ forwardAuth }) => forwardAuth)

/** One of the gateway's own URLs below `reserved_prefix`, with the methods that share a handler. */
export interface Endpoint {
  /** The last segment of its path. */
  readonly name: string
  /**
   * Which paths it has. `gateway`: one, at `reserved_prefix`. `provider`: one for each provider, at
   * the prefix of the provider. `both`: all of these; at `reserved_prefix` the gateway finds out
   * which provider is meant. With one provider, all prefixes are the same.
   */
  readonly at: 'gateway' | 'provider' | 'both'
  readonly methods: readonly ('GET' | 'HEAD' | 'POST')[]
  /** The limit of `limits.per_client` that requests count against. */
  readonly limit?: 'sign_ins' | 'callbacks' | 'frames' | 'refused_logout_tokens'
  /**
   * Only a page load is served, because a sign-in needs a page: scripts, images and prefetches are
   * refused.
   */
  readonly isForPageLoads?: true
  /** The endpoint exists only when this returns true. Absent: it always exists. */
  readonly exists?: Exists
}

const reading = ['GET', 'HEAD'] as const
const anyMethod = ['GET', 'HEAD', 'POST'] as const
/** Requests of the provider that end sessions. */
const endings = { at: 'provider', methods: ['POST'], limit: 'refused_logout_tokens' } as const
const secretForm = { name: 'application-sign-in', at: 'both', isForPageLoads: true, exists: asksForSecret } as const

/**
 * All endpoints. The routes, the methods that are allowed, the limits per client and `explain` are
 * derived from this table. HEAD is allowed where GET changes nothing that lasts (RFC 9110 §9.3.2):
 * a callback and a sign-out happen once.
 */
export const endpoints = {
  signIn: { name: 'sign-in', at: 'both', methods: reading, limit: 'sign_ins', isForPageLoads: true },
  initiateLogin: { name: 'initiate-login', at: 'provider', methods: reading, limit: 'sign_ins', isForPageLoads: true },
  initiateLoginPost: { name: 'initiate-login', at: 'provider', methods: ['POST'] },
  callback: { name: 'callback', at: 'provider', methods: ['GET'], limit: 'callbacks', isForPageLoads: true },
  callbackPost: { name: 'callback', at: 'provider', methods: ['POST'], exists: getsFormPosts },
  signOut: { name: 'sign-out', at: 'both', methods: ['GET', 'POST'] },
  signedOut: { name: 'signed-out', at: 'both', methods: reading },
  backchannelLogout: { name: 'backchannel-logout', ...endings },
  securityEvents: { name: 'security-events', ...endings, exists: hasSignals },
  globalTokenRevocation: { name: 'global-token-revocation', ...endings, exists: hasGlobalRevocation },
  frontchannelLogout: {
    name: 'frontchannel-logout',
    at: 'provider',
    methods: ['GET'],
    limit: 'frames',
    exists: ({ frontchannelLogout }: ProviderConfig) => frontchannelLogout,
  },
  signedIn: { name: 'signed-in', at: 'gateway', methods: reading },
  frameSession: { name: 'frame-session', at: 'provider', methods: ['POST'], limit: 'callbacks', exists: isEmbedded },
  keptRequest: { name: 'kept-request', at: 'both', methods: ['GET'], isForPageLoads: true },
  declineKeptRequest: { name: 'kept-request', at: 'both', methods: ['POST'], isForPageLoads: true },
  askForSecret: { ...secretForm, methods: reading },
  keepSecret: { ...secretForm, methods: ['POST'] },
  deviceRegistration: { name: 'device-registration', at: 'provider', methods: ['POST'], exists: bindsDevices },
  deviceRefresh: { name: 'device-refresh', at: 'provider', methods: ['POST'], exists: bindsDevices },
  session: { name: 'session', at: 'both', methods: reading },
  extendSession: { name: 'session', at: 'both', methods: ['POST'] },
  ownSessions: { name: 'sessions', at: 'both', methods: reading, isForPageLoads: true, exists: showsSessions },
  endOwnSessions: { name: 'sessions', at: 'both', methods: ['POST'], isForPageLoads: true, exists: letsEndSessions },
  makeKey: { name: 'keys', at: 'both', methods: ['POST'], limit: 'sign_ins', isForPageLoads: true, exists: makesKeys },
  sessionScript: { name: 'session.js', at: 'gateway', methods: reading },
  events: { name: 'events', at: 'both', methods: ['GET'] },
  jwks: { name: 'jwks.json', at: 'gateway', methods: reading, exists: signsIdentities },
  clientJwks: { name: 'client-jwks.json', at: 'provider', methods: reading, exists: decrypts },
  forwardAuth: { name: 'forward-auth', at: 'gateway', methods: anyMethod, exists: someForwardAuth },
  authRequest: { name: 'forward-auth/auth-request', at: 'gateway', methods: anyMethod, exists: someForwardAuth },
  extAuthz: { name: 'forward-auth/ext-authz', at: 'gateway', methods: anyMethod, exists: someForwardAuth },
  authResponse: { name: 'forward-auth/response', at: 'gateway', methods: anyMethod, exists: someForwardAuth },
} as const satisfies Readonly<Record<string, Endpoint>>

export type EndpointKey = keyof typeof endpoints

/** The largest form that an endpoint reads, in bytes. */
export const maxFormBytes = 16 * 1024

/** An endpoint at one path. */
export interface EndpointAtPath {
  readonly key: EndpointKey
  readonly endpoint: Endpoint
  readonly path: string
  /** The provider that the path belongs to. Absent: none of several providers. */
  readonly provider: ProviderConfig | undefined
}

/** The endpoints that exist with this configuration. */
export function endpointsOf(config: EndpointConfig): readonly EndpointAtPath[] {
  const { providers, reservedPrefix } = config
  const [first] = providers
  const isAlone = first.prefix === reservedPrefix
  const all = Object.entries(endpoints) as [EndpointKey, Endpoint][]
  return all.flatMap(([key, endpoint]) => {
    const { name, at, exists } = endpoint
    const ofProviders = at === 'gateway' ? [] : providers.filter((provider) => exists?.(provider, config) ?? true)
    const isAtGateway = at !== 'provider' && !(isAlone && at === 'both') && (exists?.(first, config) ?? true)
    const own = { key, endpoint, path: `${reservedPrefix}${name}`, provider: isAlone ? first : undefined }
    return [
      ...(isAtGateway ? [own] : []),
      ...ofProviders.map((provider) => ({ key, endpoint, path: `${provider.prefix}${name}`, provider })),
    ]
  })
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
export function endpointRefusal(method: string, path: string, config: EndpointConfig): EndpointRefusal | undefined {
  const allowed = endpointsOf(config).flatMap((at): readonly string[] => (at.path === path ? at.endpoint.methods : []))
  if (allowed.length === 0) return { code: 'ERR_NO_ROUTE' }
  return allowed.includes(method) ? undefined : { code: 'ERR_METHOD_NOT_ALLOWED', allowed }
}
