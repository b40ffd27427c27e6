// Generated from schemas/gateway.schema.json by `npm run reference`: do not edit.
// The schema describes each setting. Invalid values have been reported and removed, so a required
// setting may be missing, and a list may have gaps. document/read-settings.ts says what else
// distinguishes these settings from those in the file.

import type { JsonValue } from '../core/claims.ts'
import type { Rate } from './quantities.ts'

/** A list. An invalid entry leaves a gap, so that the other entries keep their index. */
export type List<T> = readonly (T | undefined)[]

export interface GatewaySettings {
  readonly version?: 1 | undefined
  readonly listen: ListenSettings
  readonly admin?: AdminSettings | undefined
  readonly extAuthz?: ExtAuthzSettings | undefined
  readonly externalUrl?: string | undefined
  readonly reservedPrefix: string
  readonly trustedProxies: List<string>
  readonly clientCertHeader: boolean
  readonly workers: 'auto' | number
  readonly provider: ProviderSettings
  readonly providers?: Readonly<Record<string, ProviderSettings>> | undefined
  readonly egressProxy?: EgressProxySettings | undefined
  readonly session: SessionSettings
  readonly include?: List<string> | undefined
  readonly upstreams?: Readonly<Record<string, UpstreamSettings>> | undefined
  readonly signingKeys: SigningKeysSettings
  readonly pages: PagesSettings
  readonly limits: LimitsSettings
  readonly keptRequests: KeptRequestsSettings
  readonly shutdown: ShutdownSettings
  readonly log: LogSettings
  readonly tracing?: TracingSettings | undefined
}

export interface ListenSettings {
  readonly address: string | number
  readonly tls?: ListenTlsSettings | undefined
  readonly plainPath: boolean
  readonly http2: boolean
  readonly h2c: boolean
}

export interface ListenTlsSettings {
  readonly certFile?: string | undefined
  readonly keyFile?: string | undefined
  readonly certificates: List<ListenTlsCertificatesSettings>
  readonly clientCaFile?: string | undefined
}

export interface ListenTlsCertificatesSettings {
  readonly certFile?: string | undefined
  readonly keyFile?: string | undefined
}

export interface AdminSettings {
  readonly listen?: string | number | undefined
  readonly page?: AdminPageSettings | undefined
}

export interface AdminPageSettings {
  readonly token?: SecretSettings | undefined
  readonly hosts: List<string>
  readonly showClaim?: string | undefined
}

export interface SecretSettings {
  readonly env?: string | undefined
  readonly file?: string | undefined
}

export interface ExtAuthzSettings {
  readonly listen?: string | number | undefined
  readonly messageSizeBytes: number
}

