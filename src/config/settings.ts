// Generated from schemas/gateway.schema.json by `npm run reference`: do not edit.
// These types describe a document after validation. Invalid values have been reported and removed,
// so a required setting may be missing, and a list may have gaps. Defaults have been filled in.
// The schema describes each setting.

import type { JsonValue } from '../core/claims.ts'

/** A list. An invalid entry leaves a gap, so that the other entries keep their index. */
export type List<T> = readonly (T | undefined)[]

export interface GatewaySettings {
  readonly version?: 1
  readonly listen: string | number | ListenSettings
  readonly admin?: AdminSettings
  readonly ext_authz?: ExtAuthzSettings
  readonly external_url?: Origin
  readonly reserved_prefix: string
  readonly trusted_proxies: List<string>
  readonly workers: 'auto' | number
  readonly provider?: ProviderSettings
  readonly providers?: Readonly<Record<string, ProviderSettings>>
  readonly egress_proxy?: EgressProxySettings
  readonly session: SessionSettings
  readonly include?: List<Path>
  readonly upstreams?: Readonly<Record<string, UpstreamSettings>>
  readonly signing_keys: SigningKeysSettings
  readonly pages: PagesSettings
  readonly limits: LimitsSettings
  readonly kept_requests: KeptRequestsSettings
  readonly shutdown: ShutdownSettings
  readonly log: LogSettings
  readonly tracing?: TracingSettings
}

export interface ListenSettings {
  readonly address: Address
  readonly tls?: ListenTlsSettings
  readonly plain_path: boolean
}

export type Address = string | number

export interface ListenTlsSettings {
  readonly cert_file?: Path
  readonly key_file?: Path
}

export type Path = string

export interface AdminSettings {
  readonly listen?: Address
  readonly page?: AdminPageSettings
}

export interface AdminPageSettings {
  readonly token?: SecretSettings
  readonly hosts: List<string>
  readonly show_claim?: string
}

export interface SecretSettings {
  readonly env?: string
  readonly file?: Path
}

export interface ExtAuthzSettings {
  readonly listen?: Address
  readonly message_size: Size
}

export type Size = string

export type Origin = string

export interface ProviderSettings {
  readonly issuer?: string
  readonly title?: string
  readonly metadata?: ProviderMetadataSettings
  readonly client_id?: string
  readonly client_secret?: SecretSettings
  readonly token_endpoint_auth_method:
    | 'client_secret_basic'
    | 'client_secret_post'
    | 'client_secret_jwt'
    | 'private_key_jwt'
    | 'tls_client_auth'
    | 'self_signed_tls_client_auth'
  readonly client_key?: ProviderClientKeySettings
  readonly client_assertion_audience: 'issuer' | 'token_endpoint'
  readonly client_certificate?: ProviderClientCertificateSettings
  readonly response_mode: 'query' | 'form_post' | 'jwt' | 'query.jwt' | 'form_post.jwt'
  readonly pushed_authorization_requests: 'when_required' | 'always' | 'never'
  readonly signed_requests: boolean
  readonly dpop: boolean
  readonly resource?: string | List<string>
  readonly signals?: ProviderSignalsSettings
  readonly frontchannel_logout: boolean
  readonly scopes?: List<string>
  readonly authorization_params: Readonly<Record<string, string>>
  readonly end_session_params?: Readonly<Record<string, string | null>>
  readonly end_session_form?: 'when_long' | 'always' | 'never'
  readonly link_params: List<string>
  readonly claims: Readonly<Record<string, string>>
  readonly id_token_claims: List<string>
  readonly id_token_signed_response_alg?:
    'RS256' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512' | 'ES256' | 'ES384' | 'ES512' | 'EdDSA'
  readonly clock_tolerance: Duration
  readonly timeout: Duration
  readonly ca_file?: Path
  readonly profile?: 'fapi2' | 'fapi2_message_signing'
}

export interface ProviderMetadataSettings {
  readonly authorization_endpoint?: string
  readonly token_endpoint?: string
  readonly jwks_uri?: string
  readonly userinfo_endpoint?: string
  readonly end_session_endpoint?: string
  readonly revocation_endpoint?: string
  readonly pushed_authorization_request_endpoint?: string
  readonly require_pushed_authorization_requests?: boolean
  readonly require_signed_request_object?: boolean
  readonly authorization_response_iss_parameter_supported?: boolean
  readonly id_token_signing_alg_values_supported?: List<string>
  readonly scopes_supported?: List<string>
  readonly acr_values_supported?: List<string>
  readonly mtls_endpoint_aliases?: ProviderMetadataMtlsEndpointAliasesSettings
}

