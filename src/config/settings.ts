// Generated from schemas/gateway.schema.json by `npm run reference`: do not edit.
// These types describe a document after validation. Invalid values have been reported and removed,
// so a required setting may be missing, and a list may have gaps. Defaults have been filled in.

import type { JsonValue } from '../core/claims.ts'

/** A list. An invalid entry leaves a gap, so that the other entries keep their index. */
export type List<T> = readonly (T | undefined)[]

/**
 * One file that puts applications behind single sign-on. Durations are written as 30m, sizes as
 * 16kb, secrets as { env: NAME } or { file: PATH }.
 */
export interface GatewaySettings {
  /** The version of this format. */
  readonly version?: 1
  /** Where the gateway listens: HOST:PORT, a port alone, or a map with an address and TLS. */
  readonly listen: string | number | ListenSettings
  /**
   * Health, readiness, metrics and the page for administration, on an address of its own. Absent:
   * not served.
   */
  readonly admin?: AdminSettings
  /**
   * Where browsers reach the gateway: scheme, host and port, without a path. The redirect URI
   * registered with the provider begins with it.
   */
  readonly external_url?: Origin
  /** All of the gateway's own URLs lie below this path. It never reaches an upstream. */
  readonly reserved_prefix: string
  /**
   * The peers whose X-Forwarded-* headers are believed: IP addresses and CIDR ranges. Nobody's are
   * believed otherwise.
   */
  readonly trusted_proxies: List<string>
  /**
   * How many processes share the port: a number, or auto for one per processor core. Always one
   * with the memory store.
   */
  readonly workers: 'auto' | number
  /** The OpenID Provider that people sign in at. */
  readonly provider?: ProviderSettings
  /** How long a session lives, and where it is remembered. */
  readonly session: SessionSettings
  /**
   * Files with further upstreams: each is a map of upstreams, as it would stand below upstreams.
   * Relative to this file; * may stand in the file name.
   */
  readonly include?: List<Path>
  /** The applications behind the gateway, each under a name of your own. */
  readonly upstreams?: Readonly<Record<string, UpstreamSettings>>
  /** What visitors see of the gateway itself: errors, sign-out, and what to do next. */
  readonly pages: PagesSettings
  /** What a client may take of the gateway. */
  readonly limits: LimitsSettings
  /** How the gateway stops. */
  readonly shutdown: ShutdownSettings
  /** What is written to standard output, one event a line. */
  readonly log: LogSettings
  /** Sends traces to an OpenTelemetry collector, by OTLP over HTTP. Absent: none. */
  readonly tracing?: TracingSettings
}

/** Where the gateway listens: HOST:PORT, a port alone, or a map with an address and TLS. */
export interface ListenSettings {
  /** HOST:PORT or a port alone. */
  readonly address: Address
  /** Serve https instead of http. */
  readonly tls?: ListenTlsSettings
}

/** "HOST:PORT" such as 127.0.0.1:9090, or a port. */
export type Address = string | number

/** Serve https instead of http. */
export interface ListenTlsSettings {
  /** The certificate and its chain (PEM), the gateway's own first. */
  readonly cert_file?: Path
  /** The private key of the certificate (PEM, not encrypted). */
  readonly key_file?: Path
}

/** The path of a file. */
export type Path = string

/**
 * Health, readiness, metrics and the page for administration, on an address of its own. Absent: not
 * served.
 */
export interface AdminSettings {
  /** HOST:PORT, or a port alone, which is then served on 127.0.0.1 only. */
  readonly listen?: Address
  /**
   * A page for browsers: who is signed in, the provider, the upstreams, the last logout tokens.
   * Ends sessions. Absent: not served.
   */
  readonly page?: AdminPageSettings
}

/**
 * A page for browsers: who is signed in, the provider, the upstreams, the last logout tokens. Ends
 * sessions. Absent: not served.
 */
