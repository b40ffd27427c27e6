import { dirname, join } from 'node:path'
import { decryptionAlgorithms, encryptedKinds, encryptionOf } from './encryption.ts'
import { endpoints } from './endpoints.ts'
import type { GatewayConfig } from './model/gateway.ts'
import type { ProviderConfig } from './model/provider.ts'

/**
 * What has to be registered at the provider, in the names of client metadata (OpenID Connect
 * Dynamic Client Registration 1.0 §2).
 */
export interface Registration {
  readonly issuer: string
  readonly client_id: string
  readonly redirect_uris: readonly string[]
  /** This one and the next two are absent with `kind: oauth2`, whose provider does not use them. */
  readonly post_logout_redirect_uris?: readonly string[]
  readonly backchannel_logout_uri?: string
  readonly initiate_login_uri?: string
  /** The endpoint of a stream with push delivery (RFC 8935) that somebody makes at the provider. */
  readonly security_events_uri?: string
  /** With `provider.global_token_revocation`. */
  readonly global_token_revocation_uri?: string
  /** With `provider.frontchannel_logout`. */
  readonly frontchannel_logout_uri?: string
  readonly frontchannel_logout_session_required?: true
  /** With encryption: the public keys of this client. */
  readonly jwks_uri?: string
  /** With encryption: `id_token_encrypted_response_alg`, and others of this form. */
  readonly [encryption: `${string}_encrypted_response_${'alg' | 'enc'}`]: string
}

/**
 * The origins at which browsers reach the gateway: that of `external_url` first, then those of
 * upstreams.
 */
export function originsOf({ externalUrl, upstreams }: Pick<GatewayConfig, 'externalUrl' | 'upstreams'>): string[] {
  return [...new Set([externalUrl, ...upstreams.map((upstream) => upstream.externalUrl)].map(({ origin }) => origin))]
}

/**
 * Browsers return from a provider to the hosts of the upstreams where people sign in there. With
 * one session for a domain, they return to `external_url` of the gateway only.
 */
export function registrationOf(
  provider: ProviderConfig,
  { externalUrl, upstreams, session }: Pick<GatewayConfig, 'externalUrl' | 'upstreams' | 'session'>,
): Registration {
  const own = upstreams.filter(({ providers }) => providers.includes(provider.name))
  const origins =
    session.cookie.domain === undefined ? originsOf({ externalUrl, upstreams: own }) : [externalUrl.origin]
  const at = (name: string) => origins.map((origin) => `${origin}${provider.prefix}${name}`)
  const first = (name: string) => `${externalUrl.origin}${provider.prefix}${name}`
  return {
    issuer: provider.issuer,
    client_id: provider.client_id,
    redirect_uris: at(endpoints.callback.name),
    ...(provider.oauth2 === undefined && {
      post_logout_redirect_uris: at(endpoints.signedOut.name),
      backchannel_logout_uri: first(endpoints.backchannelLogout.name),
      initiate_login_uri: first(endpoints.initiateLogin.name),
    }),
    ...(needsStream(provider) && { security_events_uri: securityEventsUri(provider, { externalUrl }) }),
    ...(provider.globalTokenRevocation !== undefined && {
      global_token_revocation_uri: first(endpoints.globalTokenRevocation.name),
    }),
    ...(provider.frontchannelLogout
      ? {
          frontchannel_logout_uri: first(endpoints.frontchannelLogout.name),
          frontchannel_logout_session_required: true,
        }
      : {}),
    ...(decryptionAlgorithms(provider).size > 0 && {
      jwks_uri: first(endpoints.clientJwks.name),
      ...encryptionMetadata(provider),
    }),
  }
}

function encryptionMetadata(provider: ProviderConfig): Readonly<Record<string, string>> {
  const members = encryptedKinds.flatMap((kind) => {
    const { alg, enc } = encryptionOf(provider, kind)
    return alg === undefined
      ? []
      : Object.entries({ alg, enc }).map(([name, value]) => [`${kind}_encrypted_response_${name}`, value])
  })
  return Object.fromEntries(members) as Readonly<Record<string, string>>
}

