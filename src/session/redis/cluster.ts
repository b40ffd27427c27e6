import { once } from 'node:events'
import { Cluster, Redis } from 'ioredis'
import type { RedisClusterConfig } from '../../config/model.ts'
import { meetingTag, RedisConnection } from './connection.ts'
import { clusterOptions, longestSilence, nodeOptions, retryDelay } from './options.ts'
import { slotCount, slotOf, tagIn } from './slots.ts'

/**
 * How long after a failed attempt the meeting place is tried again at most, in ms: until then
 * nothing is served from memory.
 */
const longestMeetingDelay = 500

/** How often at most what went wrong makes us ask who has which slot, in ms. */
const refreshPause = 250

const consequences = new Set(['Connection is closed.', 'Failed to refresh slots cache.'])

/** The connections to the nodes of a Cluster. */
export class ClusterConnection extends RedisConnection {
  declare readonly redis: Cluster
  #anchors: ReadonlyMap<string, string> = new Map([['', meetingTag]])
  readonly #takeoverListeners: (() => void)[] = []
  #refreshedAt = -Infinity

  constructor(config: RedisClusterConfig, address: string, purpose = 'commands') {
    const cluster = new Cluster([...config.nodes], clusterOptions(config, purpose))
    super(cluster, { address, timeoutMs: config.timeoutMs })
    cluster.on('node error', (error: unknown) => this.failed(error))
    cluster.on('refresh', () => this.#refreshed(anchorsOf(cluster)))
    cluster.on('+node', (node: Redis) => {
      // To a node that we were redirected to, the first command makes a connection, and waits for
      // it.
      if (cluster.status === 'ready') setImmediate(() => connectAhead(node))
      else connectAhead(node)
    })
    cluster.on('-node', () => this.refresh())
  }

  override get servers(): readonly Redis[] {
    return this.redis.nodes('master').filter(({ status }) => status === 'ready')
  }

  override primaries(): readonly Redis[] {
    if (this.redis.status !== 'ready') throw this.unavailable(this.problem)
    return this.redis.nodes('master')
  }

  override serverOf(tag: string): Redis {
    const owner = this.ownerOf(tag)
    const server = this.primaries().find(({ options }) => options.host === owner?.host && options.port === owner?.port)
    if (server === undefined) throw this.unavailable('the node of this slot is not known')
    return server
  }

  override get anchors(): readonly string[] {
    return [...this.#anchors.values()]
  }

  override onTakeover(listener: () => void): void {
    this.#takeoverListeners.push(listener)
  }

  /**
   * A node tells its own listeners at once, and those of the others over a bus that may lose it.
   */
  override get publishesEverywhere(): boolean {
    return false
  }

  /** The node that answers for a hash tag, as far as we know. */
  ownerOf(tag: string): { readonly host: string; readonly port: number } | undefined {
    const address = this.redis.slots[slotOf(tag)]?.[0]
    if (address === undefined) return undefined
    const colon = address.lastIndexOf(':')
    return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) }
  }

  override async answer<T>(command: Promise<T>): Promise<T> {
    try {
      // Redirections add up, so they have a time limit together.
      return await this.deadline()(super.answer(command))
    } catch (error) {
      this.refresh()
      throw error
    }
  }

  /**
   * Waits for the connections to the nodes too: while one is being opened, what is sent to it would
   * be refused.
   */
  override async ready(): Promise<void> {
    await super.ready()
    const opening = this.redis.nodes('master').filter(({ status }) => status !== 'ready')
    const opened = opening.map((node) => {
      connectAhead(node)
      return once(node, 'ready', { signal: AbortSignal.timeout(Math.min(this.timeoutMs, longestSilence)) })
    })
    await Promise.allSettled(opened)
  }

  /** Each node comes back by itself. */
  override renew(): void {}

  protected override failed(error: unknown): void {
    // Why, the connection to the node has said.
    if (error instanceof Error && consequences.has(error.message)) return
    super.failed(error)
  }

  #refreshed(anchors: ReadonlyMap<string, string>): void {
    const isFirst = this.#anchors.has('')
    const hasNew = [...anchors.keys()].some((owner) => !this.#anchors.has(owner))
    this.#anchors = anchors
    if (!isFirst && hasNew) for (const listener of this.#takeoverListeners) listener()
  }

  /** Asks who has which slot. */
  refresh(): void {
    if (this.redis.status !== 'ready' || performance.now() - this.#refreshedAt < refreshPause) return
    this.#refreshedAt = performance.now()
    this.redis.refreshSlotsCache()
  }
}

/**
 * A connection to the node where the processes meet: at each attempt, to the one that has the slot
 * by then.
 */
export function connectToMeeting(config: RedisClusterConfig, commands: ClusterConnection): RedisConnection {
  const redis = new Redis(nodeOptions(config, 'notices'))
  const aim = () => void Object.assign(redis.options, commands.ownerOf(meetingTag))
  // ioredis asks this before each attempt, and then reads the options.
  redis.options.retryStrategy = (attempt) => {
    commands.refresh()
    aim()
    return Math.min(retryDelay(attempt), longestMeetingDelay)
  }
  commands.redis.on('ready', () => {
    if (redis.status !== 'wait') return
    aim()
    redis.connect().catch(() => {})
  })
  return new RedisConnection(redis, commands)
}

function connectAhead(node: Redis): void {
  if (node.status === 'wait' && node.options.readOnly !== true) node.connect().catch(() => {})
}

/**
 * For each primary a tag in its first slot; for the one where the processes meet, which comes
 * first, the tag of that place.
 */
function anchorsOf({ slots }: Cluster): ReadonlyMap<string, string> {
  const anchors = new Map([[slots[slotOf(meetingTag)]?.[0] ?? 'nobody', meetingTag]])
  for (let slot = 0; slot < slotCount; slot++) {
    const owner = slots[slot]?.[0]
    if (owner !== undefined && !anchors.has(owner)) anchors.set(owner, tagIn(slot))
  }
  return anchors
}
