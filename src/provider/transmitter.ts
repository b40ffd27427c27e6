import * as client from 'openid-client'
import type { SignalsConfig, TransmitterAuthorization } from '../config/model/provider.ts'
import { type Clock, isWithin } from '../core/clock.ts'
import { GatewayError, printable } from '../core/errors.ts'
import { SingleFlight } from '../core/single-flight.ts'
import { KeySet } from './key-set.ts'
import type { RequestParts } from './outbound.ts'
import { throwProviderError } from './provider-errors.ts'

/** How long the metadata are used, in ms. */
const renewAfterMs = 60 * 60 * 1000

/** Transmitter Configuration Metadata (Shared Signals Framework 1.0 §7.1). */
export interface TransmitterMetadata {
  readonly jwks_uri: string
  /** Where streams are managed. Absent: not at all. */
  readonly configuration_endpoint: string | undefined
  readonly status_endpoint: string | undefined
  readonly verification_endpoint: string | undefined
  /** Absent: the transmitter does not say it. */
  readonly delivery_methods_supported: readonly string[] | undefined
  /** Whether a new stream has events about everybody, or about people that are added to it. */
  readonly default_subjects: string | undefined
}

const endpointNames = ['configuration_endpoint', 'status_endpoint', 'verification_endpoint'] as const

/** The transmitter of security events, and its keys (Shared Signals Framework 1.0 §7.1). */
export class Transmitter {
  readonly keys: KeySet
  /** Where events are polled, for metrics. */
  pollUrl: string | undefined
  readonly #config: Pick<SignalsConfig, 'transmitter'>
  readonly #parts: RequestParts
  readonly #fetching = new SingleFlight<'metadata', TransmitterMetadata>()
  #known: { readonly metadata: TransmitterMetadata; readonly at: number } | undefined

  constructor(config: Pick<SignalsConfig, 'transmitter'>, parts: RequestParts) {
    this.#config = config
    this.#parts = parts
    this.keys = new KeySet({ ...parts, jwksUri: async () => (await this.metadata()).jwks_uri })
  }

  /** @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE` without usable metadata */
  async metadata(): Promise<TransmitterMetadata> {
    const known = this.#known
    if (known !== undefined && isWithin(renewAfterMs, known.at, this.#parts.clock.now())) return known.metadata
    return this.#fetching.run('metadata', async () => {
      const metadata = await this.#fetch()
      this.#known = { metadata, at: this.#parts.clock.now() }
      return metadata
    })
  }