export interface AdminPageSettings {
  /**
   * What a browser asks for as the password; the user name may be anything. Absent: nothing is
   * asked, which is possible on this machine only.
   */
  readonly token?: SecretSettings
  /** The host names that the page is asked for by. IP addresses and localhost need not be named. */
  readonly hosts: List<string>
  /**
   * The path of the claim that names people, beside sub, on this page and in what gatehouse
   * sessions prints. Absent: sub alone.
   */
  readonly show_claim?: string
}

/** Where the value of a secret is read from: an environment variable or a file. */
export interface SecretSettings {
  /** The environment variable that holds the secret. */
  readonly env?: string
  /**
   * The file that holds the secret, relative to this file. A line break at its end does not count.
   */
  readonly file?: Path
}

/** An http or https URL without a path, such as https://orders.example.com. */
export type Origin = string

/** The OpenID Provider that people sign in at. */
export interface ProviderSettings {
  /**
   * The provider's issuer identifier, exactly as the provider spells it. Its discovery document
   * lies below it.
   */
  readonly issuer?: string
  /** The client's identifier, as registered with the provider. */
  readonly client_id?: string
  /** The client's secret, as registered with the provider. */
  readonly client_secret?: SecretSettings
  /**
   * How the gateway shows its secret to the provider: in the Authorization header or in the form.
   */
  readonly token_endpoint_auth_method: 'client_secret_basic' | 'client_secret_post'
  /**
   * How the provider sends the browser back: with a redirect, or with a form that the browser
   * posts, so that the code stands in no address.
   */
  readonly response_mode: 'query' | 'form_post'
  /**
   * Whether sessions also end when the provider has the browser load frontchannel-logout in a
   * frame. Nothing is signed there: whoever knows a session's sid can end it.
   */
  readonly frontchannel_logout: boolean
  /**
   * What is asked of the provider; openid has to be among them. Absent: openid, profile and email,
   * and offline_access where the provider gives a refresh token for it only and loses nothing by
   * it.
   */
  readonly scopes?: List<string>
  /** Parameters added to each authorization request. */
  readonly authorization_params: Readonly<Record<string, string>>
  /**
   * Short names for claims with long ones. A claim path, here and in headers and rules, may then
   * begin with the short name.
   */
  readonly claims: Readonly<Record<string, string>>
  /**
   * Claims that are taken from the ID Token, and not from userinfo: for providers that put groups
   * or roles there only. They are as they were at sign-in, or at the last refresh that brought an
   * ID Token.
   */
  readonly id_token_claims: List<string>
  /**
   * The one algorithm that this client is registered with. Absent: RS256, or the only one the
   * provider announces.
   */
  readonly id_token_signed_response_alg?:
    'RS256' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512' | 'ES256' | 'ES384' | 'ES512' | 'EdDSA'
  /** How far the provider's clock and ours may differ, at most 5m. */
  readonly clock_tolerance: Duration
  /** How long a call to the provider may take, from 100ms to 60s. */
  readonly timeout: Duration
  /**
   * Certificate authorities (PEM) that are trusted for the provider, in addition to the usual ones.
   */
  readonly ca_file?: Path
}

/** A duration such as 30m: a whole number and ms, s, m, h or d. */
export type Duration = string

/** How long a session lives, and where it is remembered. */
export interface SessionSettings {
  /**
   * The keys that seal what is stored: 32 bytes each, in base64, base64url or hex. The first seals,
   * all of them open. Needed with Redis; with the memory store they may be left away.
   */
  readonly keys?: List<SecretSettings>
  /** Where sessions are remembered: memory (this process, lost when it stops) or redis. */
  readonly store: 'memory' | SessionStoreSettings
  /**
   * A session that is not used for so long ends. Requests, moving uploads and downloads, and what a
   * browser sends over a WebSocket are a use. From 1s to 365d.
   */
  readonly idle_timeout: Duration
  /** A session ends so long after sign-in, used or not. From 1s to 365d. */
  readonly absolute_timeout: Duration
  /** So long before the access token expires it is refreshed. From 0s to 1h. */
  readonly refresh_before: Duration
  /**
   * How often userinfo is read while a session is used: detects revocation between logout tokens.
   * From 10s to 1d. Absent: only at sign-in and at refresh.
   */
  readonly poll_userinfo?: Duration
  /**
   * While Redis does not answer, a process goes on for so long with the sessions that it has in
   * memory. The risk: a session that is ended elsewhere meanwhile is served here until then. From
   * 0s to 5m. 0s: requests with a session get 503 at once.
   */
  readonly store_outage_grace: Duration
  /**
   * The session cookie. It is always HttpOnly with Path=/, and Secure when external_url is https.
   */
  readonly cookie: SessionCookieSettings
}

