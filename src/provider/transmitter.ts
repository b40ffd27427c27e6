import type { SignalsConfig } from '../config/model.ts'
import { type Clock, isWithin } from '../core/clock.ts'
import { GatewayError } from '../core/errors.ts'
import { SingleFlight } from '../core/single-flight.ts'
import type { Log } from '../observe/log.ts'
import { KeySet } from './key-set.ts'
import type { Outbound } from './outbound.ts'

/** How long the metadata are used, in ms. */
const renewAfterMs = 60 * 60 * 1000

export interface TransmitterParts {
  readonly outbound: Pick<Outbound, 'fetch'>
  readonly clock: Clock
  readonly log: Log
}

/** The transmitter of security events, and its keys (Shared Signals Framework 1.0 §7.1). */
export class Transmitter {
  readonly keys: KeySet
  readonly #config: Pick<SignalsConfig, 'transmitter'>
  readonly #parts: TransmitterParts
  readonly #fetching = new SingleFlight<'metadata', string>()
  #known: { readonly jwks_uri: string; readonly at: number } | undefined

  constructor(config: Pick<SignalsConfig, 'transmitter'>, parts: TransmitterParts) {
    this.#config = config
    this.#parts = parts
    this.keys = new KeySet({ ...parts, jwksUri: () => this.#jwksUri() })
  }

  async #jwksUri(): Promise<string> {
    const known = this.#known
    if (known !== undefined && isWithin(renewAfterMs, known.at, this.#parts.clock.now())) return known.jwks_uri
    return this.#fetching.run('metadata', async () => {
      const jwks_uri = await this.#fetch()
      this.#known = { jwks_uri, at: this.#parts.clock.now() }
      return jwks_uri
    })
  }

  async #fetch(): Promise<string> {
    const url = metadataUrl(this.#config.transmitter)
    const response = await this.#parts.outbound.fetch(url, { headers: { accept: 'application/json' } })
    const fail = (why: string): never => {
      throw new GatewayError('ERR_PROVIDER_UNAVAILABLE', `${url}: ${why}; check signals.transmitter`)
    }
    if (response.status !== 200) fail(`status ${response.status}`)
    const metadata = (await response.json().catch(() => undefined)) as Readonly<Record<string, unknown>> | undefined
    const { issuer, jwks_uri } = metadata ?? {}
    // §7.1.3: the issuer must be identical.
    if (issuer !== this.#config.transmitter) fail(`its issuer is ${String(issuer).slice(0, 200)}`)
    if (typeof jwks_uri !== 'string' || !isAllowed(jwks_uri, this.#config.transmitter))
      fail('its jwks_uri is not an https URL')
    return jwks_uri as string
  }
}

/**
 * `https://id.example.com/tenant` → `https://id.example.com/.well-known/ssf-configuration/tenant`.
 */
function metadataUrl(transmitter: string): string {
  const { origin, pathname } = new URL(transmitter)
  return `${origin}/.well-known/ssf-configuration${pathname === '/' ? '' : pathname}`
}

/** The configuration allows http only for a transmitter on this machine. */
function isAllowed(uri: string, transmitter: string): boolean {
  if (!URL.canParse(uri)) return false
  const { protocol } = new URL(uri)
  return protocol === 'https:' || (protocol === 'http:' && transmitter.startsWith('http:'))
}
