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
   * there is none.
   */
  readonly admin?: AdminSettings
  /**
   * Where Envoy asks about requests over gRPC (envoy.service.auth.v3.Authorization), for upstreams
   * with forward_auth. Absent: nowhere.
   */
  readonly ext_authz?: ExtAuthzSettings
  /**
   * Where browsers reach the gateway: scheme, host and port, without a path. The redirect URI
   * registered with the provider begins with it.
   */
  readonly external_url?: Origin
  /** The path of all endpoints of the gateway. Requests below it never reach an upstream. */
  readonly reserved_prefix: string
  /**
   * The proxies in front of the gateway, as IP addresses and CIDR ranges. The gateway trusts the
   * X-Forwarded-* headers of these peers only.
   */
  readonly trusted_proxies: List<string>
  /**
   * The number of processes that share the port: a number, or auto for one per processor core.
   * Always one with the memory store.
   */
  readonly workers: 'auto' | number
  /** The OpenID Provider where people sign in. */
  readonly provider?: ProviderSettings
  /**
   * Several OpenID Providers instead of one, each under a name of your own. Each has sessions, URLs
   * and cookies of its own.
   */
  readonly providers?: Readonly<Record<string, ProviderSettings>>
  /**
   * The HTTP proxy between the gateway and the provider. Upstreams are never reached through it.
   * Absent: that of the environment variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY.
   */
  readonly egress_proxy?: EgressProxySettings
  /** How long sessions live, and where they are stored. */
  readonly session: SessionSettings
  /**
   * Files with more upstreams. Each contains a map like that below upstreams. Paths are relative to
   * this file; the file name may contain *.
   */
  readonly include?: List<Path>
  /** The applications behind the gateway, each under a name of your own. */
  readonly upstreams?: Readonly<Record<string, UpstreamSettings>>
  /** The keys of signed_identity. The gateway creates and replaces them by itself. */
  readonly signing_keys: SigningKeysSettings
  /** The pages of the gateway itself: errors and sign-out. */
  readonly pages: PagesSettings
  /** Limits for clients. */
  readonly limits: LimitsSettings
  /**
   * Forms that people send after their session has ended. The gateway keeps the content, encrypted,
   * until the same person has signed in again and decides.
   */
  readonly kept_requests: KeptRequestsSettings
  /** How the gateway stops. */
  readonly shutdown: ShutdownSettings
  /** The log on standard output: one event per line. */
  readonly log: LogSettings
  /** Sends traces to an OpenTelemetry collector (OTLP over HTTP). Absent: no traces. */
  readonly tracing?: TracingSettings
}