/** Where sessions are remembered: memory (this process, lost when it stops) or redis. */
export interface SessionStoreSettings {
  /** Sessions live in this process: for trying out, and for a sidecar that may forget. */
  readonly memory?: SessionStoreMemorySettings
  /** Sessions live in Redis and are shared by all processes and replicas. */
  readonly redis?: RedisSettings
}

/** Sessions live in this process: for trying out, and for a sidecar that may forget. */
export interface SessionStoreMemorySettings {
  /** How many sessions are kept; beyond it the one that was unused for longest is dropped. */
  readonly max_sessions: number
}

/** Sessions live in Redis and are shared by all processes and replicas. */
export interface RedisSettings {
  /**
   * One server: redis://HOST:PORT or, with TLS, rediss://HOST:PORT; a database number may follow as
   * a path.
   */
  readonly url?: string
  /**
   * The Sentinels that know which server is the primary: HOST:PORT or, with TLS to them and to
   * Redis, rediss://HOST:PORT. The port is 26379 unless it is given.
   */
  readonly sentinels?: List<string>
  /** What the Sentinels call the primary. */
  readonly name?: string
  /**
   * The number of the database, with sentinels; absent: 0. With url it stands in the URL, and a
   * Cluster has only 0.
   */
  readonly database?: number
  /** The user to sign in to the Sentinels as; absent: the default user. */
  readonly sentinel_username?: string
  /** The password to sign in to the Sentinels with; absent: none, also when Redis has one. */
  readonly sentinel_password?: SecretSettings
  /**
   * Some nodes of a Redis Cluster, which are asked for the others: HOST:PORT or, with TLS,
   * rediss://HOST:PORT. The port is 6379 unless it is given.
   */
  readonly cluster?: List<string>
  /** The user to sign in to Redis as; absent: the default user. */
  readonly username?: string
  /** The password to sign in to Redis with. */
  readonly password?: SecretSettings
  /** Certificate authorities (PEM) that are trusted for rediss://, in place of the usual ones. */
  readonly ca_file?: Path
  /**
   * The gateway's client certificate (PEM) for rediss://, and behind it those of its authorities.
   */
  readonly cert_file?: Path
  /** The private key (PEM) of the client certificate. */
  readonly key_file?: Path
  /**
   * What the names of all keys in Redis begin with. Gateways that share a Redis but not their
   * sessions need different ones.
   */
  readonly key_prefix: string
  /**
   * How long an operation may take, such as to create a session or to end one, from 100ms to 10s.
   * An operation is up to five commands, one after the other.
   */
  readonly timeout: Duration
  /**
   * How many replicas of Redis must have stored the end of a session before the gateway
   * acknowledges a Logout Token or a sign-out. When fewer do within the timeout, the response is
   * 503, and the provider has to send the Logout Token again. In a Cluster: how many replicas of
   * each node.
   */
  readonly replicas_acknowledge: number
}

/** The session cookie. It is always HttpOnly with Path=/, and Secure when external_url is https. */
export interface SessionCookieSettings {
  /** The cookie's name. With an https external_url __Host- is put before it. */
  readonly name: string
  /** The cookie's SameSite attribute. */
  readonly same_site: 'lax' | 'strict'
}