export interface ProviderMetadataMtlsEndpointAliasesSettings {
  readonly token_endpoint?: string
  readonly userinfo_endpoint?: string
  readonly revocation_endpoint?: string
  readonly pushed_authorization_request_endpoint?: string
}

export interface ProviderClientKeySettings {
  readonly env?: string
  readonly file?: Path
  readonly kid?: string
  readonly alg?: 'RS256' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512' | 'ES256' | 'ES384' | 'ES512' | 'EdDSA'
}

export interface ProviderClientCertificateSettings {
  readonly cert_file?: Path
  readonly key_file?: Path
}

export interface ProviderSignalsSettings {
  readonly transmitter?: string
  readonly audience?: List<string>
  readonly signing_alg?:
    'RS256' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512' | 'ES256' | 'ES384' | 'ES512' | 'EdDSA'
  readonly delivery: 'push' | 'poll'
  readonly stream: 'existing' | 'managed'
  readonly poll_url?: string
  readonly authorization?: ProviderSignalsAuthorizationSettings
  readonly push_secret?: SecretSettings
  readonly trusted_subjects: List<'email' | 'account'>
  readonly events: ProviderSignalsEventsSettings
}

export interface ProviderSignalsAuthorizationSettings {
  readonly env?: string
  readonly file?: Path
  readonly client_credentials?: ProviderSignalsAuthorizationClientCredentialsSettings
}

export interface ProviderSignalsAuthorizationClientCredentialsSettings {
  readonly scopes: List<string>
}

export interface ProviderSignalsEventsSettings {
  readonly 'session-revoked': 'end' | 'reread_claims' | 'step_up' | 'ignore'
  readonly 'token-claims-change': 'end' | 'reread_claims' | 'step_up' | 'ignore'
  readonly 'credential-change': 'end' | 'reread_claims' | 'step_up' | 'ignore'
  readonly 'assurance-level-change': 'end' | 'reread_claims' | 'step_up' | 'ignore'
  readonly 'device-compliance-change': 'end' | 'reread_claims' | 'step_up' | 'ignore'
  readonly 'account-disabled': 'end' | 'reread_claims' | 'step_up' | 'ignore'
  readonly 'account-purged': 'end' | 'reread_claims' | 'step_up' | 'ignore'
  readonly 'account-credential-change-required': 'end' | 'reread_claims' | 'step_up' | 'ignore'
}

export type Duration = string

export interface EgressProxySettings {
  readonly url?: string
  readonly username?: string
  readonly password?: SecretSettings
  readonly no_proxy?: List<string>
  readonly ca_file?: Path
}

export interface SessionSettings {
  readonly keys?: List<SecretSettings>
  readonly store: 'memory' | SessionStoreSettings
  readonly idle_timeout: Duration
  readonly absolute_timeout: Duration
  readonly refresh_before: Duration
  readonly poll_userinfo?: Duration
  readonly store_outage_grace: Duration
  readonly max_per_person?: number | SessionMaxPerPersonSettings
  readonly page: boolean
  readonly device_binding: string | SessionDeviceBindingSettings
  readonly cookie: SessionCookieSettings
}

export interface SessionStoreSettings {
  readonly memory?: SessionStoreMemorySettings
  readonly redis?: RedisSettings
}

export interface SessionStoreMemorySettings {
  readonly max_sessions: number
}

export interface RedisSettings {
  readonly url?: string
  readonly sentinels?: List<string>
  readonly name?: string
  readonly database?: number
  readonly sentinel_username?: string
  readonly sentinel_password?: SecretSettings
  readonly cluster?: List<string>
  readonly username?: string
  readonly password?: SecretSettings
  readonly ca_file?: Path
  readonly cert_file?: Path
  readonly key_file?: Path
  readonly key_prefix: string
  readonly timeout: Duration
  readonly replicas_acknowledge: number
}

export interface SessionMaxPerPersonSettings {
  readonly count?: number
  readonly when_exceeded: 'end_oldest' | 'refuse'
}

export interface SessionDeviceBindingSettings {
  readonly mode: 'off' | 'when_supported' | 'required'
  readonly cookie_lifetime: Duration
  readonly registration_grace: Duration
  readonly on_misuse: 'refuse' | 'end'
}

export interface SessionCookieSettings {
  readonly name: string
  readonly domain?: string
  readonly same_site: 'lax' | 'strict'
}

