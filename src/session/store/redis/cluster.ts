import { once } from 'node:events'
import { Cluster, Redis } from 'ioredis'
import type { RedisClusterConfig } from '../../../config/model/session.ts'
import { clusterOptions, longestSilenceMs, nodeOptions, retryDelay } from './options.ts'
import { noticesTag, RedisConnection } from './redis-connection.ts'

/** The longest pause of this connection, in ms. Meanwhile no session is served from memory. */
const longestNoticesDelayMs = 500

/** The shortest time between two refreshes of the slot table after errors, in ms. */
const refreshPauseMs = 250

/** Errors that only follow from the error of a node, whose message is more precise. */
const consequences = new Set(['Connection is closed.', 'Failed to refresh slots cache.'])

export class ClusterConnection extends RedisConnection {
  declare readonly redis: Cluster
  #anchors: ReadonlyMap<string, string> = new Map([['', noticesTag]])
  readonly #takeoverListeners: (() => void)[] = []
  #refreshedAt = -Infinity

  constructor(config: RedisClusterConfig, address: string, purpose = 'commands') {
    const cluster = new Cluster([...config.nodes], clusterOptions(config, purpose))
    super(cluster, { address, timeoutMs: config.timeoutMs })
    cluster.on('node error', (error: unknown) => this.failed(error))
    cluster.on('refresh', () => this.#refreshed(anchorsOf(cluster)))
    cluster.on('+node', (node: Redis) => {
      // After a redirection, the first command opens the connection to the node and waits for it.
      if (cluster.status === 'ready') setImmediate(() => connectAhead(node))
      else connectAhead(node)
    })
    cluster.on('-node', () => this.refresh())
  }

  override get servers(): readonly Redis[] {
    return this.redis.nodes('master').filter(({ status }) => status === 'ready')
  }

  override primaries(): readonly Redis[] {
    if (this.redis.status !== 'ready') throw this.unavailable(this.why)
    return this.redis.nodes('master')
  }

  override serverOf(tag: string): Redis {
    const owner = this.ownerOf(tag)
    const server = this.primaries().find(({ options }) => options.host === owner?.host && options.port === owner?.port)
    if (server === undefined) throw this.unavailable('the node of this slot is unknown')
    return server
  }

  override get anchors(): readonly string[] {
    return [...this.#anchors.values()]
  }

  override onTakeover(listener: () => void): void {
    this.#takeoverListeners.push(listener)
  }

  /**
   * A node delivers to its own subscribers at once, to others over the cluster bus, which may lose
   * messages.
   */
  override get publishesEverywhere(): boolean {
    return false
  }

  /** The address of the node that owns the slot of a hash tag; `undefined` when it is unknown. */
  ownerOf(tag: string): { readonly host: string; readonly port: number } | undefined {
    const address = this.redis.slots[slotOf(tag)]?.[0]
    if (address === undefined) return undefined
    const colon = address.lastIndexOf(':')
    return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) }
  }

  override async reply<T>(command: Promise<T>): Promise<T> {
    try {
      // A command with all its redirections has one time limit.
      return await this.deadline()(super.reply(command))
    } catch (error) {
      this.refresh()
      throw error
    }
  }

  /** Waits for the nodes too, because commands for a node that is being connected are rejected. */
  override async ready(): Promise<void> {
    await super.ready()
    const opening = this.redis.nodes('master').filter(({ status }) => status !== 'ready')
    const opened = opening.map((node) => {
      connectAhead(node)
      return once(node, 'ready', { signal: AbortSignal.timeout(Math.min(this.timeoutMs, longestSilenceMs)) })
    })
    await Promise.allSettled(opened)
  }

  /** Does nothing, because each node reconnects by itself. */
  override renew(): void {}

  protected override failed(error: unknown): void {
    // The node has reported the cause before.
    if (error instanceof Error && consequences.has(error.message)) return
    super.failed(error)
  }

  #refreshed(anchors: ReadonlyMap<string, string>): void {
    const isFirst = this.#anchors.has('')
    const hasNew = [...anchors.keys()].some((owner) => !this.#anchors.has(owner))
    this.#anchors = anchors
    if (!isFirst && hasNew) for (const listener of this.#takeoverListeners) listener()
  }

  refresh(): void {
    if (this.redis.status !== 'ready' || performance.now() - this.#refreshedAt < refreshPauseMs) return
    this.#refreshedAt = performance.now()
    this.redis.refreshSlotsCache()
  }
}

/** The connection for notices. Each attempt is to the node that owns their slot at that time. */
export function connectForNotices(config: RedisClusterConfig, commands: ClusterConnection): RedisConnection {
  const redis = new Redis(nodeOptions(config, 'notices'))
  const setAddress = () => void Object.assign(redis.options, commands.ownerOf(noticesTag))
  // ioredis calls this before each attempt to connect, and reads the address afterwards.
  redis.options.retryStrategy = (attempt) => {
    commands.refresh()
    setAddress()
    return Math.min(retryDelay(attempt), longestNoticesDelayMs)
  }
  commands.redis.on('ready', () => {
    if (redis.status !== 'wait') return
    setAddress()
    redis.connect().catch(() => {})
  })
  return new RedisConnection(redis, commands)
}

function connectAhead(node: Redis): void {
  if (node.status === 'wait' && node.options.readOnly !== true) node.connect().catch(() => {})
}

/**
 * One hash tag for each primary, by its address: that of the notices, then for each other primary
 * one in its first slot.
 */
function anchorsOf({ slots }: Cluster): ReadonlyMap<string, string> {
  const anchors = new Map([[slots[slotOf(noticesTag)]?.[0] ?? 'unknown', noticesTag]])
  for (let slot = 0; slot < slotCount; slot++) {
    const owner = slots[slot]?.[0]
    if (owner !== undefined && !anchors.has(owner)) anchors.set(owner, tagIn(slot))
  }
  return anchors
}

const slotCount = 16_384

/** The slot of a key or a hash tag: Redis Cluster specification, "Key distribution model". */
export function slotOf(key: string): number {
  const tag = /\{([^}]+)\}/.exec(key)?.[1] ?? key
  let crc = 0
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff
  }
  return crc % slotCount
}

const tags = new Map<number, string>()

/** The hash tag for a slot: the smallest number that lies in the slot. */
export function tagIn(slot: number): string {
  let tag = tags.get(slot)
  for (let n = 0; tag === undefined; n++) if (slotOf(String(n)) === slot) tag = String(n)
  tags.set(slot, tag)
  return tag
}