/** An application behind the gateway. */
export interface UpstreamSettings {
  /**
   * Where the application listens: scheme, host and port. The path of a request is forwarded
   * unchanged.
   */
  readonly url?: string
  /** The host names it is reached by. Absent: any host, or that of its own external_url. */
  readonly hosts?: List<string>
  /** It serves this path and all below it; the longest one wins. */
  readonly path: string
  /**
   * Where browsers reach this upstream, when it is not the external_url of the gateway. Its sign-in
   * comes back here.
   */
  readonly external_url?: Origin
  /**
   * Which Host header the upstream gets: the one that the client sent, or the upstream's own, from
   * url.
   */
  readonly host_header: 'client' | 'upstream'
  /**
   * What the upstream is told about the person: header names, each with a claim path, a template
   * with claim paths in braces, or the long form. What a client sends under these names is removed.
   */
  readonly headers: Readonly<Record<string, string | HeaderSettings>>
  /**
   * Who may ask for what. The first rule that matches decides; what no rule matches is access:
   * signed_in.
   */
  readonly rules: List<RuleSettings>
  /**
   * The origins, beside its own, whose pages may make requests that change something, and open
   * WebSockets, in the name of who is signed in; or any.
   */
  readonly trusted_origins: 'any' | List<Origin>
  /**
   * What caches are told of answers to who is signed in. private: what the upstream says, but no
   * cache that people share keeps them; no_store: nothing keeps them; upstream: what the upstream
   * says.
   */
  readonly cache: 'private' | 'no_store' | 'upstream'
  /** How the application's own logout becomes a logout from everything. */
  readonly logout: UpstreamLogoutSettings
  /**
   * The protocols that a client may switch to with Upgrade, with any version unless one is given.
   * Others are not passed on.
   */
  readonly upgrade: List<string>
  /** How long connecting may take, from 10ms to 5m. */
  readonly connect_timeout: Duration
  /** How long the upstream may take until its answer begins, from 10ms to 1d. */
  readonly response_timeout: Duration
  /**
   * How long a body may pause, either way, at most 1d; 0s: for ever. Event streams and WebSockets
   * may pause for ever.
   */
  readonly idle_timeout: Duration
  /**
   * How long a connection to the upstream is kept without a request, at most 1h; 0s: not at all.
   * Shorter than what the upstream itself keeps it; where the upstream says it (Keep-Alive:
   * timeout=N), a second less than that at most.
   */
  readonly keep_alive: Duration
  /**
   * How many requests each process sends to the upstream at the same time; further requests wait.
   * Streams do not count.
   */
  readonly max_connections: number
  /**
   * How many streams each process has open to the upstream: event streams, WebSockets, and
   * exchanges that take longer than 5 seconds. Further event streams and WebSockets get 503; other
   * exchanges count for max_connections.
   */
  readonly max_streams: number
  /** How many of these streams one session, or one address without a session, may have open. */
  readonly max_streams_per_client: number
  /**
   * Certificate authorities (PEM) that are trusted for an https upstream, in addition to the usual
   * ones.
   */
  readonly ca_file?: Path
  /** What must come of a request. Run by `gatehouse check`. */
  readonly tests: List<TestSettings>
}

/** A header that the upstream gets: a claim path, a template, or the long form. */
export interface HeaderSettings {
  /** A claim path: fields.costCentre, or '"https://id.example.com/claims/fields".groups[0]'. */
  readonly claim?: string
  /** Text with claim paths in braces; {{ and }} stand for braces. */
  readonly template?: string
  /** What stands between the members of a list. */
  readonly join: string
  /** How the value is written: utf8, latin1, percent, base64 or rfc8187. */
  readonly encode: 'utf8' | 'latin1' | 'percent' | 'base64' | 'rfc8187'
  /** How long the encoded value may be, from 1b to 64kb. */
  readonly max_bytes: Size
  /** true: without a value the request is refused. Otherwise the header is absent. */
  readonly required: boolean
}

/** A size such as 16kb: a whole number and b, kb or mb. */
export type Size = string

/** Who may send which requests to an upstream. */
export interface RuleSettings {
  /**
   * The paths it is about. * stands for one segment, and at the end for everything below: /public/*
   * matches /public and /public/a/b.
   */
  readonly path?: string
  /** The methods it is about. Absent: all. */
  readonly methods?: List<string>
  /**
   * public: anybody, never with an identity. optional: anybody, with the identity if there is one.
   * signed_in: only who is signed in.
   */
  readonly access: 'public' | 'optional' | 'signed_in'
  /**
   * What somebody gets who is not signed in. auto: pages are sent to the sign-in, everything else
   * gets 401. redirect: always the sign-in. 401: always 401.
   */
  readonly unauthenticated: 'auto' | 'redirect' | '401' | 401
  /**
   * What the person's claims have to meet: one requirement, or a list of which all have to be met.
   */
  readonly require?: RequirementSettings | List<RequirementSettings>
}

