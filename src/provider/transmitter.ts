import type { SignalsConfig } from '../config/model/provider.ts'
import { isWithin } from '../core/clock.ts'
import { SingleFlight } from '../core/single-flight.ts'
import { KeySet } from './key-set.ts'
import type { RequestParts } from './outbound.ts'
import { providerUnavailable } from './provider-errors.ts'

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
      throw providerUnavailable(`${url}: ${why}; check signals.transmitter`)
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
