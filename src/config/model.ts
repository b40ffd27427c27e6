import type { AddressSet } from '../core/addresses.ts'
import type { ClaimPath, Claims, ClaimTemplate } from '../core/claims.ts'
import type { LinearPattern } from '../core/linear-pattern.ts'
import type { NamePattern } from '../core/name-pattern.ts'
import type { PageName, PageTemplate } from '../core/page-template.ts'
import type { PathPattern } from '../core/path-pattern.ts'
import type { ScryptHash } from '../core/scrypt-hash.ts'
import type { StepUp } from '../core/step-up.ts'
import type { TimeWindow } from '../core/time-window.ts'
import type { Place } from './document/sources.ts'
import type { Rate } from './quantities.ts'

/**
 * A configuration that has been checked. Each field has the name of its setting in camelCase, with
 * a suffix for the unit of a duration or a size: `drain_timeout` → `drainTimeoutMs`, `header_size`
 * → `headerSizeBytes`. Exceptions:
 *
 * - Parameters of OAuth and OpenID Connect keep the spelling of their specification (`client_id`).
 * - `providers` has the one of `provider` too.
 * - `ca`, `cert` and `key` hold the content of `ca_file`, `cert_file` and `key_file`.
 * - `store.kind` says which of `memory` and `redis` (`url`, `sentinels`, `cluster`) is configured;
 *   `nodes` are the addresses in `cluster`.
 * - `basic` of a header is a source with `user` and `password`.
 * - `time` of a requirement is a window made of `days`, `from`, `to` and `zone`.
 * - `method` and `path` of a test replace `get`, `post` and so on. So do `method` and `target` of
 *   `logout.call`. `support.url` replaces `mail`.
 */
export interface GatewayConfig {
  readonly version: 1
  /** The path of the file, as on the command line. */
  readonly file: string
  readonly listen: ListenConfig
  /** The administration listener. Absent: there is none. */
  readonly admin: AdminConfig | undefined
  /** Where Envoy asks about requests over gRPC. Absent: nowhere. */
  readonly extAuthz: ExtAuthzConfig | undefined
  /** Where browsers reach the gateway: an origin, without path. */
  readonly externalUrl: URL
  /** The path of all endpoints of the gateway. Starts and ends in `/`. */
  readonly reservedPrefix: string
  /** The peers whose `X-Forwarded-*` fields the gateway trusts. */
  readonly trustedProxies: readonly Subnet[]
  /** The number of processes that share the port; 1 with the memory store. */
  readonly workers: number
  /** At least one. The one of the setting `provider` is alone. */
  readonly providers: readonly [ProviderConfig, ...ProviderConfig[]]
  readonly session: SessionConfig
  readonly upstreams: readonly UpstreamConfig[]
  readonly signingKeys: SigningKeysConfig
  readonly pages: PagesConfig
  readonly limits: LimitsConfig
  readonly keptRequests: KeptRequestsConfig
  readonly shutdown: { readonly drainTimeoutMs: number }
  readonly log: LogConfig
  /** Absent: the gateway records no traces. */
  readonly tracing: TracingConfig | undefined
}

/** The listener for health, readiness, metrics and administration. */
export interface AdminConfig extends Address {
  /** Absent: there is no page for administration. */
  readonly page: AdminPageConfig | undefined
}

export interface AdminPageConfig {
  /** The password of the page. Absent: the page has none, and the listener is on loopback. */
  readonly token: string | undefined
  /** The host names, besides IP addresses and `localhost`, at which browsers may open the page. */
  readonly hosts: readonly string[]
  /** A claim that the page shows besides `sub`. Absent: none. */
  readonly showClaim: ClaimPath | undefined
}

/** The listener for the checks of Envoy over gRPC. */
export interface ExtAuthzConfig extends Address {
  /** The largest message. */
  readonly messageSizeBytes: number
}

export interface TracingConfig {
  /** The URL that traces are posted to. */
  readonly otlp: URL
  /** The share of requests that are traced, from 0 to 1. */
  readonly sample: number
  readonly serviceName: string
  /** Further attributes of the resource. */
  readonly resource: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  /** Certificate authorities (PEM) that are trusted in addition to those of Node.js. */
  readonly ca: string | undefined
}

export interface LogConfig {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  /** Whether each request is logged, with the level info. */
  readonly access: boolean
  /** `auto`: pretty on a terminal, JSON otherwise. */
  readonly format: 'json' | 'pretty' | 'auto'
}