export interface UpstreamSettings {
  readonly url?: string
  readonly forward_auth?: true
  readonly device_binding?: 'when_supported' | 'required'
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
  readonly hosts?: List<string>
  readonly path: string
  readonly strip_path: boolean
  readonly also_known_as: List<Origin>
  readonly rewrite_content: boolean
  readonly session_notice: boolean
  readonly set_cookie: UpstreamSetCookieSettings
  readonly response_headers: UpstreamResponseHeadersSettings
  readonly providers?: List<string>
  readonly external_url?: Origin
  readonly host_header: 'client' | 'upstream'
  readonly origin_header: 'client' | 'upstream'
  readonly headers: Readonly<Record<string, string | HeaderSettings>>
  readonly access_tokens?: UpstreamAccessTokensSettings
  readonly service_accounts?: UpstreamServiceAccountsSettings
  readonly token_exchange?: UpstreamTokenExchangeSettings
  readonly signed_identity: boolean | UpstreamSignedIdentitySettings
  readonly rules: List<RuleSettings>
  readonly trusted_origins: 'any' | List<Origin>
  readonly cors?: UpstreamCorsSettings
  readonly cache: 'private' | 'no_store' | 'upstream'
  readonly session_cookies?: List<string> | UpstreamSessionCookiesSettings
  readonly logout: UpstreamLogoutSettings
  readonly upgrade: List<string>
  readonly connect_timeout: Duration
  readonly response_timeout: Duration
  readonly idle_timeout: Duration
  readonly keep_alive: Duration
  readonly max_connections: number
  readonly max_streams: number
  readonly max_streams_per_client: number
  readonly ca_file?: Path
  readonly tests: List<TestSettings>
}

export interface UpstreamSetCookieSettings {
  readonly domain?: 'remove'
  readonly path?: string
  readonly secure: boolean
  readonly same_site?: 'strict' | 'lax' | 'none'
}

export interface UpstreamResponseHeadersSettings {
  readonly set: Readonly<Record<string, string>>
  readonly remove: List<string>
}

export interface HeaderSettings {
  readonly claim?: string
  readonly template?: string
  readonly first_of?: List<string>
  readonly value?: string
  readonly env?: string
  readonly file?: Path
  readonly request?: 'client_address' | 'scheme' | 'host' | 'port' | 'prefix'
  readonly basic?: HeaderBasicSettings
  readonly bearer?: 'access_token' | 'id_token' | 'exchanged_token'
  readonly after?: string
  readonly before?: string
  readonly case?: 'lower' | 'upper'
  readonly map?: Readonly<Record<string, string>>
  readonly json?: boolean
  readonly join: string
  readonly encode: 'utf8' | 'latin1' | 'percent' | 'base64' | 'base64url' | 'rfc2047' | 'rfc8187' | 'quoted_printable'
  readonly max_bytes: Size
  readonly too_long: 'omit' | 'refuse' | 'trim'
  readonly required: boolean
}

export interface HeaderBasicSettings {
  readonly user?: string
  readonly password?: SecretSettings
}

export interface UpstreamAccessTokensSettings {
  readonly audience?: List<string>
  readonly check: 'jwt' | 'introspection'
  readonly types: List<'at+jwt' | 'JWT' | 'none'>
  readonly scopes: List<string>
  readonly introspection_cache: Duration
  readonly metadata: boolean
}

export interface UpstreamServiceAccountsSettings {
  readonly file?: string
  readonly claims: Readonly<Record<string, Readonly<Record<string, JsonValue>>>>
}

export interface UpstreamTokenExchangeSettings {
  readonly audience?: string
  readonly resource?: string
  readonly scopes?: List<string>
  readonly requested_token_type?: 'access_token' | 'jwt'
}

export interface UpstreamSignedIdentitySettings {
  readonly header: string
  readonly audience?: string
  readonly lifetime: Duration
  readonly claims: List<string>
  readonly algorithm: 'ES256' | 'EdDSA'
}

export interface RuleSettings {
  readonly name?: string
  readonly path?: string
  readonly methods?: List<Method>
  readonly networks?: List<string>
  readonly access: 'public' | 'optional' | 'signed_in'
  readonly unauthenticated: 'auto' | 'redirect' | '401' | 401
  readonly require?: RequirementSettings | List<RequirementSettings>
  readonly device_binding?: 'when_supported' | 'required'
  readonly step_up?: RuleStepUpSettings
  readonly access_tokens: boolean | RuleAccessTokensSettings
  readonly service_accounts: boolean | List<string>
  readonly mode: 'enforce' | 'observe'
  readonly headers?: Readonly<Record<string, string | HeaderSettings>>
}

