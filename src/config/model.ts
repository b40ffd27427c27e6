import type { ClaimPath, Claims, ClaimTemplate } from '../core/claims.ts'
import type { PageName, PageTemplate } from '../core/page-template.ts'
import type { PathPattern } from '../core/path-pattern.ts'
import type { Place } from './document/sources.ts'
import type { Rate } from './quantities.ts'

/**
 * A configuration that has been checked. Each field has the name of its setting in camelCase, with
 * a suffix for the unit of a duration or a size: `drain_timeout` → `drainTimeoutMs`, `header_size`
 * → `headerSizeBytes`. Exceptions:
 *
 * - Parameters of OAuth and OpenID Connect keep the spelling of their specification (`client_id`).
 * - `ca`, `cert` and `key` hold the content of `ca_file`, `cert_file` and `key_file`.
 * - `store.kind` says which of `memory` and `redis` (`url`, `sentinels`, `cluster`) is configured;
 *   `nodes` are the addresses in `cluster`.
 * - `method` and `path` of a test replace `get`, `post` and so on; `support.url` replaces `mail`.
 */
export interface GatewayConfig {
  readonly version: 1
  /** The file it came from, as it was named on the command line. */
  readonly file: string
  readonly listen: ListenConfig
  /** Health and readiness, on an address of its own; absent when not configured. */
  readonly admin: AdminConfig | undefined
  /** Where browsers reach the gateway: an origin, without path. */
  readonly externalUrl: URL
  /** All of the gateway's own URLs lie below it; starts and ends in `/`. */
  readonly reservedPrefix: string
  /** The peers whose `X-Forwarded-*` is believed. */
  readonly trustedProxies: readonly Subnet[]
  /** How many processes share the port; 1 with the memory store. */
  readonly workers: number
  readonly provider: ProviderConfig
  readonly session: SessionConfig
  readonly upstreams: readonly UpstreamConfig[]
  readonly pages: PagesConfig
  readonly limits: LimitsConfig
  readonly shutdown: { readonly drainTimeoutMs: number }
  readonly log: LogConfig
  /** Absent: nothing is traced. */
  readonly tracing: TracingConfig | undefined
}

/** Where health, readiness and metrics are asked for. */
export interface AdminConfig extends Address {
  /** Absent: there is no page for browsers. */
  readonly page: AdminPageConfig | undefined
}

export interface AdminPageConfig {
  /** Absent: nobody is asked for one, and the address is of this machine only. */
  readonly token: string | undefined
  /** The host names, beside IP addresses and `localhost`, that the page is asked for by. */
  readonly hosts: readonly string[]
  /** The claim that administrators see beside `sub`. Absent: none. */
  readonly showClaim: ClaimPath | undefined
}

export interface TracingConfig {
  /** The URL that traces are posted to. */
  readonly otlp: URL
  /** Which part of the requests is traced, from 0 to 1. */
  readonly sample: number
  readonly serviceName: string
  /** Further attributes of the resource. */
  readonly resource: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  /** Certificate authorities (PEM) that are trusted in addition to the usual ones. */
  readonly ca: string | undefined
}

export interface LogConfig {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  /** Whether each request has a line, of the level info. */
  readonly access: boolean
  /** `auto`: pretty on a terminal. */
  readonly format: 'json' | 'pretty' | 'auto'
}

export interface Address {
  readonly host: string
  readonly port: number
}

export interface ListenConfig extends Address {
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined
}

export interface Subnet {
  readonly address: string
  readonly prefix: number
  readonly family: 'ipv4' | 'ipv6'
}

export interface LimitsConfig {
  /** All header lines of a request together, in bytes. */
  readonly headerSizeBytes: number
  /** How long a client may take to send its header lines. */
  readonly headersTimeoutMs: number
  /** How many header lines a request may have. */
  readonly headerCount: number
  /** How long a client may pause while it sends a body. */
  readonly bodyIdleTimeoutMs: number
  /** How much of a body a client has to send, on average over `bodyIdleTimeoutMs`; 0: any. */
  readonly bodyRateBytesPerSecond: number
  /** How many connections each process has open to clients. */
  readonly connections: number
  readonly perClient: ClientLimitsConfig
}

/**
 * What one client address may do, an IPv6 network of /64 counting as one. Each process counts for
 * itself.
 */
export interface ClientLimitsConfig {
  /** Connections that are open; does not hold for trusted proxies. */
  readonly connections: number
  /** Sign-ins that are begun. */
  readonly signIns: Rate
  /** Browsers that come back from the provider. */
  readonly callbacks: Rate
  /** Those of them that are being worked on, for which the provider is asked. */
  readonly callbacksAtOnce: number
  /** Logout tokens that turn out to be none. */
  readonly refusedLogoutTokens: Rate
}

