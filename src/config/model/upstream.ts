import type { CertificateClaims, Claims, ClaimTemplate } from '../../core/claims.ts'
import type { NamePattern, PathPattern } from '../../core/patterns.ts'
import type { ScryptHash } from '../../core/scrypt-hash.ts'
import type { TargetAddress } from '../document/address-formats.ts'
import type { Place } from '../document/diagnostics.ts'
import type {
  ApplicationSignInSettings,
  TestSettings,
  UpstreamAccessTokensSettings,
  UpstreamAuthorizeWithSettings,
  UpstreamCorsSettings,
  UpstreamEjectSettings,
  UpstreamHealthCheckSettings,
  UpstreamKeysSettings,
  UpstreamSettings,
  UpstreamSignedIdentitySettings,
  UpstreamTargetsResolveSettings,
  UpstreamTokenExchangeSettings,
} from '../settings.ts'
import type { AsWritten } from './as-written.ts'
import type { HeaderConfig } from './header.ts'
import type { RequirementConfig } from './requirement.ts'
import type { RuleConfig } from './rule.ts'

/** A timeout of 0 is without limit. */
export interface UpstreamConfig
  extends
    DerivedOfUpstream,
    AsWritten<
      UpstreamSettings,
      DerivedOfUpstream,
      'preset' | 'deviceBinding' | 'requestHeaders' | 'ca' | 'serverName' | 'clientCertificate' | 'pinnedKeys'
    > {}

interface DerivedOfUpstream {
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
   * The address of its first target. Its path, if any, precedes the paths of requests. With
   * `forwardAuth` or `respondsOnly` a stand-in.
   */
  readonly url: URL
  /** Where the application listens. At least one. With `resolve`, one that has its name. */
  readonly targets: readonly TargetConfig[]
  /** The name whose addresses are the targets. Absent: the targets are listed. */
  readonly resolve: ResolveConfig | undefined
  /** Absent: the gateway sends no requests of its own to find out which targets work. */
  readonly healthCheck: HealthCheckConfig | undefined
  /** Absent: a target that fails still gets requests. */
  readonly eject: EjectConfig | undefined
  /** Another proxy carries the requests to the application, and asks the gateway about each one. */
  readonly forwardAuth: boolean
  /** It has no application: the gateway itself responds, and `url` is a stand-in. */
  readonly respondsOnly: boolean
  /** Whether a session without a key of the device has no access, unless a rule says otherwise. */
  readonly needsDeviceBinding: boolean
  /** Further origins that the upstream takes for its own, also those of its other targets. */
  readonly alsoKnownAs: readonly string[]
  /** The fields of clients that it never gets: names, and beginnings of names with `*`. */
  readonly removedFields: readonly string[]
  readonly responseHeaders: ResponseHeadersConfig
  /** Its own `external_url`, or that of the gateway. The first label may be `*`. */
  readonly externalUrl: URL
  readonly headers: readonly HeaderConfig[]
  /** Absent: the upstream gets no signed identity. */
  readonly signedIdentity: SignedIdentityConfig | undefined
  readonly rules: readonly RuleConfig[]
  /** The policy decision point that is asked about each request. Absent: the rules alone decide. */
  readonly authorizeWith?: AuthorizeWithConfig | undefined
  /** Absent: the upstream accepts no access tokens. */
  readonly accessTokens: AccessTokensConfig | undefined
  /** Absent: the upstream gets no exchanged token. */
  readonly tokenExchange: TokenExchangeConfig | undefined
  /** Absent: the upstream accepts no service accounts. */
  readonly serviceAccounts: ServiceAccountsConfig | undefined
  /** Absent: people make no keys for the upstream. */
  readonly keys: AccessKeysConfig | undefined
  /** Absent: the application decides which origins may read its responses. */
  readonly cors: CorsConfig | undefined
  /** The cookies of the application that the gateway keeps in the session. `all` is `*`. */
  readonly sessionCookies: readonly NamePattern[]
  /** Absent: the gateway does not sign people in at the application. */
  readonly applicationSignIn: ApplicationSignInConfig | undefined
  readonly logout: {
    readonly paths: readonly LogoutLink[]
    /** Whether the application receives a request for a logout link before the sign-out. */
    readonly passFirst: boolean
    readonly cookies: readonly ApplicationCookie[]
    /** The request that the gateway sends when a session ends. Absent: none. */
    readonly call: LogoutCall | undefined
  }
  /** The protocols of `Upgrade` that are passed on, in lower case. No version: any version. */
  readonly upgrade: readonly string[]
  /** How the certificate of an `https:` upstream is verified, and what the gateway presents. */
  readonly tls: UpstreamTlsConfig
  readonly tests: readonly EmbeddedTest[]
}

/** A policy decision point (OpenID AuthZEN, Authorization API 1.0). */
export interface AuthorizeWithConfig extends UpstreamAuthorizeWithSettings {
  /** The Access Evaluation endpoint. */
  readonly url: string
}

