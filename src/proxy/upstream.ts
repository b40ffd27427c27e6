import { isWildcard, upstreamAt } from '../config/hosts.ts'
import type { UpstreamConfig } from '../config/model/upstream.ts'
import { addressSetting } from '../config/target-addresses.ts'
import { BoundedMap } from '../core/bounded-map.ts'
import type { NamePattern } from '../core/patterns.ts'
import { randomToken } from '../core/random.ts'
import type { AddressText } from '../http/address-text.ts'
import { isWithheld, mayBeNamed } from '../http/cookies.ts'
import { type ReservedNames, reservedNames } from '../identity/reserved-names.ts'
import type { Log } from '../observe/log.ts'
import type { Transport } from '../transport/transport.ts'
import { httpSchemeMismatch } from '../wire/scheme-mismatch.ts'
import { Addresses } from './addresses.ts'
import { responseChanges, type ResponseChanges } from './client-response.ts'
import { ConnectionSlots } from './connection-slots.ts'
import { RequestFields } from './passed-fields.ts'
import type { SessionNotice } from './session-notice.ts'
import { Targets, type TargetsParts, type TargetView } from './targets/targets.ts'

/** The protocol of the target is examined at most once in this time, in ms. */
const examineEveryMs = 60_000
/** How many requests may wait for a connection. Further requests are rejected. */
const maxWaiting = 4096
const reportWaitEveryMs = 10_000

/** How many exchanges with an upstream are open in this process. */
export interface UpstreamLoad {
  /** Requests that wait for a connection. */
  readonly waiting: number
  /** Requests that use a connection. */
  readonly requests: number
  /** Event streams, tunnels, and exchanges that have taken longer than some seconds. */
  readonly streams: number
}

export interface UpstreamsOptions extends TargetsParts {
  /** The gateway takes part in traces. */
  readonly isTracing: boolean
  readonly reservedPrefix: string
}

/** For how many hosts of a wildcard the addresses are remembered. */
const maxHosts = 256

/** The addresses of an upstream, and of one of its hosts. */
export interface UpstreamAddresses {
  readonly fields: Addresses
  /** Those that are replaced in content. Absent: content stays as it is. */
  readonly content: AddressText | undefined
}

function addressesOf(config: UpstreamConfig, reservedPrefix: string): UpstreamAddresses {
  const fields = new Addresses(config, reservedPrefix)
  return { fields, content: config.rewriteContent ? fields.inContent() : undefined }
}

/** An upstream at run time: its connections, and what all its requests share. */
export class Upstream {
  readonly targets: Targets
  /** Carries requests to one of the targets. The only target gets them without a detour. */
  readonly transport: Transport
  readonly slots: ConnectionSlots
  readonly reserved: ReservedNames
  readonly fields: RequestFields
  /** Marks requests that this process has sent to this upstream. */
  readonly loopMarker = randomToken(9)
  readonly #addresses: UpstreamAddresses
  /** A client may request any number of hosts. */
  readonly #addressesOfHosts = new BoundedMap<string, UpstreamAddresses>('upstream_addresses', maxHosts)
  readonly #config: UpstreamConfig
  readonly #reservedPrefix: string
  readonly #hasWildcard: boolean
  readonly responseChanges: ResponseChanges | undefined
  /** Absent: the gateway adds no line to the pages. */
  readonly notice: SessionNotice | undefined
  /** Whether the gateway keeps cookies of this upstream. */
  readonly keepsCookies: boolean
  readonly #keptCookies: readonly NamePattern[]
  /** It has sent a response with a status other than 400, so the scheme of its URL is right. */
  hasResponded = false
  #examinedAt = -Infinity
  #waitReportedAt = -Infinity
  readonly #reported = new Set<string>()

  constructor(config: UpstreamConfig, all: readonly UpstreamConfig[], options: UpstreamsOptions) {
    const { isTracing, reservedPrefix } = options
    this.targets = new Targets(config, options)
    this.transport = this.targets.only?.transport ?? this.targets
    this.slots = new ConnectionSlots(config, maxWaiting)
    this.reserved = reservedNames(config, all)
    this.fields = new RequestFields(this.reserved, isTracing, config.protocol !== 'http1')
    this.#keptCookies = config.sessionCookies
    this.keepsCookies = config.sessionCookies.length > 0
    this.#config = config
    this.#hasWildcard = isWildcard(config.externalUrl.hostname)
    this.#reservedPrefix = reservedPrefix
    this.#addresses = addressesOf(config, reservedPrefix)
    this.responseChanges = responseChanges(config.responseHeaders)
    this.notice = config.sessionNotice
      ? {
          line: `<script src="${reservedPrefix}session.js" defer></script>`,
          changes: this.responseChanges,
          isSecure: config.externalUrl.protocol === 'https:',
        }
      : undefined
  }