/** What the values of one claim have to be. */
export interface RequirementSettings {
  /** The claim path it is about. A single value counts as a list of one. */
  readonly claim?: string
  /** At least one of these is among the claim's values. */
  readonly any_of?: List<string>
  /** All of these are among the claim's values. */
  readonly all_of?: List<string>
  /** None of these is among the claim's values. */
  readonly none_of?: List<string>
}

/** How the application's own logout becomes a logout from everything. */
export interface UpstreamLogoutSettings {
  /**
   * The application's own logout links. A request for one signs out of the gateway and of the
   * provider. A link is a path, or a path with query parameters, such as { path: /wp-login.php,
   * query: { action: logout } }.
   */
  readonly paths: List<string | LogoutLinkSettings>
  /**
   * The application's own cookies, by their full names. They are expired in the browser with the
   * session: for the path /, for the path of the upstream, and for the folders of logout.paths.
   */
  readonly cookies: List<string>
}

/** A logout link of the application: a path, or a path with query parameters. */
export interface LogoutLinkSettings {
  /** The path of the link. "*" stands for one segment, and at the end for everything below. */
  readonly path?: string
  /**
   * Query parameters that the link has, with their values. All of them must be there; others may be
   * there too.
   */
  readonly query?: Readonly<Record<string, string>>
}

/** A request, and the decision that the gateway must take about it. */
export interface TestSettings {
  /** The claims of the person who asks. Absent: nobody is signed in. */
  readonly as?: Readonly<Record<string, JsonValue>>
  /** The path that is asked for with GET. */
  readonly get?: RequestPath
  /** The path that is asked for with POST. */
  readonly post?: RequestPath
  /** The path that is asked for with PUT. */
  readonly put?: RequestPath
  /** The path that is asked for with PATCH. */
  readonly patch?: RequestPath
  /** The path that is asked for with DELETE. */
  readonly delete?: RequestPath
  /** The path that is asked for with HEAD. */
  readonly head?: RequestPath
  /** The path that is asked for with OPTIONS. */
  readonly options?: RequestPath
  /** What is to come of it. */
  readonly expect?: 'pass' | 'sign_in' | 'sign_out' | 'unauthorized' | 'forbidden' | 'no_route'
  /** Headers the upstream must get, by name; null: must not get. Only with expect: pass. */
  readonly headers: Readonly<Record<string, string | null>>
}

/** A path such as /admin/. */
export type RequestPath = string

/** What visitors see of the gateway itself: errors, sign-out, and what to do next. */
export interface PagesSettings {
  /** Of the organisation or the application; it stands above each page and in its title. */
  readonly name?: string
  /** A PNG, SVG or WebP image of at most 32 KiB: the path of a file, or a data: URI. */
  readonly logo?: string
  /** For visitors whose browser asks for none of the languages there are. */
  readonly language: 'en' | 'de' | 'fr' | 'ja'
  /** The colours of the pages. */
  readonly colours: PagesColoursSettings
  /** Whom visitors can turn to: a text, and a url or a mail address that it leads to. */
  readonly support?: PagesSupportSettings
  /**
   * A folder with pages of your own, one file each: forbidden.html, signed-out.html and so on. See
   * docs/pages.md.
   */
  readonly templates?: string
}

/** The colours of the pages. */
export interface PagesColoursSettings {
  /** While the visitor's system is light. */
  readonly light: PagesColoursLightSettings
  /** While it is dark. */
  readonly dark: PagesColoursDarkSettings
}