/** One address of an upstream. */
export interface TargetConfig extends TargetAddress {
  /** Its share of the requests, in proportion to the weights of the other targets. */
  readonly weight: number
  /** It gets requests only while no other target is available. */
  readonly backup: boolean
}

/** TLS of the connections to an `https:` upstream. */
export interface UpstreamTlsConfig {
  /** Certificate authorities (PEM). Absent: those of Node.js. */
  readonly ca: string | undefined
  /** The host name for SNI and the certificate. Absent: the host of each target. */
  readonly serverName: string | undefined
  /** Certificate and private key (PEM) of the gateway. Absent: it presents none. */
  readonly clientCertificate: { readonly cert: string; readonly key: string } | undefined
  /** SHA-256 digests of the allowed public keys, as base64. Empty: any key. */
  readonly pinnedKeys: readonly string[]
}

/** A name that DNS resolves to targets. */
export interface ResolveConfig extends Pick<UpstreamTargetsResolveSettings, 'scheme' | 'everyMs'> {
  /** `a`: a host with addresses; `srv`: a service with hosts, ports and weights (RFC 2782). */
  readonly kind: 'a' | 'srv'
  readonly name: string
  /** The port of each address of `a`. */
  readonly port: number
  /** The DNS servers: address, or address and port. Empty: those of the system. */
  readonly servers: readonly string[]
}

/** The requests that find out which targets work. */
export interface HealthCheckConfig extends UpstreamHealthCheckSettings {
  readonly path: string
}

/** When a target that keeps failing is ejected: it gets no requests for a time. */
export type EjectConfig = UpstreamEjectSettings

/** Which access tokens of its providers an upstream accepts. */
export interface AccessTokensConfig extends Omit<UpstreamAccessTokensSettings, 'audience' | 'types'> {
  /** One of these has to be in `aud` of the token. */
  readonly audience: readonly string[]
  /** The accepted values of `typ` of a JWT, in lower case; `none`: no `typ`. */
  readonly types: readonly string[]
}

/** Which token an upstream gets in exchange for the access token (RFC 8693 §2.1). */
export interface TokenExchangeConfig extends UpstreamTokenExchangeSettings {
  readonly scopes: readonly string[]
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

/** The keys that people make for their own programs. */
export interface AccessKeysConfig extends Omit<UpstreamKeysSettings, 'require'> {
  readonly require: readonly RequirementConfig[]
}

/** Which pages of other origins may read responses (CORS). */
export interface CorsConfig extends UpstreamCorsSettings {
  readonly origins: readonly string[]
}

/** How the header fields of responses of an application are changed. */
export interface ResponseHeadersConfig {
  readonly set: Readonly<Record<string, string>>
  readonly remove: readonly string[]
  /** Fields for responses that do not have them. */
  readonly defaults: readonly DefaultField[]
}

export interface DefaultField {
  readonly name: string
  readonly value: string
  /**
   * The response has the field already if a policy with this name has this directive. Absent: any
   * value counts.
   */
  readonly unless?: 'frame-ancestors'
}

/** A logout link of an application: a path with query parameters and methods. */
export interface LogoutLink {
  readonly path: PathPattern
  /** Decoded names and values. Empty: any query matches. */
  readonly query: readonly (readonly [name: string, value: string])[]
  /** Absent: any method except OPTIONS. */
  readonly methods: readonly string[] | undefined
}

/** How the gateway signs a person in at an application. */
export interface ApplicationSignInConfig extends Pick<
  ApplicationSignInSettings,
  'token' | 'rememberMs' | 'timeoutMs' | 'asks' | 'success' | 'refusal'
> {
  readonly kind: 'form' | 'json' | 'basic'
  /**
   * Path and query of the page with the form, as clients use them. Absent: the application has no
   * such page.
   */
  readonly page: string | undefined
  /** Where the form or the JSON is sent to. */
  readonly action: string
  /** The fields or members that the gateway fills in. `username` and `password` are no claims. */
  readonly values: readonly (readonly [name: string, value: ClaimTemplate])[]
  readonly username: ClaimTemplate | 'ask'
  readonly password: ClaimTemplate | 'ask'
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
export interface SignedIdentityConfig extends UpstreamSignedIdentitySettings {
  /** The `aud` of the JWT. */
  readonly audience: string
}

/** The JWS algorithms of signed identities. */
export type IdentityAlgorithm = UpstreamSignedIdentitySettings['algorithm']

export type ExpectedOutcome = NonNullable<TestSettings['expect']>

type MethodOfTest = 'get' | 'post' | 'put' | 'patch' | 'delete' | 'head' | 'options'

/** A test in the configuration: a person, a request, and the decision that is expected. */
export interface EmbeddedTest extends Omit<TestSettings, 'clientCertificate' | MethodOfTest> {
  /** Its place in the configuration. */
  readonly place: Place
  /** Its path in the file: `upstreams.orders.tests[0]`. */
  readonly setting: string
  /** The certificate of the program that sends the request. Absent: it has none. */
  readonly clientCertificate: CertificateClaims | undefined
  readonly method: string
  readonly path: string
  readonly expect: ExpectedOutcome
}