export interface Address {
  readonly host: string
  readonly port: number
}

export interface ListenConfig extends Address {
  /** Whether ordinary requests are read without Node's parser. See the room `front`. */
  readonly plainPath: boolean
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined
}

export interface Subnet {
  readonly address: string
  readonly prefix: number
  readonly family: 'ipv4' | 'ipv6'
}

/** Forms that people send after their session has ended. */
export interface KeptRequestsConfig {
  /** The largest content that is kept; 0: none is kept. */
  readonly maxSizeBytes: number
  readonly keepForMs: number
}

export interface LimitsConfig {
  /** The largest size of all header fields of a request together. */
  readonly headerSizeBytes: number
  /** How long a client may take to send the header fields. */
  readonly headersTimeoutMs: number
  /** The largest number of header fields of a request. */
  readonly headerCount: number
  /** How long a client may pause while it sends content. */
  readonly bodyIdleTimeoutMs: number
  /**
   * The lowest rate at which a client may send content, on average over `bodyIdleTimeoutMs`; 0:
   * any.
   */
  readonly bodyRateBytesPerSecond: number
  /** The largest number of client connections of a process. */
  readonly connections: number
  /** Whether the file sets `connections`. */
  readonly areConnectionsSet: boolean
  readonly perClient: ClientLimitsConfig
}

/**
 * The limits of one client address; an IPv6 network of /64 counts as one address. Each process
 * counts separately.
 */
export interface ClientLimitsConfig {
  /** Open connections. Trusted proxies are exempt. */
  readonly connections: number
  /** Sign-ins that begin. */
  readonly signIns: Rate
  /** Authorization responses. */
  readonly callbacks: Rate
  /** Authorization responses for which a token request is under way. */
  readonly callbacksAtOnce: number
  /** Logout Tokens that are rejected. */
  readonly refusedLogoutTokens: Rate
}

/**
 * The JWS algorithms of ID Tokens and Logout Tokens. `none` and HMAC are never allowed.
 */
export const signingAlgorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
] as const
export type SigningAlgorithm = (typeof signingAlgorithms)[number]

/**
 * The metadata of a provider that publishes none, with the names of OpenID Connect Discovery 1.0
 * §3.
 */
export type ProviderMetadata = Readonly<
  Record<string, string | boolean | readonly string[] | Readonly<Record<string, string>>>
>

/** The private key that signs for the client. */
export interface ClientKey {
  /** A private JWK (RFC 7517), without members that restrict its use. */
  readonly jwk: Readonly<Record<string, string>>
  readonly kid: string | undefined
  readonly alg: SigningAlgorithm
}

/** The HTTP proxy between the gateway and the provider. */
export interface EgressProxyConfig {
  /** Without user name and password. */
  readonly url: URL
  /** Where the setting comes from, for people: `egress_proxy.url` or an environment variable. */
  readonly from: string
  /** The value of `Proxy-Authorization` (RFC 9110 §11.7.2). A secret. */
  readonly authorization: string | undefined
  readonly noProxy: readonly NoProxy[]
  /** Certificate authorities (PEM) for a proxy with https, in addition to those of Node.js. */
  readonly ca: string | undefined
}

/** Hosts that are reached without the proxy. Absent `port`: at any port. */
export type NoProxy =
  | { readonly kind: 'all' }
  /** The host and its subdomains. */
  | { readonly kind: 'host'; readonly host: string; readonly port: number | undefined }
  | { readonly kind: 'subnet'; readonly subnet: Subnet; readonly port: number | undefined }

