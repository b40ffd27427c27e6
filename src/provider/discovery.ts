import { setTimeout as wait } from 'node:timers/promises'
import { proxyFor } from '../config/hosts.ts'
import type { ProviderConfig } from '../config/model/provider.ts'
import { portOf } from '../core/addresses.ts'
import { isWithin } from '../core/clock.ts'
import { asHint, connectionAdvice } from '../core/connection-advice.ts'
import { GatewayError, reason } from '../core/errors.ts'
import { BackOff, Repeating } from '../core/repeating.ts'
import { SingleFlight } from '../core/single-flight.ts'
import { schemeMismatch } from '../wire/scheme-mismatch.ts'
import { discover, type DiscoveredProvider, type DiscoveryProblem, issuerHint, problemOf } from './metadata.ts'
import type { RequestParts } from './outbound.ts'
import { gatewayErrorIn, providerUnavailable } from './provider-errors.ts'

/** How often the metadata is renewed, in ms. */
const renewAfterMs = 60 * 60 * 1000
/** The first and the longest pause after an error, in ms. */
const retryFirstMs = 1000
const retryMostMs = 30_000
/** A provider with an error within this time, in ms, may be starting: a request waits, once. */
const quickMs = 150

/**
 * The metadata of the provider. They are fetched from the start until that succeeds, and renewed
 * once an hour. While the provider is unavailable, the last ones stay in use.
 */
export class Discovery {
  readonly #config: ProviderConfig
  readonly #parts: RequestParts
  readonly #fetching = new SingleFlight<'metadata', DiscoveredProvider>()
  #known: DiscoveredProvider | undefined
  #readAt: number | undefined
  #failedAt = -Infinity
  #pauseMs = retryFirstMs
  #failure: GatewayError | undefined
  readonly #renewing = new Repeating('discovery', () => this.#renew())
  readonly #backOff = new BackOff(retryFirstMs, retryMostMs)

  constructor(config: ProviderConfig, parts: RequestParts) {
    this.#config = config
    this.#parts = parts
  }

  /** Fetches the metadata in the background until that succeeds, then once an hour. */
  start(): void {
    this.#renewing.wake()
  }

  /** The last metadata; `undefined` until the provider was found. */
  get known(): DiscoveredProvider | undefined {
    return this.#known
  }

  /** When the metadata was read last, in ms since the epoch, and the error since then. */
  get state(): { readonly readAt: number | undefined; readonly failure: string | undefined } {
    return { readAt: this.#readAt, failure: this.#failure?.message }
  }

  /** @throws {GatewayError} `ERR_PROVIDER_UNAVAILABLE` while the provider has not been found */
  async provider(): Promise<DiscoveredProvider> {
    if (this.#known !== undefined) return this.#known
    // During the pause after an error, requests do not reach the provider. After a quick error the
    // request waits and tries again, because the provider may be starting.
    if (this.#failure !== undefined && isWithin(this.#pauseMs, this.#failedAt, this.#parts.clock.now())) {
      if (this.#pauseMs === retryFirstMs) throw this.#failure
      await wait(this.#pauseMs)
    }
    return this.#known ?? this.#fetch()
  }

  close(): void {
    void this.#renewing.stop()
  }

  async #renew(): Promise<number> {
    try {
      await this.#fetch()
      this.#backOff.reset()
      return renewAfterMs
    } catch {
      return this.#backOff.next()
    }
  }

  #fetch(): Promise<DiscoveredProvider> {
    return this.#fetching.run('metadata', async () => {
      const began = this.#parts.clock.now()
      try {
        const found = await discover(this.#config, this.#parts.outbound, this.#parts.clock)
        if (this.#known === undefined || this.#failure !== undefined)
          this.#parts.log.info('provider.found', { issuer: this.#config.issuer })
        this.#known = found
        this.#readAt = this.#parts.clock.now()
        this.#failure = undefined
        return found
      } catch (cause) {
        this.#failedAt = this.#parts.clock.now()
        this.#pauseMs = this.#failedAt - began < quickMs ? quickMs : retryFirstMs
        const before = this.#failure?.message
        this.#failure = unavailable(this.#config.issuer, cause)
        if (this.#failure.message !== before) {
          const wrongScheme = await issuerSchemeMismatch(this.#config, this.#failure.message)
          const problem = problemOf(cause)
          const advice = wrongScheme ?? (problem === 'no_document' ? issuerHint : adviceOn(this.#failure, problem))
          this.#parts.log.warn('provider.unavailable', {
            issuer: this.#config.issuer,
            reason: this.#failure.message,
            hint: `${asHint(advice)} The gateway retries. A sign-in gets 503 until the provider responds.`,
          })
        }
        throw this.#failure
      }
    })
  }
}

/** What to do about a provider that did not respond, or whose metadata cannot be used. */
function adviceOn({ message }: GatewayError, problem: DiscoveryProblem | undefined): string {
  if (problem !== undefined) return 'check provider.issuer'
  return connectionAdvice({ why: message }, 'provider.issuer', 'provider.ca_file')
}

/** What to do when the port of the issuer speaks TLS although its scheme is http, or reverse. */
export async function issuerSchemeMismatch(
  { issuer, egressProxy }: Pick<ProviderConfig, 'issuer' | 'egressProxy'>,
  why: string,
): Promise<string | undefined> {
  const url = new URL(issuer)
  // Only the proxy may be able to connect to the port.
  if (proxyFor(url, egressProxy) !== undefined) return undefined
  const server = { host: url.hostname, port: portOf(url), isTls: url.protocol === 'https:', tlsScheme: 'https://' }
  const found = await schemeMismatch(why, server)
  return found === undefined ? undefined : `${found} in provider.issuer`
}

function unavailable(issuer: string, cause: unknown): GatewayError {
  // The errors of `Outbound` say more than those of openid-client, which wrap them.
  const ours = gatewayErrorIn(cause)
  const why = ours === undefined ? reason(cause) : ours.message
  return providerUnavailable(`the provider ${issuer} could not be discovered: ${why}`, cause)
}