/** Where the gateway listens: HOST:PORT, a port alone, or a map with an address and TLS. */
export interface ListenSettings {
  /** HOST:PORT or a port alone. */
  readonly address: Address
  /** Serve https instead of http. */
  readonly tls?: ListenTlsSettings
  /**
   * Whether the gateway reads ordinary HTTP/1.1 requests itself, which takes less processor time.
   * false: the parser of Node.js reads all requests.
   */
  readonly plain_path: boolean
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
 * Health, readiness, metrics and the page for administration, on an address of its own. Absent:
 * there is none.
 */
export interface AdminSettings {
  /** HOST:PORT, or a port alone, which is then served on 127.0.0.1 only. */
  readonly listen?: Address
  /**
   * A page for administration: charts, sessions, a timeline of their ends, the upstreams, the
   * provider. It can end sessions. Absent: there is none.
   */
  readonly page?: AdminPageSettings
}

/**
 * A page for administration: charts, sessions, a timeline of their ends, the upstreams, the
 * provider. It can end sessions. Absent: there is none.
 */
export interface AdminPageSettings {
  /**
   * The password of the page; the user name does not matter. Absent: no password, which is allowed
   * only when listen is on loopback.
   */
  readonly token?: SecretSettings
  /**
   * The host names at which browsers may open the page. IP addresses and localhost are always
   * allowed.
   */
  readonly hosts: List<string>
  /**
   * A claim path. The page and gatehouse sessions show this claim besides sub. Absent: sub only.
   */
  readonly show_claim?: string
}

/** Where the value of a secret is read from: an environment variable or a file. */
export interface SecretSettings {
  /** The environment variable that contains the secret. */
  readonly env?: string
  /**
   * The file that contains the secret, relative to this file. A line break at its end is ignored.
   */
  readonly file?: Path
}

/**
 * Where Envoy asks about requests over gRPC (envoy.service.auth.v3.Authorization), for upstreams
 * with forward_auth. Absent: nowhere.
 */
export interface ExtAuthzSettings {
  /**
   * HOST:PORT, or a port alone, which is then served on 127.0.0.1 only. Without TLS: use loopback
   * or a private network.
   */
  readonly listen?: Address
  /**
   * The largest message, from 4kb to 4mb. A larger one, for example with the content of a request,
   * gets RESOURCE_EXHAUSTED, which Envoy treats like an authorization service that failed.
   */
  readonly message_size: Size
}

/** A size such as 16kb: a whole number and b, kb or mb. */
export type Size = string

/** An http or https URL without a path, such as https://orders.example.com. */
export type Origin = string

/** The OpenID Provider where people sign in. */
export interface ProviderSettings {
  /**
   * The issuer identifier, exactly as the provider spells it. The discovery document is found below
   * it.
   */
  readonly issuer?: string
  /**
   * What people read where they choose between providers. Absent: the name of the provider below
   * providers.
   */
  readonly title?: string
  /**
   * The metadata of a provider without a discovery document, with the names of OpenID Connect
   * Discovery 1.0 §3. The gateway then requests no discovery document.
   */
  readonly metadata?: ProviderMetadataSettings
  /** The client identifier, as registered at the provider. */
  readonly client_id?: string
  /**
   * The client secret, as registered at the provider. Required for the methods of
   * token_endpoint_auth_method that begin with client_secret.
   */
  readonly client_secret?: SecretSettings
  /**
   * How the gateway authenticates to the provider. client_secret_basic: the secret in the
   * Authorization header; client_secret_post: the secret in the form; client_secret_jwt: a JWT
   * signed with the secret; private_key_jwt: a JWT signed with client_key; tls_client_auth:
   * client_certificate, issued by an authority that the provider trusts;
   * self_signed_tls_client_auth: client_certificate, registered at the provider.
   */
  readonly token_endpoint_auth_method:
    | 'client_secret_basic'
    | 'client_secret_post'
    | 'client_secret_jwt'
    | 'private_key_jwt'
    | 'tls_client_auth'
    | 'self_signed_tls_client_auth'
  /**
   * The private key that signs for the client: for private_key_jwt and signed_requests. PEM (PKCS
   * #8) or JWK.
   */
  readonly client_key?: ProviderClientKeySettings
  /**
   * The audience of the JWT of private_key_jwt and client_secret_jwt: the issuer, or the token
   * endpoint for providers that accept only that.
   */
  readonly client_assertion_audience: 'issuer' | 'token_endpoint'
  /**
   * The certificate that the gateway presents to the provider (RFC 8705): for tls_client_auth and
   * self_signed_tls_client_auth, or beside another method when the provider binds access tokens to
   * it.
   */
  readonly client_certificate?: ProviderClientCertificateSettings
  /**
   * How the provider sends the authorization response. query: a redirect; form_post: a form, so
   * that the code is in no URL; query.jwt: a redirect with a signed JWT (JARM); jwt: the same as
   * query.jwt; form_post.jwt: a form with a signed JWT.
   */
  readonly response_mode: 'query' | 'form_post' | 'jwt' | 'query.jwt' | 'form_post.jwt'
  /**
   * Whether the gateway sends authorization requests to the provider itself (RFC 9126), so that the
   * browser carries only a reference. when_required: when the metadata of the provider requires it;
   * always: at any provider that supports it; never: in the URL.
   */
  readonly pushed_authorization_requests: 'when_required' | 'always' | 'never'
  /** Whether authorization requests are signed with client_key (RFC 9101). */
  readonly signed_requests: boolean
  /**
   * Whether the access tokens of each session are bound to a key of that session (RFC 9449). The
   * provider must then issue tokens of the type DPoP.
   */
  readonly dpop: boolean
  /** The resource servers that access tokens are for (RFC 8707): one URI or several. */
  readonly resource?: string | List<string>
  /**
   * Security events of the provider (OpenID Shared Signals Framework, CAEP, RISC), which end
   * sessions or refresh their claims.
   */
  readonly signals?: ProviderSignalsSettings
  /**
   * Whether sessions also end when the provider loads frontchannel-logout in a frame. These
   * requests are not signed: anybody who knows the sid of a session can end it.
   */
  readonly frontchannel_logout: boolean
  /**
   * The requested scopes, which must include openid. Absent: openid, profile and email, and also
   * offline_access when the provider needs it to issue a refresh token and it has no drawback
   * there.
   */
  readonly scopes?: List<string>
  /** Parameters that are added to each authorization request. */
  readonly authorization_params: Readonly<Record<string, string>>
  /**
   * Parameters of the request that signs out at the provider, in addition to those of RP-Initiated
   * Logout; null: the parameter is not sent. A value may contain {client_id}, {id_token_hint},
   * {post_logout_redirect_uri} and {state}. Absent: what suits the provider.
   */
  readonly end_session_params?: Readonly<Record<string, string | null>>
  /**
   * Whether the browser posts the request that signs out at the provider as a form. when_long: if
   * its URL would be longer than 4 KiB, for example because the ID Token lists many groups, and the
   * provider takes forms; always: no URL contains the ID Token; never: a long URL has client_id in
   * place of the ID Token. Absent: never for Entra ID and Amazon Cognito, when_long for other
   * providers.
   */
  readonly end_session_form?: 'when_long' | 'always' | 'never'
  /** Parameters that a link to sign-in may add to the authorization request, such as ui_locales. */
  readonly link_params: List<string>
  /**
   * Short names for claims. A claim path in headers, rules and tests may begin with a short name.
   */
  readonly claims: Readonly<Record<string, string>>
  /**
   * Claims that are taken from the ID Token instead of UserInfo, for providers that put groups or
   * roles there only. They change only with a new ID Token: at sign-in, and at a refresh that
   * returns one.
   */
  readonly id_token_claims: List<string>
  /**
   * The signature algorithm that the client is registered with. Absent: RS256, or the only one that
   * the provider announces.
   */
  readonly id_token_signed_response_alg?:
    'RS256' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512' | 'ES256' | 'ES384' | 'ES512' | 'EdDSA'
  /** How far the clocks of the provider and the gateway may differ, at most 5m. */
  readonly clock_tolerance: Duration
  /** How long a request to the provider may take, from 100ms to 60s. */
  readonly timeout: Duration
  /**
   * Certificate authorities (PEM) that are trusted for the provider, in addition to those of
   * Node.js.
   */
  readonly ca_file?: Path
  /**
   * Refuses what a security profile forbids. fapi2: the client requirements of the FAPI 2.0
   * Security Profile; fapi2_message_signing: also signed requests and responses, as FAPI 2.0
   * Message Signing requires.
   */
  readonly profile?: 'fapi2' | 'fapi2_message_signing'
}

/**
 * The metadata of a provider without a discovery document, with the names of OpenID Connect
 * Discovery 1.0 §3. The gateway then requests no discovery document.
 */
export interface ProviderMetadataSettings {
  /** Where people sign in. */
  readonly authorization_endpoint?: string
  /** Where the gateway gets tokens. */
  readonly token_endpoint?: string
  /** The keys that the provider signs with. */
  readonly jwks_uri?: string
  /** Where the gateway gets claims. Absent: all claims come from the ID Token. */
  readonly userinfo_endpoint?: string
  /** Where a sign-out also ends the session at the provider. */
  readonly end_session_endpoint?: string
  /** Where the gateway revokes refresh tokens. */
  readonly revocation_endpoint?: string
  /** Where the gateway sends authorization requests (RFC 9126). */
  readonly pushed_authorization_request_endpoint?: string
  /** Whether the provider accepts only pushed authorization requests. */
  readonly require_pushed_authorization_requests?: boolean
  /** Whether the provider accepts only signed authorization requests. */
  readonly require_signed_request_object?: boolean
  /** Whether each authorization response contains iss (RFC 9207). The gateway then requires it. */
  readonly authorization_response_iss_parameter_supported?: boolean
  /** The signature algorithms of ID Tokens. */
  readonly id_token_signing_alg_values_supported?: List<string>
  /** The scopes that the provider knows. */
  readonly scopes_supported?: List<string>
  /** The values of acr that the provider knows. */
  readonly acr_values_supported?: List<string>
  /** The endpoints for a client that presents a certificate (RFC 8705 §5). */
  readonly mtls_endpoint_aliases?: ProviderMetadataMtlsEndpointAliasesSettings
}

/** The endpoints for a client that presents a certificate (RFC 8705 §5). */
export interface ProviderMetadataMtlsEndpointAliasesSettings {
  /** Replaces token_endpoint. */
  readonly token_endpoint?: string
  /** Replaces userinfo_endpoint. */
  readonly userinfo_endpoint?: string
  /** Replaces revocation_endpoint. */
  readonly revocation_endpoint?: string
  /** Replaces pushed_authorization_request_endpoint. */
  readonly pushed_authorization_request_endpoint?: string
}

/**
 * The private key that signs for the client: for private_key_jwt and signed_requests. PEM (PKCS #8)
 * or JWK.
 */
export interface ProviderClientKeySettings {
  /** The environment variable that contains the key. */
  readonly env?: string
  /** The file that contains the key, relative to this file. */
  readonly file?: Path
  /**
   * The identifier under which the provider knows the public key. Absent: that of the JWK, or none.
   */
  readonly kid?: string
  /**
   * The signature algorithm. Absent: that of the JWK, or the usual one for the key: RS256 (PS256
   * with a profile), ES256, ES384, ES512 or EdDSA.
   */
  readonly alg?: 'RS256' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512' | 'ES256' | 'ES384' | 'ES512' | 'EdDSA'
}

/**
 * The certificate that the gateway presents to the provider (RFC 8705): for tls_client_auth and
 * self_signed_tls_client_auth, or beside another method when the provider binds access tokens to
 * it.
 */
export interface ProviderClientCertificateSettings {
  /** The certificate (PEM), followed by those of its authorities. */
  readonly cert_file?: Path
  /** The private key of the certificate (PEM, not encrypted). */
  readonly key_file?: Path
}

/**
 * Security events of the provider (OpenID Shared Signals Framework, CAEP, RISC), which end sessions
 * or refresh their claims.
 */
export interface ProviderSignalsSettings {
  /**
   * The issuer of the security events: the URL before /.well-known/ssf-configuration. Absent: the
   * issuer of the provider.
   */
  readonly transmitter?: string
  /** The values of aud that are accepted. Absent: the client_id. */
  readonly audience?: List<string>
  /**
   * The algorithm of the signatures of the events. Absent: as for the ID Tokens of the provider.
   */
  readonly signing_alg?:
    'RS256' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512' | 'ES256' | 'ES384' | 'ES512' | 'EdDSA'
  /**
   * How events arrive: push (the transmitter posts them to security-events) or poll (one gateway at
   * a time fetches them).
   */
  readonly delivery: 'push' | 'poll'
  /**
   * Who makes the stream at the transmitter: existing (somebody has made it there) or managed (the
   * gateway creates, updates and verifies it).
   */
  readonly stream: 'existing' | 'managed'
  /** Where the events of an existing stream are fetched. A managed stream says it itself. */
  readonly poll_url?: string
  /**
   * What the gateway sends to the transmitter in Authorization, such as Bearer and a token: from an
   * environment variable or a file, or an access token that it gets with its client_id
   * (client_credentials).
   */
  readonly authorization?: ProviderSignalsAuthorizationSettings
  /**
   * What the transmitter sends in Authorization. Without it, the signature of each event is the
   * only proof.
   */
  readonly push_secret?: SecretSettings
  /**
   * Formats that name people by their e-mail address: email, account. Trust them only if the
   * provider verifies the addresses, and no two people can have the same one.
   */
  readonly trusted_subjects: List<'email' | 'account'>
  /**
   * What each event does: end (the sessions end), reread_claims (UserInfo is read again), step_up
   * (rules with step_up need a new sign-in), ignore.
   */
  readonly events: ProviderSignalsEventsSettings
}

/**
 * What the gateway sends to the transmitter in Authorization, such as Bearer and a token: from an
 * environment variable or a file, or an access token that it gets with its client_id
 * (client_credentials).
 */
export interface ProviderSignalsAuthorizationSettings {
  /** The environment variable that contains the value. */
  readonly env?: string
  /**
   * The file that contains the value, relative to this file. A line break at its end is ignored.
   */
  readonly file?: Path
  /**
   * The gateway gets an access token at the token endpoint of the provider (RFC 6749, section 4.4).
   */
  readonly client_credentials?: ProviderSignalsAuthorizationClientCredentialsSettings
}

/**
 * The gateway gets an access token at the token endpoint of the provider (RFC 6749, section 4.4).
 */
export interface ProviderSignalsAuthorizationClientCredentialsSettings {
  /** The scopes of the access token. Absent: the provider decides. */
  readonly scopes: List<string>
}

/**
 * What each event does: end (the sessions end), reread_claims (UserInfo is read again), step_up
 * (rules with step_up need a new sign-in), ignore.
 */
export interface ProviderSignalsEventsSettings {
  /** A session has ended (CAEP). */
  readonly 'session-revoked': 'end' | 'reread_claims' | 'step_up' | 'ignore'
  /** Claims of the person have changed, such as groups (CAEP). */
  readonly 'token-claims-change': 'end' | 'reread_claims' | 'step_up' | 'ignore'
  /** A password or another credential was changed (CAEP). */
  readonly 'credential-change': 'end' | 'reread_claims' | 'step_up' | 'ignore'
  /** The person is authenticated less strongly than before (CAEP). An increase does nothing. */
  readonly 'assurance-level-change': 'end' | 'reread_claims' | 'step_up' | 'ignore'
  /**
   * A device does not comply with the rules any more (CAEP). A device that complies again does
   * nothing.
   */
  readonly 'device-compliance-change': 'end' | 'reread_claims' | 'step_up' | 'ignore'
  /** The account was disabled (RISC). */
  readonly 'account-disabled': 'end' | 'reread_claims' | 'step_up' | 'ignore'
  /** The account was deleted (RISC). */
  readonly 'account-purged': 'end' | 'reread_claims' | 'step_up' | 'ignore'
  /** The person has to change a credential (RISC). */
  readonly 'account-credential-change-required': 'end' | 'reread_claims' | 'step_up' | 'ignore'
}

/** A duration such as 30m: a whole number and ms, s, m, h or d. */
export type Duration = string

/**
 * The HTTP proxy between the gateway and the provider. Upstreams are never reached through it.
 * Absent: that of the environment variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY.
 */
export interface EgressProxySettings {
  /**
   * The URL of the proxy, without a user name. Absent: HTTPS_PROXY or HTTP_PROXY of the
   * environment.
   */
  readonly url?: string
  /** The user name for the proxy. */
  readonly username?: string
  /** The password for the proxy. */
  readonly password?: SecretSettings
  /**
   * Hosts that are reached without the proxy: a host name with its subdomains, an IP address, a
   * CIDR range, HOST:PORT, or * for all. Absent: NO_PROXY of the environment. A provider on this
   * machine is always reached without the proxy.
   */
  readonly no_proxy?: List<string>
  /**
   * Certificate authorities (PEM) that are trusted for a proxy with https, in addition to those of
   * Node.js.
   */
  readonly ca_file?: Path
}

/** How long sessions live, and where they are stored. */
export interface SessionSettings {
  /**
   * The keys that encrypt stored sessions: 32 bytes each, in base64, base64url or hex. The first
   * one encrypts, all of them decrypt. Required with Redis, optional with the memory store.
   */
  readonly keys?: List<SecretSettings>
  /** Where sessions are stored: memory (in this process, lost when it stops) or redis. */
  readonly store: 'memory' | SessionStoreSettings
  /**
   * A session ends when it has not been used for this time. Requests, uploads, downloads and
   * WebSocket messages of the browser count as use. From 1s to 365d.
   */
  readonly idle_timeout: Duration
  /** A session ends this long after sign-in, even while it is used. From 1s to 365d. */
  readonly absolute_timeout: Duration
  /** The access token is refreshed this long before it expires. From 0s to 1h. */
  readonly refresh_before: Duration
  /**
   * How often UserInfo is read while a session is in use. It detects revocation without Logout
   * Tokens. From 10s to 1d. Absent: only at sign-in and at refresh.
   */
  readonly poll_userinfo?: Duration
  /**
   * How long a process serves the sessions in its memory while Redis does not respond. The risk: a
   * session that ends elsewhere in this time is served here until the time is over. From 0s to 5m.
   * 0s: requests with a session get 503 at once.
   */
  readonly store_outage_grace: Duration
  /**
   * How many sessions a person has at the same time, over all browsers, applications and replicas.
   * Absent: any number.
   */
  readonly max_per_person?: number | SessionMaxPerPersonSettings
  /** Whether people see their sessions at sessions below reserved_prefix, and end them there. */
  readonly page: boolean
  /**
   * Binds sessions to keys that cannot leave the device (Device Bound Session Credentials).
   * when_supported: browsers that can do it. required: other browsers have no access. Browsers bind
   * sessions over https only.
   */
  readonly device_binding: string | SessionDeviceBindingSettings
  /**
   * The session cookie. It is always HttpOnly with Path=/, and Secure when external_url is https.
   */
  readonly cookie: SessionCookieSettings
}

/** Where sessions are stored: memory (in this process, lost when it stops) or redis. */
export interface SessionStoreSettings {
  /** Sessions are stored in this process: for tests, and for a sidecar that may lose them. */
  readonly memory?: SessionStoreMemorySettings
  /** Sessions are stored in Redis and shared by all processes and replicas. */
  readonly redis?: RedisSettings
}

/** Sessions are stored in this process: for tests, and for a sidecar that may lose them. */
export interface SessionStoreMemorySettings {
  /**
   * The largest number of sessions. When there are more, the gateway drops the one that has not
   * been used for the longest time.
   */
  readonly max_sessions: number
}

/** Sessions are stored in Redis and shared by all processes and replicas. */
export interface RedisSettings {
  /**
   * One server: redis://HOST:PORT or, with TLS, rediss://HOST:PORT; a database number may follow as
   * a path.
   */
  readonly url?: string
  /**
   * The Sentinels that know the primary: HOST:PORT or, for TLS to them and to Redis,
   * rediss://HOST:PORT. The default port is 26379.
   */
  readonly sentinels?: List<string>
  /** The name of the primary at the Sentinels. */
  readonly name?: string
  /**
   * The number of the database, with sentinels. Absent: 0. With url, the URL contains it; a Cluster
   * has only 0.
   */
  readonly database?: number
  /** The user name for the Sentinels. Absent: the default user. */
  readonly sentinel_username?: string
  /** The password for the Sentinels. Absent: none, even when Redis has one. */
  readonly sentinel_password?: SecretSettings
  /**
   * Some nodes of a Redis Cluster; the gateway finds the others: HOST:PORT or, for TLS,
   * rediss://HOST:PORT. The default port is 6379.
   */
  readonly cluster?: List<string>
  /** The user name for Redis. Absent: the default user. */
  readonly username?: string
  /** The password for Redis. */
  readonly password?: SecretSettings
  /** Certificate authorities (PEM) that are trusted for rediss://, instead of those of Node.js. */
  readonly ca_file?: Path
  /** The client certificate (PEM) for rediss://, followed by those of its authorities. */
  readonly cert_file?: Path
  /** The private key (PEM) of the client certificate. */
  readonly key_file?: Path
  /**
   * The prefix of all keys in Redis. Gateways that share a Redis but not their sessions need
   * different prefixes.
   */
  readonly key_prefix: string
  /**
   * How long an operation may take, such as to create or to end a session, from 100ms to 10s. An
   * operation has up to five commands.
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

/**
 * How many sessions a person has at the same time, over all browsers, applications and replicas.
 * Absent: any number.
 */
export interface SessionMaxPerPersonSettings {
  /** The number of sessions that a person has at the same time. */
  readonly count?: number
  /**
   * What happens at the next sign-in: end_oldest: the oldest session ends. refuse: the person gets
   * a page with the other sessions, and ends one of them first.
   */
  readonly when_exceeded: 'end_oldest' | 'refuse'
}

/**
 * Binds sessions to keys that cannot leave the device (Device Bound Session Credentials).
 * when_supported: browsers that can do it. required: other browsers have no access. Browsers bind
 * sessions over https only.
 */
export interface SessionDeviceBindingSettings {
  /** Which sessions are bound: off, when_supported or required, as without the object. */
  readonly mode: 'off' | 'when_supported' | 'required'
  /**
   * How long a browser has access after it has proved that it has the key. A stolen copy of the
   * cookies is of use for this time at most. From 1m to 1h.
   */
  readonly cookie_lifetime: Duration
  /**
   * How long after the sign-in a session without a key has access where one is required. From 10s
   * to 10m.
   */
  readonly registration_grace: Duration
  /**
   * What happens when a client has the cookie of a bound session, but no proof: refuse: it has no
   * access. end: the session ends too.
   */
  readonly on_misuse: 'refuse' | 'end'
}

/** The session cookie. It is always HttpOnly with Path=/, and Secure when external_url is https. */
export interface SessionCookieSettings {
  /**
   * The name of the cookie. With an https external_url, the gateway puts __Host- before it; with
   * domain, __Secure-.
   */
  readonly name: string
  /**
   * One session for this domain and all hosts below it: people sign in once, at external_url. Every
   * host below the domain receives the cookie, also hosts that are not behind the gateway. Absent:
   * each host has a session of its own.
   */
  readonly domain?: string
  /** The cookie's SameSite attribute. */
  readonly same_site: 'lax' | 'strict'
}

/** An application behind the gateway. */
export interface UpstreamSettings {
  /**
   * Where the application listens: scheme, host and port. It may have a path, which precedes the
   * path of each request.
   */
  readonly url?: string
  /**
   * true, in place of url: another proxy (nginx, HAProxy, Caddy, Traefik, Envoy) carries the
   * requests to the application, and asks the gateway about each one first. Needs trusted_proxies.
   */
  readonly forward_auth?: true
  /**
   * Whether sessions need a key of the device here: required or when_supported. Absent: as
   * session.device_binding says.
   */
  readonly device_binding?: 'when_supported' | 'required'
  /**
   * Settings for a known application, as gatehouse explain --preset NAME prints them. Settings of
   * the upstream itself win; of headers and logout, each key by itself.
   */
  readonly preset?:
    | 'airflow'
    | 'cockpit'
    | 'django'
    | 'dokuwiki'
    | 'grafana'
    | 'jenkins'
    | 'jupyterhub'
    | 'jupyterlab'
    | 'mediawiki'
    | 'nexus'
    | 'node-red'
    | 'phpmyadmin'
    | 'superset'
    | 'tomcat'
    | 'wordpress'
  /** The host names of the upstream. Absent: any host, or that of its own external_url. */
  readonly hosts?: List<string>
  /** The upstream serves this path and everything below it. The longest match wins. */
  readonly path: string
  /**
   * Removes path from the path of a request before it is forwarded. Rules and logout links see the
   * whole path.
   */
  readonly strip_path: boolean
  /**
   * Further addresses that the application takes for its own. In redirects and similar header
   * fields, the gateway replaces them by the public address.
   */
  readonly also_known_as: List<Origin>
  /**
   * Replaces the addresses of the application in HTML, CSS and JSON by the public address: those in
   * url and also_known_as, and the public host with http. Prefer the base URL of the application if
   * it can be set.
   */
  readonly rewrite_content: boolean
  /**
   * Adds the script of the notice to the HTML pages of the application, so that open pages say when
   * the session ends or has ended. For applications that have no place for a line of HTML.
   */
  readonly session_notice: boolean
  /** Changes the attributes of the cookies that the application sets. */
  readonly set_cookie: UpstreamSetCookieSettings
  /** Changes the header fields of the responses of the application. */
  readonly response_headers: UpstreamResponseHeadersSettings
  /**
   * Where people sign in for this upstream: names below providers. With several, people choose.
   * Absent: all of them.
   */
  readonly providers?: List<string>
  /**
   * Where browsers reach this upstream, if not at the external_url of the gateway. Its sign-ins end
   * here. With session.cookie.domain, the first label may be *, which means any one label.
   */
  readonly external_url?: Origin
  /**
   * Which Host header the upstream receives: client is that of the client, upstream is the host of
   * url.
   */
  readonly host_header: 'client' | 'upstream'
  /**
   * Which address Origin and Referer name when a page of this upstream makes a request: client is
   * the public address, upstream is that of url. Other origins stay unchanged.
   */
  readonly origin_header: 'client' | 'upstream'
  /**
   * Headers that tell the upstream who is signed in, constants, and facts about the request. Each
   * has a claim path, a template with claim paths in braces, or the long form. The gateway removes
   * headers with these names from the requests of clients.
   */
  readonly headers: Readonly<Record<string, string | HeaderSettings>>
  /**
   * Which access tokens of its providers the upstream accepts. They count only in rules with
   * access_tokens.
   */
  readonly access_tokens?: UpstreamAccessTokensSettings
  /**
   * Names and secrets (HTTP Basic, RFC 7617) for programs that cannot get an access token. They
   * count only in rules with service_accounts.
   */
  readonly service_accounts?: UpstreamServiceAccountsSettings
  /**
   * Exchanges the access token of the session, or of the caller, for one that is meant for this
   * upstream (RFC 8693). A header with bearer: exchanged_token sends it.
   */
  readonly token_exchange?: UpstreamTokenExchangeSettings
  /**
   * Sends a JWT that the gateway signs, so that the upstream can verify that a request came through
   * the gateway, and who is signed in. true: with the defaults.
   */
  readonly signed_identity: boolean | UpstreamSignedIdentitySettings
  /**
   * Who may send which requests. The first rule that matches decides. When none matches, access is
   * signed_in.
   */
  readonly rules: List<RuleSettings>
  /**
   * The origins, besides its own, whose pages may send changing requests and open WebSockets in the
   * name of a signed-in person; or any.
   */
  readonly trusted_origins: 'any' | List<Origin>
  /**
   * Lets pages of other origins read responses (CORS). The gateway responds to preflights. Absent:
   * the application decides.
   */
  readonly cors?: UpstreamCorsSettings
  /**
   * Caching of responses to signed-in people. private: as the upstream says, but never in shared
   * caches; no_store: no cache; upstream: as the upstream says.
   */
  readonly cache: 'private' | 'no_store' | 'upstream'
  /**
   * The session cookies of the application, by name; * stands for any characters. The gateway keeps
   * them in the session of the person, sends them to the upstream, and never to the browser. { all:
   * true }: every cookie that the application sets.
   */
  readonly session_cookies?: List<string> | UpstreamSessionCookiesSettings
  /** Makes the logout of the application a sign-out from the gateway and the provider. */
  readonly logout: UpstreamLogoutSettings
  /**
   * The protocols that a client may switch to with Upgrade. Without a version, any version is
   * allowed. Others are not passed on.
   */
  readonly upgrade: List<string>
  /** How long it may take to connect, from 10ms to 5m. */
  readonly connect_timeout: Duration
  /** How long the upstream may take until its response begins, from 10ms to 1d. */
  readonly response_timeout: Duration
  /**
   * How long a body may pause in either direction, at most 1d; 0s: without limit. Event streams and
   * WebSockets have no limit.
   */
  readonly idle_timeout: Duration
  /**
   * How long an idle connection to the upstream is kept, at most 1h; 0s: not at all. It must be
   * shorter than the time after which the upstream closes it. When the upstream announces that time
   * (Keep-Alive: timeout=N), the gateway stays at least a second below it.
   */
  readonly keep_alive: Duration
  /**
   * How many requests a process sends to the upstream at the same time. Further requests wait.
   * Streams do not count.
   */
  readonly max_connections: number
  /**
   * How many streams a process has open to the upstream: event streams, WebSockets, and exchanges
   * that take longer than 5 seconds. Further event streams and WebSockets get 503; other exchanges
   * count for max_connections.
   */
  readonly max_streams: number
  /** How many of these streams one session, or one address without a session, may have. */
  readonly max_streams_per_client: number
  /**
   * Certificate authorities (PEM) that are trusted for an https upstream, in addition to those of
   * Node.js.
   */
  readonly ca_file?: Path
  /** Requests and the decisions that are expected. `gatehouse check` runs them. */
  readonly tests: List<TestSettings>
}

/** Changes the attributes of the cookies that the application sets. */
export interface UpstreamSetCookieSettings {
  /**
   * remove: without Domain, so that only the host that sets a cookie receives it. Absent: as the
   * application sets it; a Domain of one of its own addresses is removed.
   */
  readonly domain?: 'remove'
  /** The Path of all cookies. Absent: as the application sets it, translated like a redirect. */
  readonly path?: string
  /** Adds Secure, so that browsers send a cookie over https only. */
  readonly secure: boolean
  /** The SameSite of all cookies. none also adds Secure, which browsers require. */
  readonly same_site?: 'strict' | 'lax' | 'none'
}

/** Changes the header fields of the responses of the application. */
export interface UpstreamResponseHeadersSettings {
  /** Fields with their values. They replace the fields of these names. */
  readonly set: Readonly<Record<string, string>>
  /** The names of fields that are removed. */
  readonly remove: List<string>
}

/** A header that the upstream gets: a claim path, a template, or the long form. */
export interface HeaderSettings {
  /** A claim path: fields.costCentre, or '"https://id.example.com/claims/fields".groups[0]'. */
  readonly claim?: string
  /** Text with claim paths in braces. {{ and }} are literal braces. */
  readonly template?: string
  /** Several claim paths. The header has the first claim that has a value. */
  readonly first_of?: List<string>
  /** A constant text, the same for everybody. */
  readonly value?: string
  /**
   * The environment variable with a constant text. The text is a secret: no log and no command
   * shows it.
   */
  readonly env?: string
  /**
   * The file with a constant text, relative to this file. The text is a secret: no log and no
   * command shows it.
   */
  readonly file?: Path
  /**
   * A fact about the request. client_address: the IP address of the client. scheme: http or https.
   * host: the host that the client requested, with its port. port: the port of that host. prefix:
   * the path of the upstream without the slash at its end.
   */
  readonly request?: 'client_address' | 'scheme' | 'host' | 'port' | 'prefix'
  /**
   * Basic credentials (RFC 7617) for an application that has a password for the gateway, usually in
   * Authorization. No log and no command shows them.
   */
  readonly basic?: HeaderBasicSettings
  /**
   * A token of the session as a bearer token (RFC 6750), usually in Authorization. The gateway
   * refreshes it ahead of use. exchanged_token: the token for this upstream (token_exchange). No
   * log and no command shows it.
   */
  readonly bearer?: 'access_token' | 'id_token' | 'exchanged_token'
  /**
   * Keeps what follows the last occurrence of this text in the claim. A value without the text is
   * left out.
   */
  readonly after?: string
  /**
   * Keeps what precedes the last occurrence of this text in the claim. A value without the text is
   * left out.
   */
  readonly before?: string
  /** Changes the letters of the claim to lower or upper case. */
  readonly case?: 'lower' | 'upper'
  /**
   * Replaces values of the claim, and members of a list: value: replacement. * is any other value.
   * A value that no entry names is left out.
   */
  readonly map?: Readonly<Record<string, string>>
  /** true: the claim is sent as JSON. */
  readonly json?: boolean
  /** The separator between the members of a list. */
  readonly join: string
  /**
   * The encoding of the value: utf8, latin1, percent, base64, base64url, rfc2047, rfc8187 or
   * quoted_printable.
   */
  readonly encode: 'utf8' | 'latin1' | 'percent' | 'base64' | 'base64url' | 'rfc2047' | 'rfc8187' | 'quoted_printable'
  /** The largest size of the encoded value, from 1b to 64kb. */
  readonly max_bytes: Size
  /**
   * What happens to a value that is longer than max_bytes. omit: the header is left out. refuse:
   * the gateway refuses the request. trim: a list loses members at its end until it fits; any other
   * value is left out.
   */
  readonly too_long: 'omit' | 'refuse' | 'trim'
  /** true: the gateway refuses a request when there is no value. false: it omits the header. */
  readonly required: boolean
}

/**
 * Basic credentials (RFC 7617) for an application that has a password for the gateway, usually in
 * Authorization. No log and no command shows them.
 */
export interface HeaderBasicSettings {
  /**
   * The user name: a claim path, or a template with claim paths in braces. A name with a colon is
   * left out.
   */
  readonly user?: string
  /** The password, the same for everybody. */
  readonly password?: SecretSettings
}

/**
 * Which access tokens of its providers the upstream accepts. They count only in rules with
 * access_tokens.
 */
export interface UpstreamAccessTokensSettings {
  /** The names of this API at the provider. One of them has to be in aud of a token. */
  readonly audience?: List<string>
  /**
   * jwt: the gateway verifies the signature of a JWT (RFC 9068). introspection: the gateway asks
   * the provider (RFC 7662), which also knows about revoked tokens.
   */
  readonly check: 'jwt' | 'introspection'
  /**
   * The accepted values of typ in the header of a JWT. at+jwt: as RFC 9068 says. JWT: for providers
   * such as Keycloak, whose ID Tokens have it too. none: no typ.
   */
  readonly types: List<'at+jwt' | 'JWT' | 'none'>
  /** The scopes that each token needs. */
  readonly scopes: List<string>
  /**
   * How long the response to an introspection is used, from 0s to 10m, and never longer than the
   * token is valid. A token that the provider revokes is accepted this long.
   */
  readonly introspection_cache: Duration
  /**
   * true: the gateway publishes which provider issues tokens for this API (RFC 9728), at
   * /.well-known/oauth-protected-resource, followed by the path of the upstream. Responses with 401
   * then name that URL.
   */
  readonly metadata: boolean
}

/**
 * Names and secrets (HTTP Basic, RFC 7617) for programs that cannot get an access token. They count
 * only in rules with service_accounts.
 */
export interface UpstreamServiceAccountsSettings {
  /**
   * The file with the hashed secrets, one account a line. "gatehouse service-account NAME" makes a
   * line. The gateway reads the file again when it changes.
   */
  readonly file?: string
  /**
   * The claims of each account by its name, for headers, rules and signed identities. The gateway
   * adds iss, sub and client_id.
   */
  readonly claims: Readonly<Record<string, Readonly<Record<string, JsonValue>>>>
}

/**
 * Exchanges the access token of the session, or of the caller, for one that is meant for this
 * upstream (RFC 8693). A header with bearer: exchanged_token sends it.
 */
export interface UpstreamTokenExchangeSettings {
  /** The name of the upstream at the provider. */
  readonly audience?: string
  /** The URI of the upstream at the provider (RFC 8707). */
  readonly resource?: string
  /** The scopes of the new token. */
  readonly scopes?: List<string>
  /** The kind of the new token: access_token or jwt. Absent: the provider decides. */
  readonly requested_token_type?: 'access_token' | 'jwt'
}

/**
 * Sends a JWT that the gateway signs, so that the upstream can verify that a request came through
 * the gateway, and who is signed in. true: with the defaults.
 */
export interface UpstreamSignedIdentitySettings {
  /** The header with the JWT. The gateway removes this header from the requests of clients. */
  readonly header: string
  /** The aud of the JWT. Absent: the name of the upstream. */
  readonly audience?: string
  /**
   * How long the JWT is valid, from 30s to 1h. At least half of this time remains when the upstream
   * receives it, unless the session ends earlier.
   */
  readonly lifetime: Duration
  /** The claims that the JWT contains besides sub. Each one has the name that is written here. */
  readonly claims: List<string>
  /** The algorithm of the signature: ES256 (ECDSA with P-256), or EdDSA (Ed25519). */
  readonly algorithm: 'ES256' | 'EdDSA'
}

/** Who may send which requests to an upstream. */
export interface RuleSettings {
  /**
   * A name for people. It is in the log, in explain, and on the page with which the rule denies
   * access.
   */
  readonly name?: string
  /**
   * The paths of the rule. * matches one segment, and at the end everything below: /public/*
   * matches /public and /public/a/b. /public/*.css matches what is below and has this ending.
   */
  readonly path?: string
  /** The methods of the rule. Absent: all. */
  readonly methods?: List<Method>
  /**
   * The rule applies only to clients in these networks: IP addresses and CIDR ranges. For other
   * clients, the next rule that matches decides. Behind trusted_proxies, the address that they name
   * counts.
   */
  readonly networks?: List<string>
  /**
   * public: anybody, without headers about a person. optional: anybody, with identity headers for
   * signed-in people. signed_in: signed-in people only.
   */
  readonly access: 'public' | 'optional' | 'signed_in'
  /**
   * The response to people who are not signed in. auto: page loads are redirected to the sign-in,
   * other requests get 401. redirect: always the sign-in. 401: always 401.
   */
  readonly unauthenticated: 'auto' | 'redirect' | '401' | 401
  /**
   * What has to be true of a signed-in person: one requirement, or a list of requirements that must
   * all be met.
   */
  readonly require?: RequirementSettings | List<RequirementSettings>
  /**
   * Whether sessions need a key of the device here: required or when_supported. Absent: as the
   * upstream says.
   */
  readonly device_binding?: 'when_supported' | 'required'
  /**
   * How strong or how recent the authentication has to be. A person who does not meet it signs in
   * again: the provider gets acr_values and max_age (RFC 9470).
   */
  readonly step_up?: RuleStepUpSettings
  /**
   * true: a request may have an access token instead of a session (Authorization: Bearer). Which
   * ones: see access_tokens of the upstream. With scopes: the token needs these too.
   */
  readonly access_tokens: boolean | RuleAccessTokensSettings
  /**
   * true: a request may have the name and secret of a service account instead of a session
   * (Authorization: Basic). Or a list of the accounts that may. Which ones there are: see
   * service_accounts of the upstream.
   */
  readonly service_accounts: boolean | List<string>
  /**
   * enforce: a person who does not meet require is denied access. observe: the person has access,
   * and the audit log says that the rule would have denied it. Also for step_up.
   */
  readonly mode: 'enforce' | 'observe'
  /**
   * Headers for the requests of this rule, in addition to those of the upstream. A header with the
   * same name replaces that of the upstream.
   */
  readonly headers?: Readonly<Record<string, string | HeaderSettings>>
}

/** A method in capital letters, such as GET. */
export type Method = string

/** What has to be true of the person or of the request. */
export interface RequirementSettings {
  /** The path of a claim. A single value counts as a list of one. */
  readonly claim?: string
  /**
   * This is the only value of the claim. An empty text means an empty value: an absent claim does
   * not have it.
   */
  readonly equals?: string
  /** At least one of these is among the claim's values. */
  readonly any_of?: List<string>
  /** All of these are among the claim's values. */
  readonly all_of?: List<string>
  /** None of these is among the claim's values. */
  readonly none_of?: List<string>
  /** A value of the claim contains this text. */
  readonly contains?: string
  /** A value of the claim begins with this text. */
  readonly begins_with?: string
  /** A value of the claim ends with this text. */
  readonly ends_with?: string
  /**
   * A value of the claim matches this regular expression as a whole. It has no back-references and
   * no look-around, so it takes linear time.
   */
  readonly matches?: string
  /**
   * The e-mail address of the person (the claim email) is in one of these domains, and the provider
   * has verified it (email_verified). A domain does not include those below it.
   */
  readonly email_domains?: List<string>
  /** false: admits addresses that the provider has not verified, too. */
  readonly verified: boolean
  /**
   * The client is in one of these networks: IP addresses and CIDR ranges. Behind trusted_proxies,
   * the address that they name counts.
   */
  readonly networks?: List<string>
  /** The request arrives in these hours of the week. */
  readonly time?: RequirementTimeSettings
  /** The request has one of these methods. HEAD counts as GET. */
  readonly methods?: List<Method>
  /** All of these requirements are met. */
  readonly all?: List<RequirementSettings>
  /** At least one of these requirements is met. */
  readonly any?: List<RequirementSettings>
  /** This requirement is not met. It must be possible to decide it. */
  readonly not?: RequirementSettings
}

/** The request arrives in these hours of the week. */
export interface RequirementTimeSettings {
  /** The days. Hours that end on the next day belong to the day on which they begin. */
  readonly days: List<'mon' | 'tue' | 'wed' | 'thu' | 'fri' | 'sat' | 'sun'>
  /** When the hours begin. */
  readonly from: string
  /** When they end. Earlier than from: on the next day. */
  readonly to: string
  /** The time zone. */
  readonly zone?: string
}

/**
 * How strong or how recent the authentication has to be. A person who does not meet it signs in
 * again: the provider gets acr_values and max_age (RFC 9470).
 */
export interface RuleStepUpSettings {
  /** The accepted values of acr in the ID Token. The provider gets them in this order. */
  readonly acr_values?: List<string>
  /** The longest time since the authentication at the provider. From 1m to 30d. */
  readonly max_age?: Duration
}

/**
 * true: a request may have an access token instead of a session (Authorization: Bearer). Which
 * ones: see access_tokens of the upstream. With scopes: the token needs these too.
 */
export interface RuleAccessTokensSettings {
  /** The scopes that the token needs, besides those of the upstream. */
  readonly scopes: List<string>
}

/**
 * Lets pages of other origins read responses (CORS). The gateway responds to preflights. Absent:
 * the application decides.
 */
export interface UpstreamCorsSettings {
  /** The origins whose pages may read responses. Absent: those of trusted_origins. */
  readonly origins?: List<Origin>
  /** The methods that these pages may use. */
  readonly methods: List<Method>
  /** The header fields that these pages may send, besides those that any page may send. */
  readonly headers: List<CorsField>
  /**
   * The header fields of responses that these pages may read, besides those that any page may read.
   */
  readonly expose: List<CorsField>
  /** Whether these pages may read responses to requests with the session cookie. */
  readonly credentials: boolean
  /** How long a browser may remember the response to a preflight, at most 1d. */
  readonly max_age: Duration
}

/** The name of a header such as X-Total-Count; "*" is not supported here. */
export type CorsField = string

/**
 * The session cookies of the application, by name; * stands for any characters. The gateway keeps
 * them in the session of the person, sends them to the upstream, and never to the browser. { all:
 * true }: every cookie that the application sets.
 */
export interface UpstreamSessionCookiesSettings {
  /** true: every cookie that the application sets. */
  readonly all?: true
}

/** Makes the logout of the application a sign-out from the gateway and the provider. */
export interface UpstreamLogoutSettings {
  /**
   * The logout links of the application. A request for one signs out of the gateway and the
   * provider. A link is a path, or a path with query parameters or methods, such as { path:
   * /wp-login.php, query: { action: logout } }.
   */
  readonly paths: List<string | LogoutLinkSettings>
  /**
   * The application receives a request for its logout link first, so that it can end its own
   * session. Then the gateway signs the person out, whatever the application responds.
   */
  readonly pass_first: boolean
  /**
   * The cookies of the application that belong to one person and stay in the browser, by their
   * names; * stands for any characters. The gateway expires them when the session ends, with the
   * path and domain that the application has given them, and passes them on only in the session in
   * which the application has set them.
   */
  readonly cookies: List<string>
  /**
   * A request that the gateway itself sends to the application when a session ends, whatever ends
   * it, with the cookies of session_cookies: a path, which is a POST, or { get:
   * /wp-login.php?action=logout }.
   */
  readonly call?: string | LogoutCallSettings
}

/** A logout link of the application: a path, or a path with query parameters or methods. */
export interface LogoutLinkSettings {
  /** The path of the link. * matches one segment, and at the end everything below. */
  readonly path?: string
  /**
   * Query parameters of the link, with their values. A request must have all of them, and may have
   * others.
   */
  readonly query?: Readonly<Record<string, string>>
  /** The methods of the link. Absent: all except OPTIONS. */
  readonly methods?: List<Method>
}

/** A request that the gateway sends to the application when a session ends. */
export interface LogoutCallSettings {
  /** A GET request for this path and query. */
  readonly get?: RequestPath
  /** A POST request without content for this path and query. */
  readonly post?: RequestPath
  /** How long the application may take until its response begins, from 100ms to 30s. */
  readonly timeout: Duration
}

/** A path such as /admin/. */
export type RequestPath = string

/** A request, and the decision that the gateway must take about it. */
export interface TestSettings {
  /** The claims of the person. Absent: nobody is signed in. */
  readonly as?: Readonly<Record<string, JsonValue>>
  /** true: as are the claims of an access token, which the request has instead of a session. */
  readonly bearer: boolean
  /** The request has the credentials of this service account instead of a session. */
  readonly service_account?: string
  /** A GET request for this path. */
  readonly get?: RequestPath
  /** A POST request for this path. */
  readonly post?: RequestPath
  /** A PUT request for this path. */
  readonly put?: RequestPath
  /** A PATCH request for this path. */
  readonly patch?: RequestPath
  /** A DELETE request for this path. */
  readonly delete?: RequestPath
  /** A HEAD request for this path. */
  readonly head?: RequestPath
  /** An OPTIONS request for this path. */
  readonly options?: RequestPath
  /** The host of the request, where the upstream serves several. Absent: the first one. */
  readonly host?: string
  /** The IP address of the client, for networks. Absent: unknown. */
  readonly from?: string
  /** When the request arrives, for time. Absent: now. */
  readonly at?: string
  /** The decision that is expected. */
  readonly expect?: 'pass' | 'sign_in' | 'sign_out' | 'unauthorized' | 'forbidden' | 'no_route'
  /**
   * Headers that the upstream must receive, by name; null: must not receive. Only with expect:
   * pass.
   */
  readonly headers: Readonly<Record<string, string | null>>
}

/** The keys of signed_identity. The gateway creates and replaces them by itself. */
export interface SigningKeysSettings {
  /** How long a key signs until the next one takes its place, from 2h to 365d. */
  readonly rotate_every: Duration
}

/** The pages of the gateway itself: errors and sign-out. */
export interface PagesSettings {
  /**
   * The name of the organization or the application. Each page shows it at the top and in its
   * title.
   */
  readonly name?: string
  /** A PNG, SVG or WebP image of at most 32 KiB: the path of a file, or a data: URI. */
  readonly logo?: string
  /** The language of pages when a browser accepts none of these. */
  readonly language: 'en' | 'de' | 'fr' | 'ja'
  /** The colors of the pages. */
  readonly colours: PagesColoursSettings
  /** Where people get help: a text, and a URL or a mail address as its link. */
  readonly support?: PagesSupportSettings
  /**
   * A folder with your own pages, one file each: forbidden.html, signed-out.html and so on. See
   * docs/pages.md.
   */
  readonly templates?: string
}

/** The colors of the pages. */
export interface PagesColoursSettings {
  /** For people whose system has a light color scheme. */
  readonly light: PagesColoursLightSettings
  /** For people whose system has a dark color scheme. */
  readonly dark: PagesColoursDarkSettings
}

/** For people whose system has a light color scheme. */
export interface PagesColoursLightSettings {
  /** The color around the content. */
  readonly background: Color
  /** The color behind text. */
  readonly surface: Color
  /** The color of text. */
  readonly text: Color
  /** The color of links and buttons. */
  readonly accent: Color
}

/** A color such as "#1a4fa3", in quotes because # begins a comment. */
export type Color = string

/** For people whose system has a dark color scheme. */
export interface PagesColoursDarkSettings {
  /** The color around the content. */
  readonly background: Color
  /** The color behind text. */
  readonly surface: Color
  /** The color of text. */
  readonly text: Color
  /** The color of links and buttons. */
  readonly accent: Color
}

/** Where people get help: a text, and a URL or a mail address as its link. */
export interface PagesSupportSettings {
  /**
   * The name of the help, or what to do, such as a telephone number. Absent: the address itself.
   */
  readonly text?: string
  /** A page with help. */
  readonly url?: string
  /** An e-mail address. The request ID becomes the subject. */
  readonly mail?: string
}

/** Limits for clients. */
export interface LimitsSettings {
  /** The largest size of all header fields of a request together, from 4kb to 1mb. */
  readonly header_size: Size
  /** The largest number of header fields of a request, from 20 to 1000. */
  readonly header_count: number
  /** How long a client may take to send the header fields, from 1s to 10m. */
  readonly headers_timeout: Duration
  /** How long a client may pause while it sends a body, from 1s to 1h. */
  readonly body_idle_timeout: Duration
  /**
   * The lowest rate at which a client may send a body, per second, on average over
   * body_idle_timeout. At most 1mb; 0b: any rate.
   */
  readonly body_rate: Size
  /**
   * The largest number of client connections of a process. The gateway closes further ones at once.
   */
  readonly connections: number
  /**
   * Limits for one client address, in each process. An IPv6 network of /64 counts as one address.
   * Behind trusted_proxies, the address that they name counts.
   */
  readonly per_client: LimitsPerClientSettings
}

/**
 * Limits for one client address, in each process. An IPv6 network of /64 counts as one address.
 * Behind trusted_proxies, the address that they name counts.
 */
export interface LimitsPerClientSettings {
  /**
   * The largest number of open connections. The gateway closes further ones at once.
   * trusted_proxies are exempt.
   */
  readonly connections: number
  /** How many sign-ins may begin. */
  readonly sign_ins: Rate
  /**
   * How many authorization responses are accepted. Each of them causes a token request to the
   * provider.
   */
  readonly callbacks: Rate
  /** How many authorization responses may wait for the provider at the same time. */
  readonly callbacks_at_once: number
  /** How many invalid Logout Tokens are checked. Addresses that send valid ones are exempt. */
  readonly refused_logout_tokens: Rate
}

/** A rate such as 600/m: a whole number per s, m or h. */
export type Rate = string

/**
 * Forms that people send after their session has ended. The gateway keeps the content, encrypted,
 * until the same person has signed in again and decides.
 */
export interface KeptRequestsSettings {
  /** The largest content that is kept, at most 16mb. 0b: none is kept. */
  readonly max_size: Size
  /** How long the content is kept, from 1m to 1d. */
  readonly keep_for: Duration
}

/** How the gateway stops. */
export interface ShutdownSettings {
  /** How long running requests may take to finish, from 0s to 1h. */
  readonly drain_timeout: Duration
}

/** The log on standard output: one event per line. */
export interface LogSettings {
  /** The least severe level that is written. */
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  /** Whether each request is logged when it ends, with the level info. */
  readonly access: boolean
  /**
   * The format of lines: json, pretty (for people), or auto: pretty on a terminal, json otherwise.
   */
  readonly format: 'json' | 'pretty' | 'auto'
}

/** Sends traces to an OpenTelemetry collector (OTLP over HTTP). Absent: no traces. */
export interface TracingSettings {
  /** The URL of the collector. Without a path, the gateway adds /v1/traces. */
  readonly otlp?: string
  /**
   * The share of requests that are traced, from 0 to 1. The decision of a trusted proxy takes
   * precedence.
   */
  readonly sample: number
  /** The name of the gateway in traces. */
  readonly service_name: string
  /** More attributes of the resource, with the names of the OpenTelemetry conventions. */
  readonly resource: Readonly<Record<string, string>>
  /** Headers for the collector, by name, such as Authorization. Each value is a secret. */
  readonly headers: Readonly<Record<string, SecretSettings>>
  /**
   * Certificate authorities (PEM) that are trusted for the collector, in addition to those of
   * Node.js.
   */
  readonly ca_file?: Path
}
