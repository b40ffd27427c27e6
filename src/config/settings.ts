// Generated from schemas/gateway.schema.json by `npm run reference`: do not edit. The schema
// describes each setting. Invalid values have been reported and removed, so a required setting may
// be missing, and a list shorter. document/read-settings.ts says what else distinguishes these
// settings from those in the file.

import type { JsonValue } from '../core/claims.ts'
import type { Formats } from './document/formats.ts'
import type { Rate } from './quantities.ts'

export interface GatewaySettings {
  readonly version?: 1 | undefined
  readonly listen: ListenSettings
  readonly admin?: AdminSettings | undefined
  readonly extAuthz?: ExtAuthzSettings | undefined
  readonly externalUrl?: Formats['origin_url'] | undefined
  readonly reservedPrefix: string
  readonly trustedProxies: readonly Formats['network'][]
  readonly clientCertHeader: boolean
  readonly workers: 'auto' | number
  readonly provider: ProviderSettings
  readonly providers?: Readonly<Record<string, ProviderSettings>> | undefined
  readonly egressProxy?: EgressProxySettings | undefined
  readonly session: SessionSettings
  readonly include?: readonly string[] | undefined
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
  readonly certificates: readonly ListenTlsCertificatesSettings[]
  readonly clientCaFile?: string | undefined
}

export interface ListenTlsCertificatesSettings {
  readonly certFile?: string | undefined
  readonly keyFile?: string | undefined
}

export interface AdminSettings {
  readonly listen?: Formats['local_address'] | undefined
  readonly page?: AdminPageSettings | undefined
}

export interface AdminPageSettings {
  readonly token?: Formats['secret'] | undefined
  readonly hosts: readonly Formats['whole_host'][]
  readonly showClaim?: string | undefined
}

export interface ExtAuthzSettings {
  readonly listen?: Formats['local_address'] | undefined
  readonly messageSizeBytes: number
}