  /** The name of an endpoint for metrics; `undefined` for a URL of another server. */
  endpointOf(url: string): string | undefined {
    if (url === this.pollUrl) return 'security_event_poll'
    const { metadata } = this.#known ?? {}
    const plain = url.replace(/[?#].*$/s, '')
    if (metadata === undefined) return undefined
    return endpointNames.some((name) => metadata[name]?.replace(/[?#].*$/s, '') === plain)
      ? 'security_event_stream'
      : undefined
  }

  /** Whether the gateway may send a request to this URL, by the rule for the metadata. */
  isAllowed(url: string): boolean {
    return isAllowed(url, this.#config.transmitter)
  }

  async #fetch(): Promise<TransmitterMetadata> {
    const url = transmitterMetadataUrl(this.#config.transmitter)
    const response = await this.#parts.outbound.fetch(url, { headers: { accept: 'application/json' } })
    const fail = (why: string): never => {
      throw new GatewayError('ERR_PROVIDER_UNAVAILABLE', `${url}: ${why}; check signals.transmitter`)
    }
    if (response.status !== 200) fail(`status ${response.status}`)
    const metadata = (await response.json().catch(() => undefined)) as Readonly<Record<string, unknown>> | undefined
    const { issuer, jwks_uri, delivery_methods_supported: methods, default_subjects } = metadata ?? {}
    // §7.1.3: the issuer must be identical.
    if (issuer !== this.#config.transmitter) fail(`its issuer is ${String(issuer).slice(0, 200)}`)
    if (typeof jwks_uri !== 'string' || !this.isAllowed(jwks_uri)) fail('its jwks_uri is not an https URL')
    // Without these endpoints, a stream that exists still works.
    const endpoint = (name: (typeof endpointNames)[number]): string | undefined => {
      const value = metadata?.[name]
      return typeof value === 'string' && this.isAllowed(value) ? value : undefined
    }
    return {
      jwks_uri: jwks_uri as string,
      configuration_endpoint: endpoint('configuration_endpoint'),
      status_endpoint: endpoint('status_endpoint'),
      verification_endpoint: endpoint('verification_endpoint'),
      delivery_methods_supported: Array.isArray(methods) ? methods.map(String) : undefined,
      default_subjects: typeof default_subjects === 'string' ? default_subjects : undefined,
    }
  }
}

/** `https://a.example/tenant` → `https://a.example/.well-known/ssf-configuration/tenant`. */
function transmitterMetadataUrl(transmitter: string): string {
  const { origin, pathname } = new URL(transmitter)
  return `${origin}/.well-known/ssf-configuration${pathname === '/' ? '' : pathname}`
}

/** The configuration allows http only for a transmitter on this machine. */
function isAllowed(uri: string, transmitter: string): boolean {
  if (!URL.canParse(uri)) return false
  const { protocol } = new URL(uri)
  return protocol === 'https:' || (protocol === 'http:' && transmitter.startsWith('http:'))
}

export type ClientToken = Pick<client.TokenEndpointResponse, 'access_token' | 'expires_in'>

/**
 * Requests an access token for the client itself (RFC 6749 §4.4).
 * @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE`, or `ERR_SIGN_IN_RESPONSE` for a refusal
 */
export async function requestClientToken(
  configuration: client.Configuration,
  scopes: readonly string[],
): Promise<ClientToken> {
  const parameters = scopes.length === 0 ? {} : { scope: scopes.join(' ') }
  const what = 'no access token for the transmitter (signals.authorization.client_credentials)'
  const response = await client
    .clientCredentialsGrant(configuration, parameters)
    .catch((cause: unknown) => throwProviderError(what, cause))
  const { token_type } = response
  if (token_type.toLowerCase() !== 'bearer')
    throw new GatewayError('ERR_SIGN_IN_RESPONSE', `${what}: its type is ${printable(token_type)}, and not Bearer`)
  return response
}

/** A token is renewed this long before it expires, or after half of a shorter lifetime, in ms. */
const renewBeforeMs = 60_000
/** The assumed lifetime of a token without `expires_in`, in ms (RFC 6749 §5.1). */
const usualLifetimeMs = 5 * 60_000

export interface TransmitterCredentialsParts {
  /** Requests an access token for the client itself (RFC 6749 §4.4). */
  readonly clientToken: (scopes: readonly string[]) => Promise<ClientToken>
  readonly clock: Clock
}

/**
 * The value of `Authorization` for the transmitter. A token is kept until shortly before it
 * expires.
 */
export class TransmitterCredentials {
  readonly #authorization: TransmitterAuthorization
  readonly #parts: TransmitterCredentialsParts
  readonly #requesting = new SingleFlight<'token', string>()
  #token: { readonly value: string; readonly until: number } | undefined

  constructor(authorization: TransmitterAuthorization, parts: TransmitterCredentialsParts) {
    this.#authorization = authorization
    this.#parts = parts
  }

  /** @throws {GatewayError} like the token request of a sign-in */
  async value(): Promise<string> {
    const authorization = this.#authorization
    if (authorization.kind === 'value') return authorization.value
    const token = this.#token
    if (token !== undefined && this.#parts.clock.now() < token.until) return token.value
    return this.#requesting.run('token', async () => {
      const began = this.#parts.clock.now()
      const { access_token, expires_in } = await this.#parts.clientToken(authorization.scopes)
      const lifetimeMs = expires_in === undefined ? usualLifetimeMs : expires_in * 1000
      const value = `Bearer ${access_token}`
      this.#token = { value, until: began + Math.max(lifetimeMs / 2, lifetimeMs - renewBeforeMs) }
      return value
    })
  }

  /** The transmitter has rejected this value. Returns whether there may be another one. */
  reject(value: string): boolean {
    if (this.#token?.value === value) this.#token = undefined
    return this.#authorization.kind === 'client_credentials'
  }
}