export interface ProviderConfig extends EndSessionConfig {
  /** Its name below `providers`; `provider` for the one of the setting `provider`. */
  readonly name: string
  /** Its path in the configuration: `provider`, `providers.staff`. */
  readonly setting: string
  /** What people read where they choose between providers. */
  readonly title: string
  /** The path of its own endpoints, which begins with `reservedPrefix`. Ends in `/`. */
  readonly prefix: string
  /** The name of the cookie of its sessions. */
  readonly cookieName: string
  readonly issuer: string
  /** Absent: the gateway reads the discovery document. */
  readonly metadata: ProviderMetadata | undefined
  readonly client_id: string
  /** Empty when `token_endpoint_auth_method` uses none. */
  readonly client_secret: string
  readonly token_endpoint_auth_method:
    | 'client_secret_basic'
    | 'client_secret_post'
    | 'client_secret_jwt'
    | 'private_key_jwt'
    | 'tls_client_auth'
    | 'self_signed_tls_client_auth'
  readonly clientKey: ClientKey | undefined
  /** The `aud` of a client assertion (RFC 7523 §3 (3)). */
  readonly clientAssertionAudience: 'issuer' | 'token_endpoint'
  /** The certificate for connections to the provider, and its key, in PEM. */
  readonly clientCertificate: { readonly cert: string; readonly key: string } | undefined
  /**
   * How the provider sends the authorization response: OAuth 2.0 Multiple Response Type Encoding
   * Practices §2.1, OAuth 2.0 Form Post Response Mode, JARM §2.3.
   */
  readonly response_mode: 'query' | 'form_post' | 'jwt' | 'query.jwt' | 'form_post.jwt'
  readonly pushedAuthorizationRequests: 'when_required' | 'always' | 'never'
  readonly signedRequests: boolean
  readonly dpop: boolean
  /** RFC 8707 §2. Empty: the provider decides what the access tokens are for. */
  readonly resource: readonly string[]
  /** The parameters that a link to `sign-in` may add to the authorization request. */
  readonly linkParams: readonly string[]
  /** Absent: no security profile. */
  readonly profile: 'fapi2' | 'fapi2_message_signing' | undefined
  /** Absent: the provider is reached without a proxy. */
  readonly egressProxy: EgressProxyConfig | undefined
  /** Whether OpenID Connect Front-Channel Logout 1.0 also ends sessions. */
  readonly frontchannelLogout: boolean
  /** Security events of the provider. Absent: none are accepted. */
  readonly signals?: SignalsConfig | undefined
  /** Absent: the gateway chooses them by provider, see `requestedAccess`. */
  readonly scopes: readonly string[] | undefined
  /** Parameters that are added to each authorization request, such as `prompt` or `acr_values`. */
  readonly authorizationParams: Readonly<Record<string, string>>
  /** Short name → name of the claim. Empty below `providers`: see `renamedClaims`. */
  readonly claims: Readonly<Record<string, string>>
  /**
   * Name of a claim → the short name that it has in sessions. Only below `providers`, where a short
   * name means another claim of each provider.
   */
  readonly renamedClaims: Readonly<Record<string, string>>
  /** The claims that are taken from the ID Token instead of UserInfo. */
  readonly idTokenClaims: readonly string[]
  /** The claims that headers and rules use and that UserInfo must contain. */
  readonly userinfoClaims: readonly string[]
  /**
   * The algorithm that the client is registered with. Absent: RS256, or the only one that the
   * provider announces.
   */
  readonly id_token_signed_response_alg: SigningAlgorithm | undefined
  readonly clockToleranceMs: number
  /** The timeout of a request to the provider. */
  readonly timeoutMs: number
  /**
   * Certificate authorities (PEM) for the provider, in addition to those of Node.js.
   */
  readonly ca: string | undefined
}

/** The request that signs out at the provider (RP-Initiated Logout 1.0 §2). */
export interface EndSessionConfig {
  /**
   * Parameters in addition to those of the specification. A value may contain placeholders; `null`:
   * the parameter is not sent.
   */
  readonly endSessionParams: Readonly<Record<string, string | null>>
  /** Whether the browser posts the parameters as a form. */
  readonly endSessionForm: 'when_long' | 'always' | 'never'
  /** A longer URL becomes a form, or loses the ID Token. In bytes. */
  readonly longestEndSessionUrlBytes: number
}

/** What an event does to the sessions of its subject. */
export type SignalAction = 'end' | 'reread_claims' | 'step_up' | 'ignore'

/** The value of `Authorization`, or an access token for the client (RFC 6749 §4.4). */
export type TransmitterAuthorization =
  | { readonly kind: 'value'; readonly value: string }
  | { readonly kind: 'client_credentials'; readonly scopes: readonly string[] }