/** While the visitor's system is light. */
export interface PagesColoursLightSettings {
  /** Behind the part of the page that is written on. */
  readonly background: Colour
  /** Behind the text. */
  readonly surface: Colour
  /** Of the text. */
  readonly text: Colour
  /** Of links and buttons. */
  readonly accent: Colour
}

/** A colour such as "#1a4fa3", in quotes, for # begins a comment. */
export type Colour = string

/** While it is dark. */
export interface PagesColoursDarkSettings {
  /** Behind the part of the page that is written on. */
  readonly background: Colour
  /** Behind the text. */
  readonly surface: Colour
  /** Of the text. */
  readonly text: Colour
  /** Of links and buttons. */
  readonly accent: Colour
}

/** Whom visitors can turn to: a text, and a url or a mail address that it leads to. */
export interface PagesSupportSettings {
  /** What it is called, or what to do, such as a telephone number. Absent: the address itself. */
  readonly text?: string
  /** A page where help is found. */
  readonly url?: string
  /** An e-mail address. The request id becomes the subject. */
  readonly mail?: string
}

/** What a client may take of the gateway. */
export interface LimitsSettings {
  /** All header lines of a request together, from 4kb to 1mb. */
  readonly header_size: Size
  /** How many header lines a request may have, from 20 to 1000. */
  readonly header_count: number
  /** How long a client may take to send its header lines, from 1s to 10m. */
  readonly headers_timeout: Duration
  /** How long a client may pause while it sends a body, from 1s to 1h. */
  readonly body_idle_timeout: Duration
  /**
   * How much of a body a client has to send each second, on average over body_idle_timeout, at most
   * 1mb; 0b: any.
   */
  readonly body_rate: Size
  /** How many connections each process has open to clients; further ones are closed at once. */
  readonly connections: number
  /**
   * What one client address may do, in each process. An IPv6 network of /64 counts as one address;
   * behind trusted_proxies it is the address that they name.
   */
  readonly per_client: LimitsPerClientSettings
}

/**
 * What one client address may do, in each process. An IPv6 network of /64 counts as one address;
 * behind trusted_proxies it is the address that they name.
 */
export interface LimitsPerClientSettings {
  /**
   * How many connections it may have open; further ones are closed at once. Does not hold for
   * trusted_proxies.
   */
  readonly connections: number
  /** How many sign-ins it may begin. */
  readonly sign_ins: Rate
  /** How many browsers may come back from the provider. For each of them the provider is asked. */
  readonly callbacks: Rate
  /** How many browsers that have come back may wait for the provider at the same time. */
  readonly callbacks_at_once: number
  /**
   * How many logout tokens that turn out to be none it may send. Addresses that good ones come from
   * are not held to it.
   */
  readonly refused_logout_tokens: Rate
}

/** A rate such as 600/m: a whole number per s, m or h. */
export type Rate = string

/** How the gateway stops. */
export interface ShutdownSettings {
  /** How long requests that are under way may take to finish, from 0s to 1h. */
  readonly drain_timeout: Duration
}

/** What is written to standard output, one event a line. */
export interface LogSettings {
  /** The least severe level that is written. */
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  /** Whether each request has a line: when it is over, of the level info. */
  readonly access: boolean
  /** How lines are written: json, pretty (for people), or auto: pretty on a terminal. */
  readonly format: 'json' | 'pretty' | 'auto'
}

/** Sends traces to an OpenTelemetry collector, by OTLP over HTTP. Absent: none. */
export interface TracingSettings {
  /** The collector's URL. Without a path, /v1/traces is asked for. */
  readonly otlp?: string
  /**
   * Which part of the requests is traced, from 0 to 1. A trusted proxy that has decided already is
   * followed.
   */
  readonly sample: number
  /** How the gateway is called in traces. */
  readonly service_name: string
  /** Further attributes of the resource that traces come from, by the names of OpenTelemetry. */
  readonly resource: Readonly<Record<string, string>>
  /** Headers for the collector, by name, such as Authorization. Each value is a secret. */
  readonly headers: Readonly<Record<string, SecretSettings>>
  /**
   * Certificate authorities (PEM) that are trusted for the collector, in addition to the usual
   * ones.
   */
  readonly ca_file?: Path
}