export interface ProviderSettings {
  readonly issuer?: string | undefined
  readonly kind: 'openid' | 'oauth2'
  readonly subject?: string | undefined
  readonly title?: string | undefined
  readonly metadata?: ProviderMetadataSettings | undefined
  readonly client_id?: string | undefined
  readonly client_secret?: SecretSettings | undefined
  readonly token_endpoint_auth_method:
    | 'client_secret_basic'
    | 'client_secret_post'
    | 'client_secret_jwt'
    | 'private_key_jwt'
    | 'tls_client_auth'
    | 'self_signed_tls_client_auth'
  readonly clientKey?: ProviderClientKeySettings | undefined
  readonly clientAssertionAudience: 'issuer' | 'token_endpoint'
  readonly clientCertificate?: ProviderClientCertificateSettings | undefined
  readonly response_mode: 'query' | 'form_post' | 'jwt' | 'query.jwt' | 'form_post.jwt'
  readonly pushedAuthorizationRequests: 'when_required' | 'always' | 'never'
  readonly signedRequests: boolean
  readonly dpop: boolean
  readonly resource?: string | List<string> | undefined
  readonly globalTokenRevocation?: ProviderGlobalTokenRevocationSettings | undefined
  readonly signals?: ProviderSignalsSettings | undefined
  readonly frontchannelLogout: boolean
  readonly scopes?: List<string> | undefined
  readonly authorizationParams: Readonly<Record<string, string>>
  readonly endSessionParams?: Readonly<Record<string, string | null>> | undefined
  readonly endSessionForm?: 'when_long' | 'always' | 'never' | undefined
  readonly linkParams: List<string>
  readonly claims: Readonly<Record<string, string>>
  readonly idTokenClaims: List<string>
  readonly claimSources: List<ClaimsProviderSettings>
  readonly claimsFrom: List<ClaimSourceSettings>
  readonly id_token_signed_response_alg?:
    'RS256' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512' | 'ES256' | 'ES384' | 'ES512' | 'EdDSA' | undefined
  readonly userinfo_signed_response_alg?:
    'RS256' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512' | 'ES256' | 'ES384' | 'ES512' | 'EdDSA' | undefined
  readonly id_token_encrypted_response_alg?:
    'RSA-OAEP' | 'RSA-OAEP-256' | 'ECDH-ES' | 'ECDH-ES+A128KW' | 'ECDH-ES+A192KW' | 'ECDH-ES+A256KW' | undefined
  readonly id_token_encrypted_response_enc?:
    'A128CBC-HS256' | 'A192CBC-HS384' | 'A256CBC-HS512' | 'A128GCM' | 'A192GCM' | 'A256GCM' | undefined
  readonly userinfo_encrypted_response_alg?:
    'RSA-OAEP' | 'RSA-OAEP-256' | 'ECDH-ES' | 'ECDH-ES+A128KW' | 'ECDH-ES+A192KW' | 'ECDH-ES+A256KW' | undefined
  readonly userinfo_encrypted_response_enc?:
    'A128CBC-HS256' | 'A192CBC-HS384' | 'A256CBC-HS512' | 'A128GCM' | 'A192GCM' | 'A256GCM' | undefined
  readonly authorization_encrypted_response_alg?:
    'RSA-OAEP' | 'RSA-OAEP-256' | 'ECDH-ES' | 'ECDH-ES+A128KW' | 'ECDH-ES+A192KW' | 'ECDH-ES+A256KW' | undefined
  readonly authorization_encrypted_response_enc?:
    'A128CBC-HS256' | 'A192CBC-HS384' | 'A256CBC-HS512' | 'A128GCM' | 'A192GCM' | 'A256GCM' | undefined
  readonly decryptionKey?: ProviderDecryptionKeySettings | undefined
  readonly clockToleranceMs: number
  readonly timeoutMs: number
  readonly caFile?: string | undefined
  readonly profile?: 'fapi2' | 'fapi2_message_signing' | undefined
}

export interface ProviderMetadataSettings {
  readonly authorization_endpoint?: string | undefined
  readonly token_endpoint?: string | undefined
  readonly jwks_uri?: string | undefined
  readonly userinfo_endpoint?: string | undefined
  readonly end_session_endpoint?: string | undefined
  readonly revocation_endpoint?: string | undefined
  readonly pushed_authorization_request_endpoint?: string | undefined
  readonly require_pushed_authorization_requests?: boolean | undefined
  readonly require_signed_request_object?: boolean | undefined
  readonly authorization_response_iss_parameter_supported?: boolean | undefined
  readonly id_token_signing_alg_values_supported?: List<string> | undefined
  readonly scopes_supported?: List<string> | undefined
  readonly acr_values_supported?: List<string> | undefined
  readonly mtls_endpoint_aliases?: ProviderMetadataMtlsEndpointAliasesSettings | undefined
}

export interface ProviderMetadataMtlsEndpointAliasesSettings {
  readonly token_endpoint?: string | undefined
  readonly userinfo_endpoint?: string | undefined
  readonly revocation_endpoint?: string | undefined
  readonly pushed_authorization_request_endpoint?: string | undefined
}

export interface ProviderClientKeySettings {
  readonly env?: string | undefined
  readonly file?: string | undefined
  readonly kid?: string | undefined
  readonly alg?:
    'RS256' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512' | 'ES256' | 'ES384' | 'ES512' | 'EdDSA' | undefined
}

export interface ProviderClientCertificateSettings {
  readonly certFile?: string | undefined
  readonly keyFile?: string | undefined
}

export interface ProviderGlobalTokenRevocationSettings {
  readonly issuer?: string | undefined
  readonly jwksUri?: string | undefined
  readonly signingAlg?:
    'RS256' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512' | 'ES256' | 'ES384' | 'ES512' | 'EdDSA' | undefined
  readonly trustedSubjects: List<'email' | 'account'>
}