/** The security events of a provider (OpenID Shared Signals Framework 1.0). */
export interface SignalsConfig {
  /** The issuer of the events. */
  readonly transmitter: string
  /** The accepted values of `aud`. */
  readonly audience: readonly string[]
  /** Absent: the algorithm of the ID Tokens. */
  readonly signingAlg: SigningAlgorithm | undefined
  readonly delivery: 'push' | 'poll'
  /** Whether the gateway creates and updates the stream at the transmitter. */
  readonly stream: 'existing' | 'managed'
  /** Where the events of an existing stream are polled. */
  readonly pollUrl: string | undefined
  /** How the gateway authenticates to the transmitter. Absent: it sends no requests there. */
  readonly authorization: TransmitterAuthorization | undefined
  /** The value of `Authorization` of the transmitter. Absent: not checked. */
  readonly pushSecret: string | undefined
  /** Which formats of subjects name people by an e-mail address. */
  readonly trustedSubjects: readonly ('email' | 'account')[]
  /** By the last segment of the type of the event. */
  readonly events: Readonly<Record<string, SignalAction>>
}

export interface SessionConfig {
  /** Keys of 32 bytes. The first one encrypts; all of them decrypt. */
  readonly keys: readonly Buffer[]
  /** The configuration has no key, so the gateway generated one when it read the file. */
  readonly isKeyGenerated: boolean
  readonly store: StoreConfig
  readonly idleTimeoutMs: number
  readonly absoluteTimeoutMs: number
  /** The access token is refreshed this long before it expires. */
  readonly refreshBeforeMs: number
  /**
   * How often UserInfo is read while a session is in use. Absent: only at sign-in and at refresh.
   */
  readonly pollUserinfoMs: number | undefined
  /** How long sessions in memory are served while Redis does not respond; 0: not at all. */
  readonly storeOutageGraceMs: number
  /** Absent: a person may have any number of sessions. */
  readonly maxPerPerson: MaxPerPersonConfig | undefined
  /** Whether people have a page with their sessions. */
  readonly page: boolean
  readonly cookie: SessionCookieConfig
  readonly deviceBinding: DeviceBindingConfig
}

/** How many sessions a person may have at one client of a provider. */
export interface MaxPerPersonConfig {
  readonly count: number
  /** What a sign-in does that would exceed the number. */
  readonly whenExceeded: 'end_oldest' | 'refuse'
}

/**
 * Sessions that are bound to a key of the browser's device (W3C Device Bound Session Credentials).
 */
export interface DeviceBindingConfig {
  /**
   * Whether browsers register keys. Upstreams and rules say where a session without one has no
   * access.
   */
  readonly isOn: boolean
  /**
   * Whether a session needs a key where no upstream or rule decides: at the endpoints of the
   * gateway that show something of a person.
   */
  readonly isRequired: boolean
  /** How long a browser has access after a proof that it has the key. */
  readonly cookieLifetimeMs: number
  /** How long after the sign-in a session without a key has access where one is required. */
  readonly registrationGraceMs: number
  /** What happens to a bound session when a client has its cookie, but no proof. */
  readonly onMisuse: 'refuse' | 'end'
}

export interface SessionCookieConfig {
  readonly name: string
  /** All hosts of this domain have the same session: its name in ASCII. Absent: one host. */
  readonly domain?: string | undefined
  readonly secure: boolean
  readonly sameSite: 'lax' | 'strict'
}

export type StoreConfig = { readonly kind: 'memory'; readonly maxSessions: number } | RedisStoreConfig

export type RedisStoreConfig = RedisServerConfig | RedisSentinelConfig | RedisClusterConfig

interface RedisSettings {
  readonly username: string | undefined
  readonly password: string | undefined
  /** Absent: no TLS. */
  readonly tls: RedisTlsConfig | undefined
  readonly keyPrefix: string
  readonly timeoutMs: number
  /** How many replicas must have stored an ending before the gateway acknowledges it; 0: none. */
  readonly replicasAcknowledge: number
}

/** All values in PEM. */
export interface RedisTlsConfig {
  /** The certificate authorities that are trusted instead of those of Node.js. */
  readonly ca: string | undefined
  /** The client certificate of the gateway. */
  readonly cert: string | undefined
  readonly key: string | undefined
}

/** A single server. */
export interface RedisServerConfig extends RedisSettings {
  readonly kind: 'redis'
  /** The path is the number of the database. */
  readonly url: URL
}

/** The primary that the Sentinels name at the moment. */
export interface RedisSentinelConfig extends RedisSettings {
  readonly kind: 'redis_sentinel'
  readonly sentinels: readonly Address[]
  readonly name: string
  readonly database: number
  readonly sentinelUsername: string | undefined
  readonly sentinelPassword: string | undefined
}

