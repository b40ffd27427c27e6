import { isWildcard, upstreamAt } from '../config/hosts.ts'
import type { UpstreamConfig } from '../config/model/upstream.ts'
import type { NamePattern } from '../core/name-pattern.ts'
import { randomToken } from '../core/random.ts'
import type { AddressText } from '../http/address-text.ts'
import { isWithheld, mayBeNamed } from '../http/cookies.ts'
import { reservedNames } from '../identity/reserved-names.ts'
import { Addresses } from './addresses.ts'
import { ConnectionSlots } from './connection-slots.ts'
import type { SkipReason } from './content-rewriter.ts'
import { responseChanges, type ResponseChanges } from './response-headers.ts'
import type { SessionNotice } from './session-notice.ts'
import { Target } from './target.ts'
import { RequestFields } from './upstream-headers.ts'

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

export interface UpstreamsOptions {
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

/** An upstream at run time: its target, its connection slots, and what all its requests share. */
export class Upstream {
  readonly target: Target
  readonly slots: ConnectionSlots
  readonly reserved: ReadonlySet<string>
  readonly fields: RequestFields
  /** Marks requests that this process has sent to this upstream. */
  readonly loopMarker = randomToken(9)
  readonly #addresses: UpstreamAddresses
  readonly #addressesOfHosts = new Map<string, UpstreamAddresses>()
  readonly #config: UpstreamConfig
  readonly #reservedPrefix: string
  readonly #hasWildcard: boolean
  readonly responseChanges: ResponseChanges | undefined
  /** Absent: the gateway adds no line to the pages. */
  readonly notice: SessionNotice | undefined
  readonly #keptCookies: readonly NamePattern[]
  #waitReportedAt = -Infinity
  #hasReportedLostCookies = false
  readonly #reportedSkips = new Set<SkipReason>()
  #hasReportedRejectedCookies = false

  constructor(config: UpstreamConfig, all: readonly UpstreamConfig[], { isTracing, reservedPrefix }: UpstreamsOptions) {
    this.target = new Target(config)
    this.slots = new ConnectionSlots(config, maxWaiting)
    this.reserved = reservedNames(config, all)
    this.fields = new RequestFields(this.reserved, isTracing)
    this.#keptCookies = config.sessionCookies
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
    // A client may request any number of hosts.
    if (this.#addressesOfHosts.size >= maxHosts) this.#addressesOfHosts.clear()
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

  /** Whether the gateway keeps cookies of this upstream. */
  get keepsCookies(): boolean {
    return this.#keptCookies.length > 0
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

  /** Whether cookies that could not be kept are to be logged: only once. */
  reportsLostCookies(): boolean {
    const isFirst = !this.#hasReportedLostCookies
    this.#hasReportedLostCookies = true
    return isFirst
  }

  /** Whether cookies that browsers would reject are to be logged: only once. */
  reportsRejectedCookies(): boolean {
    const isFirst = !this.#hasReportedRejectedCookies
    this.#hasReportedRejectedCookies = true
    return isFirst
  }

  /** Whether content that was not rewritten is to be logged: once for each reason. */
  reportsSkip(reason: SkipReason): boolean {
    const isFirst = !this.#reportedSkips.has(reason)
    this.#reportedSkips.add(reason)
    return isFirst
  }

  /** Sends the requests that wait, and resolves when all exchanges have ended. */
  async close(): Promise<void> {
    this.slots.startAll()
    await this.target.transport.close()
  }

  /** Ends all exchanges. */
  async destroy(): Promise<void> {
    this.slots.startAll()
    await this.target.transport.destroy()
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