export interface ProviderSettings {
  readonly issuer?: string | undefined
  readonly kind: 'openid' | 'oauth2'
  readonly subject?: Formats['claim_path'] | undefined
  readonly title?: string | undefined
  readonly metadata?: ProviderMetadataSettings | undefined
  readonly client_id?: string | undefined
  readonly client_secret?: Formats['client_secret'] | undefined
  readonly token_endpoint_auth_method:
    | 'client_secret_basic'
    | 'client_secret_post'
    | 'client_secret_jwt'
    | 'private_key_jwt'
    | 'tls_client_auth'
    | 'self_signed_tls_client_auth'
  readonly clientKey?: ProviderClientKeySettings | undefined
  readonly clientAssertion?: ProviderClientAssertionSettings | undefined
  readonly clientAssertionAudience: 'issuer' | 'token_endpoint'
  readonly clientCertificate?: Formats['key_pair'] | undefined
  readonly response_mode: 'query' | 'form_post' | 'jwt' | 'query.jwt' | 'form_post.jwt'
  readonly pushedAuthorizationRequests: 'when_required' | 'always' | 'never'
  readonly signedRequests: boolean
  readonly dpop: boolean
  readonly resource?: Formats['uri'] | readonly Formats['uri'][] | undefined
  readonly globalTokenRevocation?: ProviderGlobalTokenRevocationSettings | undefined
  readonly signals?: ProviderSignalsSettings | undefined
  readonly frontchannelLogout: boolean
  readonly scopes?: readonly string[] | undefined
  readonly authorizationParams: Readonly<Record<string, string>>
  readonly endSessionParams?: Readonly<Record<string, string | null>> | undefined
  readonly endSessionForm?: 'when_long' | 'always' | 'never' | undefined
  readonly linkParams: readonly string[]
  readonly claims: Readonly<Record<string, string>>
  readonly idTokenClaims: readonly string[]
  readonly claimSources: readonly ClaimsProviderSettings[]
  readonly claimsFrom: readonly ClaimSourceSettings[]
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
  readonly ca?: Formats['authorities'] | undefined
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
  readonly id_token_signing_alg_values_supported?: readonly string[] | undefined
  readonly scopes_supported?: readonly string[] | undefined
  readonly acr_values_supported?: readonly string[] | undefined
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

export interface ProviderClientAssertionSettings {
  readonly file?: string | undefined
}

export interface ProviderGlobalTokenRevocationSettings {
  readonly issuer?: Formats['secure_url'] | undefined
  readonly jwksUri?: Formats['secure_url'] | undefined
  readonly signingAlg?:
    'RS256' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512' | 'ES256' | 'ES384' | 'ES512' | 'EdDSA' | undefined
  readonly trustedSubjects: readonly ('email' | 'account')[]
}

export interface ProviderSignalsSettings {
  readonly transmitter?: Formats['secure_url'] | undefined
  readonly audience?: readonly string[] | undefined
  readonly signingAlg?:
    'RS256' | 'RS384' | 'RS512' | 'PS256' | 'PS384' | 'PS512' | 'ES256' | 'ES384' | 'ES512' | 'EdDSA' | undefined
  readonly delivery: 'push' | 'poll'
  readonly stream: 'existing' | 'managed'
  readonly pollUrl?: Formats['secure_url'] | undefined
  readonly authorization?: ProviderSignalsAuthorizationSettings | undefined
  readonly pushSecret?: Formats['secret'] | undefined
  readonly trustedSubjects: readonly ('email' | 'account')[]
  readonly events: ProviderSignalsEventsSettings
}

export interface ProviderSignalsAuthorizationSettings {
  readonly env?: string | undefined
  readonly file?: string | undefined
  readonly clientCredentials?: ProviderSignalsAuthorizationClientCredentialsSettings | undefined
}

export interface ProviderSignalsAuthorizationClientCredentialsSettings {
  readonly scopes: readonly string[]
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
  readonly jwks_uri?: Formats['secure_url'] | undefined
  readonly endpoints: readonly Formats['secure_origin'][]
}

export interface ClaimSourceSettings {
  readonly url?: string | undefined
  readonly token: 'access_token' | 'client_credentials'
  readonly scopes: readonly string[]
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
  readonly password?: Formats['secret'] | undefined
  readonly noProxy?: readonly Formats['no_proxy'][] | undefined
  readonly ca?: Formats['authorities'] | undefined
}

export interface SessionSettings {
  readonly keys?: readonly Formats['session_key'][] | undefined
  readonly store: SessionStoreSettings
  readonly idleTimeoutMs: number
  readonly absoluteTimeoutMs: number
  readonly refreshBeforeMs: number
  readonly pollUserinfoMs?: number | undefined
  readonly storeOutageGraceMs: number
  readonly maxPerPerson?: SessionMaxPerPersonSettings | undefined
  readonly page: boolean
  readonly embeddedIn: readonly Formats['origin'][]
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
  readonly url?: Formats['redis_url'] | undefined
  readonly sentinels?: readonly Formats['redis_server'][] | undefined
  readonly name?: string | undefined
  readonly database?: number | undefined
  readonly sentinelUsername?: string | undefined
  readonly sentinelPassword?: Formats['secret'] | undefined
  readonly cluster?: readonly Formats['redis_server'][] | undefined
  readonly username?: string | undefined
  readonly password?: Formats['secret'] | undefined
  readonly ca?: Formats['authorities'] | undefined
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
  readonly domain?: Formats['cookie_domain'] | undefined
  readonly sameSite: 'lax' | 'strict'
}

export interface UpstreamSettings {
  readonly url?: Formats['target'] | undefined
  readonly targets?: readonly TargetSettings[] | UpstreamTargetsSettings | undefined
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
  readonly hosts?: readonly Formats['host'][] | undefined
  readonly path: Formats['folder']
  readonly stripPath: boolean
  readonly alsoKnownAs: readonly Formats['origin'][]
  readonly rewriteContent: boolean
  readonly compress: false | UpstreamCompressSettings
  readonly sessionNotice: boolean
  readonly setCookie: UpstreamSetCookieSettings
  readonly requestHeaders: UpstreamRequestHeadersSettings
  readonly responseHeaders: UpstreamResponseHeadersSettings
  readonly providers?: readonly string[] | undefined
  readonly externalUrl?: Formats['wildcard_origin'] | undefined
  readonly hostHeader: 'client' | 'upstream'
  readonly originHeader: 'client' | 'upstream'
  readonly headers: Readonly<Record<string, HeaderSettings>>
  readonly accessTokens?: UpstreamAccessTokensSettings | undefined
  readonly serviceAccounts?: UpstreamServiceAccountsSettings | undefined
  readonly tokenExchange?: UpstreamTokenExchangeSettings | undefined
  readonly signedIdentity: false | UpstreamSignedIdentitySettings
  readonly rules: readonly RuleSettings[]
  readonly keys?: UpstreamKeysSettings | undefined
  readonly trustedOrigins: 'any' | readonly Formats['origin'][]
  readonly cors?: UpstreamCorsSettings | undefined
  readonly cache: 'private' | 'no_store' | 'upstream'
  readonly sessionCookies?: readonly Formats['name_pattern'][] | UpstreamSessionCookiesSettings | undefined
  readonly applicationSignIn?: ApplicationSignInSettings | undefined
  readonly logout: UpstreamLogoutSettings
  readonly upgrade: readonly string[]
  readonly connectTimeoutMs: number
  readonly responseTimeoutMs: number
  readonly idleTimeoutMs: number
  readonly keepAliveMs: number
  readonly maxConnections: number
  readonly maxStreams: number
  readonly maxStreamsPerClient: number
  readonly ca?: Formats['authorities'] | undefined
  readonly serverName?: Formats['host_name'] | undefined
  readonly clientCertificate?: Formats['key_pair'] | undefined
  readonly pinnedKeys?: readonly string[] | undefined
  readonly proxyProtocol: 'off' | 'v2'
  readonly tests: readonly TestSettings[]
}

export interface TargetSettings {
  readonly url?: Formats['target'] | undefined
  readonly weight: number
  readonly backup: boolean
}

export interface UpstreamTargetsSettings {
  readonly resolve?: UpstreamTargetsResolveSettings | undefined
}

export interface UpstreamTargetsResolveSettings {
  readonly a?: Formats['host_name'] | undefined
  readonly srv?: Formats['service_name'] | undefined
  readonly scheme: 'http' | 'https'
  readonly port?: number | undefined
  readonly everyMs: number
  readonly servers?: readonly Formats['name_server'][] | undefined
}

export interface UpstreamEjectSettings {
  readonly failures: number
  readonly statuses: readonly number[]
  readonly forMs: number
  readonly atMostMs: number
}

export interface UpstreamHealthCheckSettings {
  readonly path?: string | undefined
  readonly everyMs: number
  readonly timeoutMs: number
  readonly expect: readonly number[]
  readonly healthyAfter: number
  readonly unhealthyAfter: number
}

export interface UpstreamAuthorizeWithSettings {
  readonly url?: string | undefined
  readonly authorization?: Formats['authorization'] | undefined
  readonly claims: readonly Formats['policy_claim'][]
  readonly timeoutMs: number
  readonly ca?: Formats['authorities'] | undefined
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
  readonly remove: readonly string[]
}

export interface UpstreamResponseHeadersSettings {
  readonly hstsMs?: number | undefined
  readonly frameAncestors?: readonly Formats['frame_ancestor'][] | undefined
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
  readonly remove: readonly string[]
}

export interface HeaderSettings {
  readonly claim?: Formats['claim_path'] | undefined
  readonly template?: Formats['claim_template'] | undefined
  readonly firstOf?: readonly Formats['claim_path'][] | undefined
  readonly value?: Formats['header_value'] | undefined
  readonly env?: string | undefined
  readonly file?: string | undefined
  readonly request?: 'client_address' | 'scheme' | 'host' | 'port' | 'prefix' | undefined
  readonly basic?: HeaderBasicSettings | undefined
  readonly bearer?: 'access_token' | 'id_token' | 'exchanged_token' | undefined
  readonly after?: string | undefined
  readonly before?: string | undefined
  readonly case?: 'lower' | 'upper' | undefined
  readonly map?: Readonly<Record<string, Formats['header_value']>> | undefined
  readonly json?: boolean | undefined
  readonly join: string
  readonly encode: 'utf8' | 'latin1' | 'percent' | 'base64' | 'base64url' | 'rfc2047' | 'rfc8187' | 'quoted_printable'
  readonly maxBytes: number
  readonly tooLong: 'omit' | 'refuse' | 'trim'
  readonly required: boolean
}

export interface HeaderBasicSettings {
  readonly user?: Formats['claim_text'] | undefined
  readonly password?: Formats['secret'] | undefined
}

export interface UpstreamAccessTokensSettings {
  readonly audience?: readonly string[] | undefined
  readonly check: 'jwt' | 'introspection'
  readonly types: readonly ('at+jwt' | 'JWT' | 'none')[]
  readonly scopes: readonly string[]
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
  readonly scopes?: readonly string[] | undefined
  readonly requestedTokenType?: 'access_token' | 'jwt' | undefined
}

export interface UpstreamSignedIdentitySettings {
  readonly header: string
  readonly audience?: string | undefined
  readonly lifetimeMs: number
  readonly claims: readonly Formats['identity_claim'][]
  readonly algorithm: 'ES256' | 'EdDSA'
}

export interface RuleSettings {
  readonly name?: string | undefined
  readonly path?: Formats['path_pattern'] | undefined
  readonly methods?: readonly string[] | undefined
  readonly networks?: readonly Formats['network'][] | undefined
  readonly mcp?: RuleMcpSettings | undefined
  readonly access: 'public' | 'optional' | 'signed_in'
  readonly unauthenticated: 'auto' | 'redirect' | '401' | 401
  readonly require?: RequirementSettings | readonly RequirementSettings[] | undefined
  readonly authorizeWith: boolean
  readonly deviceBinding?: 'when_supported' | 'required' | undefined
  readonly stepUp?: RuleStepUpSettings | undefined
  readonly accessTokens: false | RuleAccessTokensSettings
  readonly serviceAccounts: boolean | readonly string[]
  readonly clientCertificates: boolean
  readonly keys: boolean
  readonly mode: 'enforce' | 'observe'
  readonly respond?: RuleRespondSettings | undefined
  readonly headers?: Readonly<Record<string, HeaderSettings>> | undefined
}

export interface RuleMcpSettings {
  readonly call?: readonly Formats['name_pattern'][] | undefined
  readonly method?: readonly Formats['name_pattern'][] | undefined
}

export interface RequirementSettings {
  readonly claim?: string | undefined
  readonly equals?: string | undefined
  readonly anyOf?: readonly string[] | undefined
  readonly allOf?: readonly string[] | undefined
  readonly noneOf?: readonly string[] | undefined
  readonly contains?: string | undefined
  readonly beginsWith?: string | undefined
  readonly endsWith?: string | undefined
  readonly matches?: Formats['linear_pattern'] | undefined
  readonly emailDomains?: readonly Formats['email_domain'][] | undefined
  readonly verified: boolean
  readonly networks?: readonly Formats['network'][] | undefined
  readonly time?: RequirementTimeSettings | undefined
  readonly methods?: readonly string[] | undefined
  readonly all?: readonly RequirementSettings[] | undefined
  readonly any?: readonly RequirementSettings[] | undefined
  readonly not?: RequirementSettings | undefined
}

export interface RequirementTimeSettings {
  readonly days: readonly ('mon' | 'tue' | 'wed' | 'thu' | 'fri' | 'sat' | 'sun')[]
  readonly from: string
  readonly to: string
  readonly zone?: string | undefined
}

export interface RuleStepUpSettings {
  readonly acr_values?: readonly string[] | undefined
  readonly maxAgeMs?: number | undefined
}

export interface RuleAccessTokensSettings {
  readonly scopes: readonly string[]
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
  readonly unless?: RequirementSettings | readonly RequirementSettings[] | undefined
  readonly retryAfterMs: number
}

export interface UpstreamKeysSettings {
  readonly forAtMostMs: number
  readonly idleMs: number
  readonly perPerson: number
  readonly require?: RequirementSettings | readonly RequirementSettings[] | undefined
  readonly acr_values?: readonly string[] | undefined
  readonly header?: string | undefined
}

export interface UpstreamCorsSettings {
  readonly origins?: readonly Formats['origin'][] | undefined
  readonly methods: readonly string[]
  readonly headers: readonly string[]
  readonly expose: readonly string[]
  readonly credentials: boolean
  readonly maxAgeMs: number
}

export interface UpstreamSessionCookiesSettings {
  readonly all?: true | undefined
}

export interface ApplicationSignInSettings {
  readonly preset?:
    | 'django'
    | 'dokuwiki'
    | 'mediawiki'
    | 'node-red'
    | 'phpmyadmin'
    | 'tomcat'
    | 'transmission'
    | 'wordpress'
    | undefined
  readonly page?: string | undefined
  readonly action?: string | undefined
  readonly fields?: Readonly<Record<string, string>> | undefined
  readonly json?: Readonly<Record<string, string>> | undefined
  readonly basic?: true | undefined
  readonly token?: string | undefined
  readonly username: ApplicationSignInUsernameSettings
  readonly password: ApplicationSignInPasswordSettings
  readonly rememberMs: number
  readonly timeoutMs: number
  readonly asks?: ApplicationResponseSettings | undefined
  readonly success?: ApplicationResponseSettings | undefined
  readonly refusal?: ApplicationResponseSettings | undefined
}

export interface ApplicationSignInUsernameSettings {
  readonly claim?: Formats['claim_path'] | undefined
  readonly template?: Formats['claim_template'] | undefined
  readonly value?: string | undefined
  readonly ask?: true | undefined
}

export interface ApplicationSignInPasswordSettings {
  readonly ask?: true | undefined
  readonly claim?: Formats['claim_path'] | undefined
  readonly env?: string | undefined
  readonly file?: string | undefined
}

export interface ApplicationResponseSettings {
  readonly status?: number | undefined
  readonly path?: string | undefined
  readonly contains?: string | undefined
  readonly cookie?: Formats['name_pattern'] | undefined
}

export interface UpstreamLogoutSettings {
  readonly paths: readonly LogoutLinkSettings[]
  readonly passFirst: boolean
  readonly cookies: readonly Formats['name_pattern'][]
  readonly call?: LogoutCallSettings | undefined
}

export interface LogoutLinkSettings {
  readonly path?: string | undefined
  readonly query?: Readonly<Record<string, string>> | undefined
  readonly methods?: readonly string[] | undefined
}

export interface LogoutCallSettings {
  readonly get?: string | undefined
  readonly post?: string | undefined
  readonly timeoutMs: number
}

export interface TestSettings {
  readonly as?: Readonly<Record<string, JsonValue>> | undefined
  readonly bearer: boolean
  readonly key: boolean
  readonly serviceAccount?: string | undefined
  readonly clientCertificate?: TestCertificateSettings | undefined
  readonly get?: string | undefined
  readonly post?: string | undefined
  readonly put?: string | undefined
  readonly patch?: string | undefined
  readonly delete?: string | undefined
  readonly head?: string | undefined
  readonly options?: string | undefined
  readonly mcp?: string | undefined
  readonly host?: Formats['host'] | undefined
  readonly from?: Formats['client_address'] | undefined
  readonly at?: Formats['point_in_time'] | undefined
  readonly expect?:
    'pass' | 'respond' | 'maintenance' | 'sign_in' | 'sign_out' | 'unauthorized' | 'forbidden' | 'no_route' | undefined
  readonly headers: Readonly<Record<string, string | null>>
}

export interface TestCertificateSettings {
  readonly subject?: string | undefined
  readonly cn: readonly string[]
  readonly o: readonly string[]
  readonly ou: readonly string[]
  readonly issuer?: string | undefined
  readonly dns: readonly string[]
  readonly uri: readonly string[]
  readonly email: readonly string[]
  readonly ip: readonly string[]
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
  readonly background: Formats['color']
  readonly surface: Formats['color']
  readonly text: Formats['color']
  readonly accent: Formats['color']
}

export interface PagesColoursDarkSettings {
  readonly background: Formats['color']
  readonly surface: Formats['color']
  readonly text: Formats['color']
  readonly accent: Formats['color']
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
  readonly headers: Readonly<Record<string, Formats['secret']>>
  readonly ca?: Formats['authorities'] | undefined
}