  /** The addresses for a request of a host (in lower case, without port). */
  addressesAt(host: string): UpstreamAddresses {
    if (!this.#hasWildcard) return this.#addresses
    const known = this.#addressesOfHosts.get(host)
    if (known !== undefined) return known
    const addresses = addressesOf(upstreamAt(this.#config, host), this.#reservedPrefix)
    this.#addressesOfHosts.set(host, addresses)
    return addresses
  }

  /** The path and query at the upstream, which are the same for all hosts. */
  path(path: string, query: string): string {
    return this.#addresses.fields.path(path, query)
  }

  get load(): UpstreamLoad {
    const { waiting, requests, streams } = this.slots
    return { waiting, requests, streams }
  }

  isKeptCookie(name: string): boolean {
    return mayBeNamed(this.#keptCookies, name)
  }

  /** Whether the upstream does not get a cookie of this name from a browser. */
  isWithheldCookie(name: string): boolean {
    return isWithheld(this.#keptCookies, name)
  }

  /** Whether a long wait for a connection is to be logged: at most once in ten seconds. */
  reportsWait(): boolean {
    const now = performance.now()
    if (now - this.#waitReportedAt < reportWaitEveryMs) return false
    this.#waitReportedAt = now
    return true
  }

  /** Whether a line of the log about all its requests is due: once for each reason. */
  isFirst(reason: string): boolean {
    const isFirst = !this.#reported.has(reason)
    this.#reported.add(reason)
    return isFirst
  }

  /**
   * Logs `upstream.wrong_scheme` when the target speaks TLS and its `url` says http, or the
   * reverse. Call it after a failure that this may explain.
   * @param reason the reason of the failure
   */
  reportWrongScheme(reason: string, log: Log): void {
    const now = performance.now()
    if (this.hasResponded || now - this.#examinedAt < examineEveryMs) return
    this.#examinedAt = now
    const { name, url, targets } = this.#config
    if (targets[0]?.socketPath !== undefined) return
    void httpSchemeMismatch(reason, url).then((mismatch) => {
      const hint = `${mismatch} in ${addressSetting(this.#config)}`
      if (mismatch !== undefined) log.warn('upstream.wrong_scheme', { upstream: name, url: url.origin, hint })
    })
  }

  /** Sends the requests that wait, and resolves when all exchanges have ended. */
  async close(): Promise<void> {
    this.slots.startAll()
    await this.targets.close()
  }

  /** Ends all exchanges. */
  async destroy(): Promise<void> {
    this.slots.startAll()
    await this.targets.destroy()
  }
}

/** All upstreams of one configuration. */
export class Upstreams {
  readonly #upstreams: ReadonlyMap<UpstreamConfig, Upstream>

  constructor(configs: readonly UpstreamConfig[], options: UpstreamsOptions) {
    this.#upstreams = new Map(configs.map((config) => [config, new Upstream(config, configs, options)]))
  }

  /** @throws {RangeError} when the upstream belongs to another configuration */
  of(config: UpstreamConfig): Upstream {
    const upstream = this.#upstreams.get(config)
    if (!upstream) throw new RangeError(`upstream "${config.name}" has no connections here`)
    return upstream
  }

  /** Begins to resolve the names of targets, and to check their health. */
  start(): void {
    for (const { targets } of this.#upstreams.values()) targets.start()
  }

  /** The targets of each upstream, by its name. */
  targets(): readonly (readonly [upstream: string, targets: readonly TargetView[]])[] {
    return [...this.#upstreams].map(([{ name }, { targets }]) => [name, targets.states] as const)
  }

  /** How many exchanges are open with each upstream, by its name. */
  loads(): readonly (readonly [upstream: string, load: UpstreamLoad])[] {
    return [...this.#upstreams].map(([{ name }, upstream]) => [name, upstream.load] as const)
  }

  /** Rejects new requests, and resolves when all exchanges have ended. */
  async close(): Promise<void> {
    await Promise.all([...this.#upstreams.values()].map((upstream) => upstream.close()))
  }

  /** Ends all exchanges. */
  async destroy(): Promise<void> {
    await Promise.all([...this.#upstreams.values()].map((upstream) => upstream.destroy()))
  }
}