export interface RedisClusterConfig extends RedisSettings {
  readonly kind: 'redis_cluster'
  /** The nodes that are asked for the layout of the Cluster. */
  readonly nodes: readonly Address[]
}

/** The keys that sign identities. */
export interface SigningKeysConfig {
  /** How long a key signs until the next one takes its place. */
  readonly rotateEveryMs: number
}

/** The languages of the built-in pages (BCP 47). */
export const languages = ['en', 'de', 'fr', 'ja'] as const
export type Language = (typeof languages)[number]

/** The pages of the gateway itself. */
export interface PagesConfig {
  /** The name of the organization or application. Absent: pages show no name. */
  readonly name: string | undefined
  /** A `data:` URI. */
  readonly logo: string | undefined
  /** The language of a page when a browser accepts none of `languages`. */
  readonly language: Language
  readonly colours: { readonly light: ColorsConfig; readonly dark: ColorsConfig }
  readonly support: SupportConfig | undefined
  /** Templates of the operator, which replace built-in pages. */
  readonly templates: Readonly<Partial<Record<PageName, PageTemplate>>>
}

/** Each as `#rrggbb`. */
export interface ColorsConfig {
  readonly background: string
  /** The color behind text. */
  readonly surface: string
  readonly text: string
  /** The color of links and buttons. */
  readonly accent: string
  /** The color of the text on a button. */
  readonly onAccent: string
}

/** Where a person gets help. */
export interface SupportConfig {
  readonly text: string
  /** `https:`, `http:` or `mailto:`; absent: the text has no link. */
  readonly url: string | undefined
}

export interface UpstreamConfig {
  readonly name: string
  /** Its place in the configuration. */
  readonly place?: Place
  /**
   * Host names in lower case, without port; empty: any host. `*.example.com`: each host that has
   * one label more.
   */
  readonly hosts: readonly string[]
  /** The names of the providers at which people sign in for this upstream. At least one. */
  readonly providers: readonly string[]
  /**
   * The upstream serves this path and everything below it. Starts and ends in `/`. The longest
   * match wins.
   */
  readonly path: string
  /** Its path, if any, precedes the paths of requests. With `forwardAuth` a stand-in. */
  readonly url: URL
  /**
   * Another proxy carries the requests to the application, and asks the gateway about each one.
   */
  readonly forwardAuth: boolean
  /** Whether a session without a key of the device has no access, unless a rule says otherwise. */
  readonly needsDeviceBinding: boolean
  /** Whether `path` is removed from the paths of requests. */
  readonly stripPath: boolean
  /** Further origins that the upstream takes for its own. */
  readonly alsoKnownAs: readonly string[]
  readonly setCookie: SetCookieConfig
  readonly responseHeaders: ResponseHeadersConfig
  /** Whether absolute addresses in HTML, CSS and JSON become the public ones. */
  readonly rewriteContent: boolean
  /** Whether HTML pages get the line that shows the notice of the end of a session. */
  readonly sessionNotice: boolean
  /** Its own `external_url`, or that of the gateway. The first label may be `*`. */
  readonly externalUrl: URL
  /** Which `Host` the upstream receives: that of the client, or its own. */
  readonly hostHeader: 'client' | 'upstream'
  /** Which address `Origin` and `Referer` name: the public one, or that of `url`. */
  readonly originHeader: 'client' | 'upstream'
  readonly headers: readonly HeaderConfig[]
  /** Absent: the upstream gets no signed identity. */
  readonly signedIdentity: SignedIdentityConfig | undefined
  readonly rules: readonly RuleConfig[]
  /** Absent: the upstream accepts no access tokens. */
  readonly accessTokens: AccessTokensConfig | undefined
  /** Absent: the upstream gets no exchanged token. */
  readonly tokenExchange: TokenExchangeConfig | undefined
  /** Absent: the upstream accepts no service accounts. */
  readonly serviceAccounts: ServiceAccountsConfig | undefined
  /** The origins, besides its own, whose pages may send requests with the session cookie. */
  readonly trustedOrigins: readonly string[] | 'any'
  /** Absent: the application decides which origins may read its responses. */
  readonly cors: CorsConfig | undefined
  /**
   * `Cache-Control` of responses to signed-in people. `private`: that of the upstream, without
   * shared caches. `no_store`: no cache. `upstream`: unchanged.
   */
  readonly cache: 'private' | 'no_store' | 'upstream'
  /** The cookies of the application that the gateway keeps in the session. `all` is `*`. */
  readonly sessionCookies: readonly NamePattern[]
  readonly logout: {
    readonly paths: readonly LogoutLink[]
    /** Whether the application receives a request for a logout link before the sign-out. */
    readonly passFirst: boolean
    readonly cookies: readonly ApplicationCookie[]
    /** The request that the gateway sends when a session ends. Absent: none. */
    readonly call: LogoutCall | undefined
  }
  /**
   * The protocols of `Upgrade` that are passed on, in lower case. Without a version: any version.
   */
  readonly upgrade: readonly string[]
  readonly connectTimeoutMs: number
  /** How long the upstream may take until its response begins. */
  readonly responseTimeoutMs: number
  /**
   * How long content may pause in either direction; 0: without limit. Event streams and WebSockets
   * have no limit.
   */
  readonly idleTimeoutMs: number
  /** How long an idle connection to the upstream is kept; 0: not at all. */
  readonly keepAliveMs: number
  /** The largest number of concurrent exchanges with the upstream, without streams. */
  readonly maxConnections: number
  /**
   * The largest number of streams: event streams, tunnels, and exchanges that take longer than some
   * seconds.
   */
  readonly maxStreams: number
  /** The largest number of streams of one session, or of one address without a session. */
  readonly maxStreamsPerClient: number
  /** Certificate authorities (PEM) for an `https:` upstream. */
  readonly ca: string | undefined
  readonly tests: readonly EmbeddedTest[]
}