export type Method = string

export interface RequirementSettings {
  readonly claim?: string
  readonly equals?: string
  readonly any_of?: List<string>
  readonly all_of?: List<string>
  readonly none_of?: List<string>
  readonly contains?: string
  readonly begins_with?: string
  readonly ends_with?: string
  readonly matches?: string
  readonly email_domains?: List<string>
  readonly verified: boolean
  readonly networks?: List<string>
  readonly time?: RequirementTimeSettings
  readonly methods?: List<Method>
  readonly all?: List<RequirementSettings>
  readonly any?: List<RequirementSettings>
  readonly not?: RequirementSettings
}

export interface RequirementTimeSettings {
  readonly days: List<'mon' | 'tue' | 'wed' | 'thu' | 'fri' | 'sat' | 'sun'>
  readonly from: string
  readonly to: string
  readonly zone?: string
}

export interface RuleStepUpSettings {
  readonly acr_values?: List<string>
  readonly max_age?: Duration
}

export interface RuleAccessTokensSettings {
  readonly scopes: List<string>
}

export interface UpstreamCorsSettings {
  readonly origins?: List<Origin>
  readonly methods: List<Method>
  readonly headers: List<CorsField>
  readonly expose: List<CorsField>
  readonly credentials: boolean
  readonly max_age: Duration
}

export type CorsField = string

export interface UpstreamSessionCookiesSettings {
  readonly all?: true
}

export interface UpstreamLogoutSettings {
  readonly paths: List<string | LogoutLinkSettings>
  readonly pass_first: boolean
  readonly cookies: List<string>
  readonly call?: string | LogoutCallSettings
}

export interface LogoutLinkSettings {
  readonly path?: string
  readonly query?: Readonly<Record<string, string>>
  readonly methods?: List<Method>
}

export interface LogoutCallSettings {
  readonly get?: RequestPath
  readonly post?: RequestPath
  readonly timeout: Duration
}

export type RequestPath = string

export interface TestSettings {
  readonly as?: Readonly<Record<string, JsonValue>>
  readonly bearer: boolean
  readonly service_account?: string
  readonly get?: RequestPath
  readonly post?: RequestPath
  readonly put?: RequestPath
  readonly patch?: RequestPath
  readonly delete?: RequestPath
  readonly head?: RequestPath
  readonly options?: RequestPath
  readonly host?: string
  readonly from?: string
  readonly at?: string
  readonly expect?: 'pass' | 'sign_in' | 'sign_out' | 'unauthorized' | 'forbidden' | 'no_route'
  readonly headers: Readonly<Record<string, string | null>>
}

export interface SigningKeysSettings {
  readonly rotate_every: Duration
}

export interface PagesSettings {
  readonly name?: string
  readonly logo?: string
  readonly language: 'en' | 'de' | 'fr' | 'ja'
  readonly colours: PagesColoursSettings
  readonly support?: PagesSupportSettings
  readonly templates?: string
}

export interface PagesColoursSettings {
  readonly light: PagesColoursLightSettings
  readonly dark: PagesColoursDarkSettings
}

export interface PagesColoursLightSettings {
  readonly background: Color
  readonly surface: Color
  readonly text: Color
  readonly accent: Color
}

export type Color = string

export interface PagesColoursDarkSettings {
  readonly background: Color
  readonly surface: Color
  readonly text: Color
  readonly accent: Color
}

export interface PagesSupportSettings {
  readonly text?: string
  readonly url?: string
  readonly mail?: string
}

export interface LimitsSettings {
  readonly header_size: Size
  readonly header_count: number
  readonly headers_timeout: Duration
  readonly body_idle_timeout: Duration
  readonly body_rate: Size
  readonly connections: number
  readonly per_client: LimitsPerClientSettings
}

export interface LimitsPerClientSettings {
  readonly connections: number
  readonly sign_ins: Rate
  readonly callbacks: Rate
  readonly callbacks_at_once: number
  readonly refused_logout_tokens: Rate
}

export type Rate = string

export interface KeptRequestsSettings {
  readonly max_size: Size
  readonly keep_for: Duration
}

export interface ShutdownSettings {
  readonly drain_timeout: Duration
}

export interface LogSettings {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly access: boolean
  readonly format: 'json' | 'pretty' | 'auto'
}

export interface TracingSettings {
  readonly otlp?: string
  readonly sample: number
  readonly service_name: string
  readonly resource: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, SecretSettings>>
  readonly ca_file?: Path
}
