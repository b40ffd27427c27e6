import type { ClaimPath, ClaimSelection, ClaimTemplate } from '../../core/claims.ts'
import type { NoProxy } from '../document/address-formats.ts'
import type { ProviderGlobalTokenRevocationSettings, ProviderSettings, ProviderSignalsSettings } from '../settings.ts'
import type { AsWritten } from './as-written.ts'

/** The JWS algorithms of ID Tokens and Logout Tokens. `none` and HMAC are never allowed. */
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
 * The JWE algorithms that wrap the key of what a provider sends. `RSA1_5` is broken (RFC 8725
 * §3.2), `dir` and symmetric wraps would need the client secret as a key.
 */
export type KeyManagementAlgorithm = NonNullable<ProviderSettings['id_token_encrypted_response_alg']>

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

/** The private key that decrypts what the provider sends. */
export interface DecryptionKey {
  /** A private JWK (RFC 7517), without members that restrict its use. */
  readonly jwk: Readonly<Record<string, string>>
  readonly kid: string | undefined
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

export interface ProviderConfig
  extends DerivedOfProvider, AsWritten<ProviderSettings, DerivedOfProvider, 'kind' | 'subject'> {}

interface DerivedOfProvider extends EndSessionConfig {
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
  /**
   * A provider without ID Tokens, and where its API has the identifier of the person. Absent: an
   * OpenID Provider.
   */
  readonly oauth2: { readonly subject: ClaimPath } | undefined
  /** Absent: the gateway reads the discovery document. */
  readonly metadata: ProviderMetadata | undefined
  readonly client_id: string
  /** Empty when `token_endpoint_auth_method` uses none. */
  readonly client_secret: string
  readonly clientKey: ClientKey | undefined
  /** The absolute path of the file with the JWT that authenticates the client. */
  readonly clientAssertion: string | undefined
  /** Absent: with encryption, keys in the store that replace themselves. */
  readonly decryptionKey: DecryptionKey | undefined
  /** RFC 8707 §2. Empty: the provider decides what the access tokens are for. */
  readonly resource: readonly string[]
  /** Absent: the provider is reached without a proxy. */
  readonly egressProxy: EgressProxyConfig | undefined
  /** Requests that end all sessions of a person. Absent: none are accepted. */
  readonly globalTokenRevocation?: GlobalTokenRevocationConfig | undefined
  /** Security events of the provider. Absent: none are accepted. */
  readonly signals?: SignalsConfig | undefined
  /** Short name → name of the claim. Empty below `providers`: see `renamedClaims`. */
  readonly claims: Readonly<Record<string, string>>
  /**
   * Name of a claim → the short name that it has in sessions. Only below `providers`, where a short
   * name means another claim of each provider.
   */
  readonly renamedClaims: Readonly<Record<string, string>>
  /** The claims that are taken from the ID Token instead of UserInfo. */
  readonly idTokenClaims: readonly string[]
  /** The issuers whose aggregated and distributed claims are accepted. */
  readonly claimSources: readonly ClaimsProviderConfig[]
  /** The claims that come from APIs of the provider. */
  readonly claimsFrom: readonly ApiClaimConfig[]
  /** The claims that headers and rules use and that UserInfo must contain. */
  readonly userinfoClaims: readonly string[]
}

/** An issuer of claims that the provider passes on (OpenID Connect Core §5.6.2). */
export interface ClaimsProviderConfig {
  readonly issuer: string
  readonly jwks_uri: string
  /** The origins where its distributed claims may be fetched. */
  readonly endpoints: readonly string[]
}

/** A claim that APIs of the provider have. Its sources are read together. */
export interface ApiClaimConfig {
  /** Another one with other settings, so that a session has no value of other settings. */
  readonly id: string
  readonly name: string
  /** Whether the values are added to those of UserInfo or the ID Token. */
  readonly isMerged: boolean
  /** Absent: it is read when UserInfo is. */
  readonly everyMs: number | undefined
  readonly sources: readonly ClaimSourceConfig[]
}

export interface ClaimSourceConfig {
  /** The address, in which claims of the person stand behind the host only. */
  readonly url: ClaimTemplate
  /** For people. */
  readonly urlText: string
  readonly origin: string
  readonly token: 'access_token' | 'client_credentials'
  readonly scopes: readonly string[]
  readonly select: ClaimSelection
  readonly selectText: string
  readonly absentIsEmpty: boolean
  readonly pages: ClaimPages | undefined
}

/** How a response names its next page. */
export type ClaimPages =
  /** RFC 8288, with `rel=next`. */
  | { readonly kind: 'link' }
  /** At the path is the address. */
  | { readonly kind: 'address'; readonly path: ClaimPath }
  /** At the path is the value of a parameter. */
  | { readonly kind: 'parameter'; readonly path: ClaimPath; readonly parameter: string }

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
export type SignalAction = ProviderSignalsSettings['events']['session-revoked']

/** The value of `Authorization`, or an access token for the client (RFC 6749 §4.4). */
export type TransmitterAuthorization =
  | { readonly kind: 'value'; readonly value: string }
  | { readonly kind: 'client_credentials'; readonly scopes: readonly string[] }

/** The security events of a provider (OpenID Shared Signals Framework 1.0). */
export interface SignalsConfig extends Omit<ProviderSignalsSettings, 'authorization' | 'events'> {
  /** The issuer of the events. */
  readonly transmitter: string
  /** The accepted values of `aud`. */
  readonly audience: readonly string[]
  /** How the gateway authenticates to the transmitter. Absent: it sends no requests there. */
  readonly authorization: TransmitterAuthorization | undefined
  /** By the last segment of the type of the event. */
  readonly events: Readonly<Record<string, SignalAction>>
}

/** Who may end all sessions of a person (draft-parecki-oauth-global-token-revocation-06). */
export interface GlobalTokenRevocationConfig extends ProviderGlobalTokenRevocationSettings {
  /** Who signs the JWT of a request. */
  readonly issuer: string
}

/** The signature algorithms of the FAPI 2.0 Security Profile §5.4.1. */
export const fapiAlgorithms: readonly SigningAlgorithm[] = ['PS256', 'ES256', 'EdDSA']