/** Which access tokens of its providers an upstream accepts. */
export interface AccessTokensConfig {
  /** One of these has to be in `aud` of the token. */
  readonly audience: readonly string[]
  /** `jwt`: the gateway verifies the token (RFC 9068). `introspection`: it asks the provider. */
  readonly check: 'jwt' | 'introspection'
  /** The accepted values of `typ` of a JWT, in lower case; `none`: no `typ`. */
  readonly types: readonly string[]
  /** The scopes that each token needs. */
  readonly scopes: readonly string[]
  /** How long the result of an introspection is used at most. */
  readonly introspectionCacheMs: number
  /** Whether the gateway publishes metadata about the resource (RFC 9728). */
  readonly metadata: boolean
}

/** Which token an upstream gets in exchange for the access token (RFC 8693 §2.1). */
export interface TokenExchangeConfig {
  readonly audience: string | undefined
  readonly resource: string | undefined
  readonly scopes: readonly string[]
  readonly requestedTokenType: 'access_token' | 'jwt' | undefined
}

/** The service accounts that an upstream accepts. */
export interface ServiceAccountsConfig {
  /** A name with two entries has two secrets. */
  readonly accounts: readonly ServiceAccount[]
  /** The claims of an account by its name. Absent: it has none of its own. */
  readonly claims: Readonly<Record<string, Claims>>
}

/** The name of a service account, with the hash of a secret. */
export interface ServiceAccount {
  readonly name: string
  readonly hash: ScryptHash
}

/** Which pages of other origins may read responses (CORS). */
export interface CorsConfig {
  readonly origins: readonly string[]
  /** The methods and header fields that they may use. */
  readonly methods: readonly string[]
  readonly headers: readonly string[]
  /** The header fields of responses that they may read. */
  readonly expose: readonly string[]
  /** Whether they may read responses to requests with cookies. */
  readonly credentials: boolean
  /** How long a browser may remember the response to a preflight. */
  readonly maxAgeMs: number
}

/** How the attributes of cookies of an application are changed. Absent: not at all. */
export interface SetCookieConfig {
  readonly domain: 'remove' | undefined
  readonly path: string | undefined
  readonly secure: boolean
  readonly sameSite: 'strict' | 'lax' | 'none' | undefined
}

/** How the header fields of responses of an application are changed. */
export interface ResponseHeadersConfig {
  readonly set: Readonly<Record<string, string>>
  readonly remove: readonly string[]
}

/** A logout link of an application: a path with query parameters and methods. */
export interface LogoutLink {
  readonly path: PathPattern
  /** Decoded names and values. Empty: any query matches. */
  readonly query: readonly (readonly [name: string, value: string])[]
  /** Absent: any method except OPTIONS. */
  readonly methods: readonly string[] | undefined
}