/**
 * The JWS algorithms an ID Token or Logout Token may be signed with. `none` and HMAC are not among
 * them, ever.
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

export interface ProviderConfig {
  readonly issuer: string
  readonly client_id: string
  readonly client_secret: string
  readonly token_endpoint_auth_method: 'client_secret_basic' | 'client_secret_post'
  /**
   * How the authorization response comes: OAuth 2.0 Multiple Response Type Encoding Practices §2.1,
   * OAuth 2.0 Form Post Response Mode.
   */
  readonly response_mode: 'query' | 'form_post'
  /** Whether sessions also end by OpenID Connect Front-Channel Logout 1.0. */
  readonly frontchannelLogout: boolean
  /** Absent: what suits the provider is asked for, see `requestedAccess`. */
  readonly scopes: readonly string[] | undefined
  /** Parameters added to each authorization request, for example `prompt` or `acr_values`. */
  readonly authorizationParams: Readonly<Record<string, string>>
  /** Short names for claims with long ones. */
  readonly claims: Readonly<Record<string, string>>
  /** The claims that come out of the ID Token, and not out of userinfo. */
  readonly idTokenClaims: readonly string[]
  /** The other claims that headers and rules name: userinfo has to have them. */
  readonly userinfoClaims: readonly string[]
  /**
   * The one algorithm that this client is registered with; absent: RS256, or the only one the
   * provider announces.
   */
  readonly id_token_signed_response_alg: SigningAlgorithm | undefined
  readonly clockToleranceMs: number
  /** How long a call to the provider may take. */
  readonly timeoutMs: number
  /**
   * Certificate authorities (PEM) that are trusted for the provider in addition to the usual ones.
   */
  readonly ca: string | undefined
}

export interface SessionConfig {
  /** 32 bytes each: the first seals, all open. */
  readonly keys: readonly Buffer[]
  /** The file names no key: the one above was drawn by chance when it was read. */
  readonly isKeyDrawn: boolean
  readonly store: StoreConfig
  readonly idleTimeoutMs: number
  readonly absoluteTimeoutMs: number
  /** How long before the access token expires it is refreshed. */
  readonly refreshBeforeMs: number
  /** How often userinfo is read while a session is used; absent: only at sign-in and at refresh. */
  readonly pollUserinfoMs: number | undefined
  /** How long sessions in memory are served although Redis does not answer; 0: not at all. */
  readonly storeOutageGraceMs: number
  readonly cookie: SessionCookieConfig
}

export interface SessionCookieConfig {
  readonly name: string
  readonly secure: boolean
  readonly sameSite: 'lax' | 'strict'
}

export type StoreConfig = { readonly kind: 'memory'; readonly maxSessions: number } | RedisStoreConfig

export type RedisStoreConfig = RedisServerConfig | RedisSentinelConfig | RedisClusterConfig

interface RedisSettings {
  readonly username: string | undefined
  readonly password: string | undefined
  /** Absent: without TLS. */
  readonly tls: RedisTlsConfig | undefined
  readonly keyPrefix: string
  readonly timeoutMs: number
  /** How many replicas must have the end of a session before it is acknowledged; 0: none. */
  readonly replicasAcknowledge: number
}

/** In PEM, all of it. */
export interface RedisTlsConfig {
  /** The authorities that are trusted instead of the usual ones. */
  readonly ca: string | undefined
  /** How the gateway proves to Redis who it is. */
  readonly cert: string | undefined
  readonly key: string | undefined
}

/** One server. */
export interface RedisServerConfig extends RedisSettings {
  readonly kind: 'redis'
  /** Its path is the number of the database. */
  readonly url: URL
}

/** The primary that the Sentinels name, whichever it is at the moment. */
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
  /** Those that are asked for all the others. */
  readonly nodes: readonly Address[]
}

/** The languages that the gateway's own pages are written in, as BCP 47 names them. */
export const languages = ['en', 'de', 'fr', 'ja'] as const
export type Language = (typeof languages)[number]

/** What a visitor sees of the gateway itself. */
export interface PagesConfig {
  /** Of the organisation or application; absent: pages have no name on them. */
  readonly name: string | undefined
  /** A `data:` URI. */
  readonly logo: string | undefined
  /** For whoever asks for none of the languages there are. */
  readonly language: Language
  readonly colours: { readonly light: ColoursConfig; readonly dark: ColoursConfig }
  readonly support: SupportConfig | undefined
  /** Pages that are the operator's own. */
  readonly templates: Readonly<Partial<Record<PageName, PageTemplate>>>
}

/** Each as `#rrggbb`. */
export interface ColoursConfig {
  readonly background: string
  /** Of the part of the page that is written on. */
  readonly surface: string
  readonly text: string
  /** Of links and buttons. */
  readonly accent: string
  /** Of the text on a button. */
  readonly onAccent: string
}

/** Whom a visitor can turn to. */
export interface SupportConfig {
  readonly text: string
  /** `https:`, `http:` or `mailto:`; absent: the text stands for itself. */
  readonly url: string | undefined
}