export interface ProviderSignalsSettings {
  readonly transmitter?: string | undefined
  readonly audience?: List<string> | undefined
  readonly signingAlg?:
    'RS256' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512' | 'ES256' | 'ES384' | 'ES512' | 'EdDSA' | undefined
  readonly delivery: 'push' | 'poll'
  readonly stream: 'existing' | 'managed'
  readonly pollUrl?: string | undefined
  readonly authorization?: ProviderSignalsAuthorizationSettings | undefined
  readonly pushSecret?: SecretSettings | undefined
  readonly trustedSubjects: List<'email' | 'account'>
  readonly events: ProviderSignalsEventsSettings
}

export interface ProviderSignalsAuthorizationSettings {
  readonly env?: string | undefined
  readonly file?: string | undefined
  readonly clientCredentials?: ProviderSignalsAuthorizationClientCredentialsSettings | undefined
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

export interface ClaimsProviderSettings {
  readonly issuer?: string | undefined
  readonly jwks_uri?: string | undefined
  readonly endpoints: List<string>
}

export interface ClaimSourceSettings {
  readonly url?: string | undefined
  readonly token: 'access_token' | 'client_credentials'
  readonly scopes: List<string>
  readonly select?: string | undefined
  readonly absentIsEmpty: boolean
  readonly as?: string | undefined
  readonly merge: boolean
  readonly pages?: ClaimSourcePagesSettings | undefined
  readonly everyMs?: number | undefined
}

export interface ClaimSourcePagesSettings {
  readonly next?: string | undefined
  readonly parameter?: string | undefined
}

export interface ProviderDecryptionKeySettings {
  readonly env?: string | undefined
  readonly file?: string | undefined
  readonly kid?: string | undefined
}

export interface EgressProxySettings {
  readonly url?: string | undefined
  readonly username?: string | undefined
  readonly password?: SecretSettings | undefined
  readonly noProxy?: List<string> | undefined
  readonly caFile?: string | undefined
}

export interface SessionSettings {
  readonly keys?: List<SecretSettings> | undefined
  readonly store: SessionStoreSettings
  readonly idleTimeoutMs: number
  readonly absoluteTimeoutMs: number
  readonly refreshBeforeMs: number
  readonly pollUserinfoMs?: number | undefined
  readonly storeOutageGraceMs: number
  readonly maxPerPerson?: SessionMaxPerPersonSettings | undefined
  readonly page: boolean
  readonly embeddedIn: List<string>
  readonly deviceBinding: SessionDeviceBindingSettings
  readonly cookie: SessionCookieSettings
}

export interface SessionStoreSettings {
  readonly memory?: SessionStoreMemorySettings | undefined
  readonly file?: string | undefined
  readonly redis?: RedisSettings | undefined
}

export interface SessionStoreMemorySettings {
  readonly maxSessions: number
}

export interface RedisSettings {
  readonly url?: string | undefined
  readonly sentinels?: List<string> | undefined
  readonly name?: string | undefined
  readonly database?: number | undefined
  readonly sentinelUsername?: string | undefined
  readonly sentinelPassword?: SecretSettings | undefined
  readonly cluster?: List<string> | undefined
  readonly username?: string | undefined
  readonly password?: SecretSettings | undefined
  readonly caFile?: string | undefined
  readonly certFile?: string | undefined
  readonly keyFile?: string | undefined
  readonly keyPrefix: string
  readonly timeoutMs: number
  readonly replicasAcknowledge: number
}

export interface SessionMaxPerPersonSettings {
  readonly count?: number | undefined
  readonly whenExceeded: 'end_oldest' | 'refuse'
}

export interface SessionDeviceBindingSettings {
  readonly mode: 'off' | 'when_supported' | 'required'
  readonly cookieLifetimeMs: number
  readonly registrationGraceMs: number
  readonly onMisuse: 'refuse' | 'end'
}

export interface SessionCookieSettings {
  readonly name: string
  readonly domain?: string | undefined
  readonly sameSite: 'lax' | 'strict'
}

export interface UpstreamSettings {
  readonly url?: string | undefined
  readonly targets?: List<TargetSettings> | UpstreamTargetsSettings | undefined
  readonly balance: 'round_robin' | 'least_requests' | 'sticky'
  readonly eject: false | UpstreamEjectSettings
  readonly healthCheck?: UpstreamHealthCheckSettings | undefined
  readonly slowStartMs: number
  readonly retryBudget: number
  readonly protocol: 'http1' | 'h2' | 'h2c'
  readonly streamsPerConnection: number
  readonly connectionsPerTarget?: number | undefined
  readonly forwardAuth?: true | undefined
  readonly clientCertHeader: boolean
  readonly deviceBinding?: 'when_supported' | 'required' | undefined
  readonly authorizeWith?: UpstreamAuthorizeWithSettings | undefined
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
    | undefined
  readonly hosts?: List<string> | undefined
  readonly path: string
  readonly stripPath: boolean
  readonly alsoKnownAs: List<string>
  readonly rewriteContent: boolean
  readonly compress: false | UpstreamCompressSettings
  readonly sessionNotice: boolean
  readonly setCookie: UpstreamSetCookieSettings
  readonly requestHeaders: UpstreamRequestHeadersSettings
  readonly responseHeaders: UpstreamResponseHeadersSettings
  readonly providers?: List<string> | undefined
  readonly externalUrl?: string | undefined
  readonly hostHeader: 'client' | 'upstream'
  readonly originHeader: 'client' | 'upstream'
  readonly headers: Readonly<Record<string, HeaderSettings>>
  readonly accessTokens?: UpstreamAccessTokensSettings | undefined
  readonly serviceAccounts?: UpstreamServiceAccountsSettings | undefined
  readonly tokenExchange?: UpstreamTokenExchangeSettings | undefined
  readonly signedIdentity: false | UpstreamSignedIdentitySettings
  readonly rules: List<RuleSettings>
  readonly trustedOrigins: 'any' | List<string>
  readonly cors?: UpstreamCorsSettings | undefined
  readonly cache: 'private' | 'no_store' | 'upstream'
  readonly sessionCookies?: List<string> | UpstreamSessionCookiesSettings | undefined
  readonly logout: UpstreamLogoutSettings
  readonly upgrade: List<string>
  readonly connectTimeoutMs: number
  readonly responseTimeoutMs: number
  readonly idleTimeoutMs: number
  readonly keepAliveMs: number
  readonly maxConnections: number
  readonly maxStreams: number
  readonly maxStreamsPerClient: number
  readonly caFile?: string | undefined
  readonly serverName?: string | undefined
  readonly clientCertificate?: UpstreamClientCertificateSettings | undefined
  readonly pinnedKeys?: List<string> | undefined
  readonly proxyProtocol: 'off' | 'v2'
  readonly tests: List<TestSettings>
}

export interface TargetSettings {
  readonly url?: string | undefined
  readonly weight: number
  readonly backup: boolean
}

export interface UpstreamTargetsSettings {
  readonly resolve?: UpstreamTargetsResolveSettings | undefined
}

export interface UpstreamTargetsResolveSettings {
  readonly a?: string | undefined
  readonly srv?: string | undefined
  readonly scheme: 'http' | 'https'
  readonly port?: number | undefined
  readonly everyMs: number
  readonly servers?: List<string> | undefined
}

export interface UpstreamEjectSettings {
  readonly failures: number
  readonly statuses: List<number>
  readonly forMs: number
  readonly atMostMs: number
}

export interface UpstreamHealthCheckSettings {
  readonly path?: string | undefined
  readonly everyMs: number
  readonly timeoutMs: number
  readonly expect: List<number>
  readonly healthyAfter: number
  readonly unhealthyAfter: number
}

export interface UpstreamAuthorizeWithSettings {
  readonly url?: string | undefined
  readonly authorization?: SecretSettings | undefined
  readonly claims: List<string>
  readonly timeoutMs: number
  readonly caFile?: string | undefined
}

export interface UpstreamCompressSettings {
  readonly personal: boolean
}

export interface UpstreamSetCookieSettings {
  readonly domain?: 'remove' | undefined
  readonly path?: string | undefined
  readonly secure: boolean
  readonly sameSite?: 'strict' | 'lax' | 'none' | undefined
}

export interface UpstreamRequestHeadersSettings {
  readonly remove: List<string>
}

export interface UpstreamResponseHeadersSettings {
  readonly hstsMs?: number | undefined
  readonly frameAncestors?: List<string> | undefined
  readonly referrerPolicy?:
    | 'no-referrer'
    | 'no-referrer-when-downgrade'
    | 'origin'
    | 'origin-when-cross-origin'
    | 'same-origin'
    | 'strict-origin'
    | 'strict-origin-when-cross-origin'
    | 'unsafe-url'
    | undefined
  readonly permissionsPolicy?: string | undefined
  readonly set: Readonly<Record<string, string>>
  readonly remove: List<string>
}

export interface HeaderSettings {
  readonly claim?: string | undefined
  readonly template?: string | undefined
  readonly firstOf?: List<string> | undefined
  readonly value?: string | undefined
  readonly env?: string | undefined
  readonly file?: string | undefined
  readonly request?: 'client_address' | 'scheme' | 'host' | 'port' | 'prefix' | undefined
  readonly basic?: HeaderBasicSettings | undefined
  readonly bearer?: 'access_token' | 'id_token' | 'exchanged_token' | undefined
  readonly after?: string | undefined
  readonly before?: string | undefined
  readonly case?: 'lower' | 'upper' | undefined
  readonly map?: Readonly<Record<string, string>> | undefined
  readonly json?: boolean | undefined
  readonly join: string
  readonly encode: 'utf8' | 'latin1' | 'percent' | 'base64' | 'base64url' | 'rfc2047' | 'rfc8187' | 'quoted_printable'
  readonly maxBytes: number
  readonly tooLong: 'omit' | 'refuse' | 'trim'
  readonly required: boolean
}

export interface HeaderBasicSettings {
  readonly user?: string | undefined
  readonly password?: SecretSettings | undefined
}

export interface UpstreamAccessTokensSettings {
  readonly audience?: List<string> | undefined
  readonly check: 'jwt' | 'introspection'
  readonly types: List<'at+jwt' | 'JWT' | 'none'>
  readonly scopes: List<string>
  readonly introspectionCacheMs: number
  readonly metadata: boolean
}

export interface UpstreamServiceAccountsSettings {
  readonly file?: string | undefined
  readonly claims: Readonly<Record<string, Readonly<Record<string, JsonValue>>>>
}

export interface UpstreamTokenExchangeSettings {
  readonly audience?: string | undefined
  readonly resource?: string | undefined
  readonly scopes?: List<string> | undefined
  readonly requestedTokenType?: 'access_token' | 'jwt' | undefined
}

export interface UpstreamSignedIdentitySettings {
  readonly header: string
  readonly audience?: string | undefined
  readonly lifetimeMs: number
  readonly claims: List<string>
  readonly algorithm: 'ES256' | 'EdDSA'
}

export interface RuleSettings {
  readonly name?: string | undefined
  readonly path?: string | undefined
  readonly methods?: List<string> | undefined
  readonly networks?: List<string> | undefined
  readonly access: 'public' | 'optional' | 'signed_in'
  readonly unauthenticated: 'auto' | 'redirect' | '401' | 401
  readonly require?: RequirementSettings | List<RequirementSettings> | undefined
  readonly authorizeWith: boolean
  readonly deviceBinding?: 'when_supported' | 'required' | undefined
  readonly stepUp?: RuleStepUpSettings | undefined
  readonly accessTokens: false | RuleAccessTokensSettings
  readonly serviceAccounts: boolean | List<string>
  readonly clientCertificates: boolean
  readonly mode: 'enforce' | 'observe'
  readonly respond?: RuleRespondSettings | undefined
  readonly headers?: Readonly<Record<string, HeaderSettings>> | undefined
}

export interface RequirementSettings {
  readonly claim?: string | undefined
  readonly equals?: string | undefined
  readonly anyOf?: List<string> | undefined
  readonly allOf?: List<string> | undefined
  readonly noneOf?: List<string> | undefined
  readonly contains?: string | undefined
  readonly beginsWith?: string | undefined
  readonly endsWith?: string | undefined
  readonly matches?: string | undefined
  readonly emailDomains?: List<string> | undefined
  readonly verified: boolean
  readonly networks?: List<string> | undefined
  readonly time?: RequirementTimeSettings | undefined
  readonly methods?: List<string> | undefined
  readonly all?: List<RequirementSettings> | undefined
  readonly any?: List<RequirementSettings> | undefined
  readonly not?: RequirementSettings | undefined
}

export interface RequirementTimeSettings {
  readonly days: List<'mon' | 'tue' | 'wed' | 'thu' | 'fri' | 'sat' | 'sun'>
  readonly from: string
  readonly to: string
  readonly zone?: string | undefined
}

export interface RuleStepUpSettings {
  readonly acr_values?: List<string> | undefined
  readonly maxAgeMs?: number | undefined
}

export interface RuleAccessTokensSettings {
  readonly scopes: List<string>
}

export interface RuleRespondSettings {
  readonly to?: string | undefined
  readonly files?: string | undefined
  readonly maintenance?: false | RuleRespondMaintenanceSettings | undefined
  readonly status?: number | undefined
  readonly text?: string | undefined
  readonly file?: string | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly maxAgeMs: number
}

export interface RuleRespondMaintenanceSettings {
  readonly unless?: RequirementSettings | List<RequirementSettings> | undefined
  readonly retryAfterMs: number
}

export interface UpstreamCorsSettings {
  readonly origins?: List<string> | undefined
  readonly methods: List<string>
  readonly headers: List<string>
  readonly expose: List<string>
  readonly credentials: boolean
  readonly maxAgeMs: number
}

export interface UpstreamSessionCookiesSettings {
  readonly all?: true | undefined
}

export interface UpstreamLogoutSettings {
  readonly paths: List<LogoutLinkSettings>
  readonly passFirst: boolean
  readonly cookies: List<string>
  readonly call?: LogoutCallSettings | undefined
}

export interface LogoutLinkSettings {
  readonly path?: string | undefined
  readonly query?: Readonly<Record<string, string>> | undefined
  readonly methods?: List<string> | undefined
}

export interface LogoutCallSettings {
  readonly get?: string | undefined
  readonly post?: string | undefined
  readonly timeoutMs: number
}

export interface UpstreamClientCertificateSettings {
  readonly certFile?: string | undefined
  readonly keyFile?: string | undefined
}

export interface TestSettings {
  readonly as?: Readonly<Record<string, JsonValue>> | undefined
  readonly bearer: boolean
  readonly serviceAccount?: string | undefined
  readonly clientCertificate?: TestCertificateSettings | undefined
  readonly get?: string | undefined
  readonly post?: string | undefined
  readonly put?: string | undefined
  readonly patch?: string | undefined
  readonly delete?: string | undefined
  readonly head?: string | undefined
  readonly options?: string | undefined
  readonly host?: string | undefined
  readonly from?: string | undefined
  readonly at?: string | undefined
  readonly expect?:
    'pass' | 'respond' | 'maintenance' | 'sign_in' | 'sign_out' | 'unauthorized' | 'forbidden' | 'no_route' | undefined
  readonly headers: Readonly<Record<string, string | null>>
}

export interface TestCertificateSettings {
  readonly subject?: string | undefined
  readonly cn: List<string>
  readonly o: List<string>
  readonly ou: List<string>
  readonly issuer?: string | undefined
  readonly dns: List<string>
  readonly uri: List<string>
  readonly email: List<string>
  readonly ip: List<string>
  readonly serial?: string | undefined
  readonly sha256?: string | undefined
}

export interface SigningKeysSettings {
  readonly rotateEveryMs: number
}

export interface PagesSettings {
  readonly name?: string | undefined
  readonly logo?: string | undefined
  readonly language: 'en' | 'de' | 'fr' | 'ja'
  readonly colours: PagesColoursSettings
  readonly support?: PagesSupportSettings | undefined
  readonly templates?: string | undefined
}

export interface PagesColoursSettings {
  readonly light: PagesColoursLightSettings
  readonly dark: PagesColoursDarkSettings
}

export interface PagesColoursLightSettings {
  readonly background: string
  readonly surface: string
  readonly text: string
  readonly accent: string
}

export interface PagesColoursDarkSettings {
  readonly background: string
  readonly surface: string
  readonly text: string
  readonly accent: string
}

export interface PagesSupportSettings {
  readonly text?: string | undefined
  readonly url?: string | undefined
  readonly mail?: string | undefined
}

export interface LimitsSettings {
  readonly headerSizeBytes: number
  readonly headerCount: number
  readonly headersTimeoutMs: number
  readonly bodyIdleTimeoutMs: number
  readonly bodyRateBytesPerSecond: number
  readonly connections: number
  readonly perClient: LimitsPerClientSettings
}

export interface LimitsPerClientSettings {
  readonly connections: number
  readonly signIns: Rate
  readonly callbacks: Rate
  readonly callbacksAtOnce: number
  readonly refusedLogoutTokens: Rate
}

export interface KeptRequestsSettings {
  readonly maxSizeBytes: number
  readonly keepForMs: number
}

export interface ShutdownSettings {
  readonly drainTimeoutMs: number
}

export interface LogSettings {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly access: boolean
  readonly format: 'json' | 'pretty' | 'auto'
}

export interface TracingSettings {
  readonly otlp?: string | undefined
  readonly sample: number
  readonly serviceName: string
  readonly resource: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, SecretSettings>>
  readonly caFile?: string | undefined
}