/** A request that ends the session of a person at an application. */
export interface LogoutCall {
  readonly method: 'GET' | 'POST'
  /** Path and query, as clients use them. */
  readonly target: string
  /** How long the application may take until its response begins. */
  readonly timeoutMs: number
}

/** Cookies of an application, which the gateway expires when the session ends. */
export interface ApplicationCookie {
  readonly names: NamePattern
  /**
   * The paths, besides `/`, for which the application may have set them. A browser keeps one cookie
   * of a name for each (RFC 6265 §5.3).
   */
  readonly paths: readonly string[]
  /**
   * The `Domain` attributes with which the application may have set them for the path `/`, the
   * longest first.
   */
  readonly domains: readonly string[]
}

/** The JWT about a signed-in person that an upstream gets. */
export interface SignedIdentityConfig {
  /** The name of the header; `[A-Za-z0-9-]` only. */
  readonly header: string
  /** The `aud` of the JWT. */
  readonly audience: string
  /** How long the JWT is valid. */
  readonly lifetimeMs: number
  /** The claims besides those that the gateway writes itself. */
  readonly claims: readonly SignedClaim[]
  readonly algorithm: IdentityAlgorithm
}

export interface SignedClaim {
  /** The name in the JWT: that of the claim, or a longer path as in the configuration. */
  readonly name: string
  readonly path: ClaimPath
}

/** The JWS algorithms of signed identities. */
export type IdentityAlgorithm = 'ES256' | 'EdDSA'

export type HeaderEncoding =
  'utf8' | 'latin1' | 'percent' | 'base64' | 'base64url' | 'rfc2047' | 'rfc8187' | 'quoted_printable'

/** Where the value of an upstream header comes from. */
export type HeaderSource =
  /** The value of a claim. */
  | { readonly kind: 'claim'; readonly path: ClaimPath }
  /** The first of several claims that has a value. */
  | { readonly kind: 'first_of'; readonly firstOf: readonly ClaimPath[] }
  /** Text with claims in it. */
  | { readonly kind: 'template'; readonly template: ClaimTemplate }
  /** A text that is the same for everybody. A secret one is never shown. */
  | { readonly kind: 'constant'; readonly value: string; readonly isSecret: boolean }
  /** A fact about the request, as the gateway and its trusted proxies see it. */
  | { readonly kind: 'request'; readonly request: RequestFact }
  /** Basic credentials (RFC 7617): a user name made of claims, and one password for everybody. */
  | { readonly kind: 'basic'; readonly user: ClaimTemplate; readonly password: string }
  /** A token of the session (RFC 6750 §2.1). */
  | { readonly kind: 'bearer'; readonly bearer: 'access_token' | 'id_token' }
  /** The token that the provider issues for the upstream in exchange (RFC 8693). */
  | { readonly kind: 'exchanged' }

/**
 * - `client_address`: the IP address of the client.
 * - `scheme`: `http` or `https`, as the client used it.
 * - `host`: the `Host` that the client sent, with its port.
 * - `port`: the port of that host, or the default port of the scheme.
 * - `prefix`: the `path` of the upstream without the slash at its end; none for `/`.
 */
export type RequestFact = 'client_address' | 'scheme' | 'host' | 'port' | 'prefix'

/** How the text of a claim is changed, in this order: `after`, `before`, `case`, `map`. */
export interface ClaimChanges {
  /** Keeps what follows the last occurrence of this text. */
  readonly after?: string
  /** Keeps what precedes the last occurrence of this text. */
  readonly before?: string
  readonly case?: 'lower' | 'upper'
  /** Value → replacement; `*`: any other value. Values without a replacement are left out. */
  readonly map?: ReadonlyMap<string, string>
}

export interface HeaderConfig {
  /** As in the configuration; `[A-Za-z0-9-]` only. */
  readonly name: string
  readonly source: HeaderSource
  /** Absent: the claims are sent as they are. */
  readonly changes?: ClaimChanges
  /** Whether the claim is sent as JSON. */
  readonly json?: boolean
  /** The separator between the members of a list. */
  readonly join: string
  readonly encode: HeaderEncoding
  readonly maxBytes: number
  /**
   * What happens to a longer value. `omit`: no header. `refuse`: the gateway refuses the request.
   * `trim`: a list loses members at its end; any other value is omitted.
   */
  readonly tooLong: 'omit' | 'refuse' | 'trim'
  /**
   * Whether the gateway refuses the request when the header has no value. Otherwise it omits the
   * header.
   */
  readonly required: boolean
}