export interface UpstreamConfig {
  readonly name: string
  /** Where it stands. */
  readonly place?: Place
  /** Host names in lower case, without port; empty: any host. */
  readonly hosts: readonly string[]
  /**
   * The upstream serves this path and all below it; starts and ends in `/`. The longest one wins.
   */
  readonly path: string
  readonly url: URL
  /** Its own `external_url`, or the gateway's. */
  readonly externalUrl: URL
  /** Which `Host` the upstream is told: the one the client named, or the upstream's own. */
  readonly hostHeader: 'client' | 'upstream'
  readonly headers: readonly HeaderConfig[]
  readonly rules: readonly RuleConfig[]
  /** The origins, beside its own, whose pages may make requests in the person's name. */
  readonly trustedOrigins: readonly string[] | 'any'
  /**
   * What caches are told of answers to who is signed in: what the upstream says, but never to share
   * them; nothing at all to keep; what it says.
   */
  readonly cache: 'private' | 'no_store' | 'upstream'
  readonly logout: { readonly paths: readonly LogoutLink[]; readonly cookies: readonly ApplicationCookie[] }
  /** The protocols of `Upgrade` that are passed on, in lower case; without a version: any. */
  readonly upgrade: readonly string[]
  readonly connectTimeoutMs: number
  /** How long the upstream may take until its answer begins. */
  readonly responseTimeoutMs: number
  /**
   * How long a body may pause, either way, in milliseconds; 0: for ever. Event streams and
   * WebSockets may pause for ever.
   */
  readonly idleTimeoutMs: number
  /** How long a connection to the upstream is kept without a request; 0: not at all. */
  readonly keepAliveMs: number
  /** How many exchanges there are with the upstream at the same time, without streams. */
  readonly maxConnections: number
  /**
   * How many streams there are: event streams, tunnels, and exchanges that take longer than some
   * seconds.
   */
  readonly maxStreams: number
  /** How many streams of one session, or of one address without a session. */
  readonly maxStreamsPerClient: number
  /** Certificate authorities (PEM) for an `https:` upstream. */
  readonly ca: string | undefined
  readonly tests: readonly EmbeddedTest[]
}

/** A logout link of an application: a path, and the query parameters that a request for it has. */
export interface LogoutLink {
  readonly path: PathPattern
  /** Names and values, decoded. Empty: the path alone is the link. */
  readonly query: readonly (readonly [name: string, value: string])[]
}

/** A cookie of an application, which ends with the session. */
export interface ApplicationCookie {
  readonly name: string
  /**
   * The paths, besides `/`, that the application may have set it for; a browser keeps one cookie
   * for each (RFC 6265 §5.3).
   */
  readonly paths: readonly string[]
  /**
   * The `Domain` attributes that the application may have set it with for the path `/`, the longest
   * first.
   */
  readonly domains: readonly string[]
}

export type HeaderEncoding = 'utf8' | 'latin1' | 'percent' | 'base64' | 'rfc8187'

export interface HeaderConfig {
  /** As it was written; `[A-Za-z0-9-]` only. */
  readonly name: string
  readonly template: ClaimTemplate
  /** What stands between the members of a list. */
  readonly join: string
  readonly encode: HeaderEncoding
  readonly maxBytes: number
  /** Without a value the request is refused; otherwise the header is absent. */
  readonly required: boolean
}

export interface RuleConfig {
  /**
   * Where it stands, and what it is called there: `upstreams.orders.rules[0]`. Absent for what
   * applies where no rule matches.
   */
  readonly place?: Place
  readonly setting?: string
  readonly path: PathPattern
  /** Absent: any method. */
  readonly methods: readonly string[] | undefined
  readonly access: 'public' | 'optional' | 'signed_in'
  readonly unauthenticated: 'auto' | 'redirect' | '401'
  /** All of them have to be met. */
  readonly require: readonly RequirementConfig[]
}

export interface RequirementConfig {
  readonly claim: ClaimPath
  /** As it was written, for messages. */
  readonly claimText: string
  readonly anyOf: readonly string[] | undefined
  readonly allOf: readonly string[] | undefined
  readonly noneOf: readonly string[] | undefined
}

export type ExpectedOutcome = 'pass' | 'sign_in' | 'sign_out' | 'unauthorized' | 'forbidden' | 'no_route'

/** A test that stands beside the rules: as whom, what, and what is to come of it. */
export interface EmbeddedTest {
  /** Where it stands. */
  readonly place: Place
  /** What it is called in the file: `upstreams.orders.tests[0]`. */
  readonly setting: string
  /** Absent: nobody is signed in. */
  readonly as: Claims | undefined
  readonly method: string
  readonly path: string
  readonly expect: ExpectedOutcome
  /** Headers the upstream must get, by name; `null`: must not get. */
  readonly headers: Readonly<Record<string, string | null>>
}