/** Where security events of a provider are pushed to. */
export function securityEventsUri(
  { prefix }: ProviderConfig,
  { externalUrl }: Pick<GatewayConfig, 'externalUrl'>,
): string {
  return `${externalUrl.origin}${prefix}${endpoints.securityEvents.name}`
}

function needsStream({ signals }: ProviderConfig): boolean {
  return signals?.delivery === 'push' && signals.stream === 'existing'
}

/** What applications need to verify their signed identities. */
export interface SignedIdentityFacts {
  readonly issuer: string
  readonly jwks_uri: string
  /** The audience of each upstream with a signed identity. */
  readonly audiences: Readonly<Record<string, string>>
}

/** `undefined` when no upstream gets a signed identity. */
export function signedIdentityFacts({
  externalUrl,
  reservedPrefix,
  upstreams,
}: Pick<GatewayConfig, 'externalUrl' | 'reservedPrefix' | 'upstreams'>): SignedIdentityFacts | undefined {
  const audiences = upstreams.flatMap(({ name, signedIdentity }) =>
    signedIdentity === undefined ? [] : [[name, signedIdentity.audience] as const],
  )
  if (audiences.length === 0) return undefined
  return {
    issuer: externalUrl.origin,
    jwks_uri: `${externalUrl.origin}${reservedPrefix}${endpoints.jwks.name}`,
    audiences: Object.fromEntries(audiences),
  }
}

/** What applications need, as text to copy; empty when no upstream gets a signed identity. */
export function signedIdentityText(config: GatewayConfig): string {
  const facts = signedIdentityFacts(config)
  if (facts === undefined) return ''
  const lines = [
    `  keys (JWKS)                ${facts.jwks_uri}`,
    `  issuer                     ${facts.issuer}`,
    ...Object.entries(facts.audiences).map(
      ([upstream, audience]) => `  audience of ${upstream.padEnd(14)} ${audience}`,
    ),
  ]
  return `\nApplications verify their signed identity with:\n${lines.join('\n')}\n`
}

/** The registration of the only provider, or those of several by their names. */
export function registrationsOf(config: GatewayConfig): Registration | Readonly<Record<string, Registration>> {
  const [first] = config.providers
  if (first.setting === 'provider') return registrationOf(first, config)
  return Object.fromEntries(config.providers.map((provider) => [provider.name, registrationOf(provider, config)]))
}

/** The registrations as text to copy. */
export function registrationsText(config: GatewayConfig): string {
  return config.providers.map((provider) => registrationText(provider, config)).join('\n')
}

function registrationText(provider: ProviderConfig, config: GatewayConfig): string {
  const registration = registrationOf(provider, config)
  const { issuer, client_id, redirect_uris, post_logout_redirect_uris = [] } = registration
  const rows: readonly (readonly [string, string | undefined])[] = [
    ...redirect_uris.map((uri) => ['redirect URI', uri] as const),
    ...post_logout_redirect_uris.map((uri) => ['post-logout redirect URI', uri] as const),
    ['back-channel logout URI', registration.backchannel_logout_uri],
    ['security events URI', registration.security_events_uri],
    ['token revocation URI', registration.global_token_revocation_uri],
    ['front-channel logout URI', registration.frontchannel_logout_uri],
    ['login initiation URI', registration.initiate_login_uri],
    ['JWKS URI', registration.jwks_uri],
  ]
  const lines = [
    ...rows.flatMap(([what, uri]) => (uri === undefined ? [] : [`  ${what.padEnd(26)} ${uri}`])),
    ...Object.entries(encryptionMetadata(provider)).map(([name, value]) => `  ${name.padEnd(36)} ${value}`),
  ]
  return `Register at ${issuer} for the client ${client_id}:\n${lines.join('\n')}\n`
}

/** The file beside the configuration that says where its clients are registered. */
export function registrationFile(file: string): string {
  return join(dirname(file), 'gatehouse-registration.json')
}