export interface RuleConfig {
  /**
   * Its place and its path (`upstreams.orders.rules[0]`). Absent in the rule that applies when no
   * other one matches.
   */
  readonly place?: Place
  readonly setting?: string
  /** A name for people. */
  readonly name?: string | undefined
  readonly path: PathPattern
  /** Absent: any method. */
  readonly methods: readonly string[] | undefined
  /** Absent: any client. */
  readonly clients?: Networks | undefined
  readonly access: 'public' | 'optional' | 'signed_in'
  readonly unauthenticated: 'auto' | 'redirect' | '401'
  /** All of them apply to a signed-in person. */
  readonly require: readonly RequirementConfig[]
  /**
   * `observe`: a person who does not meet `require` or `stepUp` has access, and the audit log says
   * so.
   */
  readonly mode?: 'enforce' | 'observe'
  /** How the person has to authenticate. Absent: as for any sign-in. */
  readonly stepUp?: StepUp
  /** Whether a session without a key of the device has no access. Absent: as the upstream says. */
  readonly needsDeviceBinding?: boolean
  /**
   * A request may have an access token instead of a session. It needs these scopes besides those of
   * the upstream. Absent: the rule accepts no access tokens.
   */
  readonly accessTokens?: { readonly scopes: readonly string[] }
  /**
   * A request may have the credentials of one of these service accounts instead of a session.
   * Absent: the rule accepts no service accounts.
   */
  readonly serviceAccounts?: readonly string[] | 'all'
  /** All headers for requests of this rule. Absent: those of the upstream. */
  readonly headers?: readonly HeaderConfig[]
}

export interface Networks {
  readonly networks: AddressSet
  /** As they are written. */
  readonly text: readonly string[]
}

/** What has to be true of a signed-in person or of the request. */
export type RequirementConfig =
  | ClaimRequirement
  /** The e-mail address is in one of these domains: lower case, in ASCII (RFC 5891). */
  | { readonly kind: 'email_domains'; readonly emailDomains: readonly string[]; readonly verified: boolean }
  | ({ readonly kind: 'networks' } & Networks)
  | { readonly kind: 'time'; readonly time: TimeWindow }
  | { readonly kind: 'methods'; readonly methods: readonly string[] }
  | { readonly kind: 'all'; readonly all: readonly RequirementConfig[] }
  | { readonly kind: 'any'; readonly any: readonly RequirementConfig[] }
  | { readonly kind: 'not'; readonly not: RequirementConfig }

/** Conditions for the values of one claim, all of which apply. */
export interface ClaimRequirement {
  readonly kind: 'claim'
  readonly claim: ClaimPath
  /** The path of the claim as in the configuration, for messages. */
  readonly claimText: string
  readonly equals?: string | undefined
  readonly anyOf?: readonly string[] | undefined
  readonly allOf?: readonly string[] | undefined
  readonly noneOf?: readonly string[] | undefined
  readonly contains?: string | undefined
  readonly beginsWith?: string | undefined
  readonly endsWith?: string | undefined
  readonly matches?: LinearPattern | undefined
}

export type ExpectedOutcome = 'pass' | 'sign_in' | 'sign_out' | 'unauthorized' | 'forbidden' | 'no_route'

/** A test in the configuration: a person, a request, and the decision that is expected. */
export interface EmbeddedTest {
  /** Its place in the configuration. */
  readonly place: Place
  /** Its path in the file: `upstreams.orders.tests[0]`. */
  readonly setting: string
  /** Absent: nobody is signed in. */
  readonly as: Claims | undefined
  /** `as` are the claims of an access token, and not those of a session. */
  readonly bearer: boolean
  /** The request has the credentials of this service account. Absent: it has none. */
  readonly serviceAccount: string | undefined
  readonly method: string
  readonly path: string
  /** Its host, in lower case. Absent: the first one of the upstream. */
  readonly host?: string | undefined
  /** The address of the client. Absent: unknown. */
  readonly from?: string | undefined
  /** When the request arrives, in ms since the epoch. Absent: now. */
  readonly at?: number | undefined
  readonly expect: ExpectedOutcome
  /** Headers the upstream must get, by name; `null`: must not get. */
  readonly headers: Readonly<Record<string, string | null>>
}
