import type { Redis } from 'ioredis'
import { reason } from '../../../core/errors.ts'
import type { Log, LogFields } from '../../../observe/log.ts'
import type { RedisConnection } from './redis-connection.ts'

/** Detects that Redis has lost keys: it was emptied, restarted with less data, or evicts keys. */
export class RedisLosses {
  readonly #commands: RedisConnection
  readonly #log: Log
  readonly #epochs = new Map<string, string>()
  readonly #evicted = new WeakMap<Redis, number>()
  /** Whether the Redis user may run `INFO stats`. */
  #mayRead = true

  constructor(commands: RedisConnection, log: Log) {
    this.#commands = commands
    this.#log = log
  }

  /** Whether a server has lost its keys: its epoch differs from the last one. Remembers it. */
  hasLostKeys(anchor: string, epoch: string): boolean {
    const known = this.#epochs.get(anchor)
    this.#epochs.set(anchor, epoch)
    if (known === undefined || known === epoch) return false
    this.#log.error('store.has_lost_sessions', {
      store: this.#commands.address,
      hint: 'Redis was emptied, or restarted with less data. The sessions in memory were dropped. Check the persistence of Redis.',
    })
    return true
  }

  async hasEvicted(): Promise<boolean> {
    if (!this.#mayRead) return false
    const results = await Promise.all(this.#commands.servers.map((server) => this.#hasEvicted(server)))
    return results.includes(true)
  }

  async #hasEvicted(server: Redis): Promise<boolean> {
    const stats = await server.info('stats').catch((error: unknown) => {
      if (error instanceof Error && error.message.includes('NOPERM')) this.#mayRead = false
      return ''
    })
    const count = Number(/^evicted_keys:(\d+)/m.exec(stats)?.[1] ?? Number.NaN)
    const before = this.#evicted.get(server)
    if (Number.isNaN(count)) return false
    this.#evicted.set(server, count)
    if (before === undefined || count <= before) return false
    this.#log.error('store.evicts', {
      store: this.#commands.address,
      evicted_keys: count,
      hint: 'Sessions and logouts are lost. Give Redis more memory, and set its maxmemory-policy to noeviction.',
    })
    return true
  }
}

/** How much of a run ID is kept: 48 bits. */
const runLength = 12

/**
 * The runs of Redis that this process knows. A run is the life of one server process, and has a
 * random ID. Each session names the run in which it was written last.
 *
 * A server that starts from a file, or a replica that becomes the primary, may lack the last
 * endings, and has another run. A process that was connected to the earlier run remembers its
 * endings; for any other, a session of an earlier run is doubtful. In a Cluster, each primary has
 * its own run.
 */
export class RedisRuns {
  readonly #commands: RedisConnection
  readonly #log: Log
  readonly #known = new Set<string>()
  readonly #queries = new WeakMap<Redis, Promise<string>>()
  readonly #warned = new Set<string>()

  constructor(commands: RedisConnection, log: Log) {
    this.#commands = commands
    this.#log = log
    // A process knows a run only if it was connected during it, so it queries the run before it
    // reads the first session.
    const learn = () => void Promise.allSettled(commands.servers.map((server) => this.#runOf(server)))
    commands.redis.on('ready', learn)
    // A Cluster emits this after each refresh of its slots: after a failover, and every 5 s.
    commands.redis.on('refresh', learn)
  }

  /**
   * The run of the server of a hash tag; empty when Redis does not show it.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   */
  async current(tag: string): Promise<string> {
    return this.#runOf(this.#commands.serverOf(tag))
  }

  /** Whether this process was connected during the run, or the session names none. */
  isKnown(run: string): boolean {
    return run === '' || this.#known.has(run)
  }

  /**
   * Whether a session of this run may have ended without a notice to this process. The run may be
   * of any primary, because slots move.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE` when no primary replies
   */
  async isUnknown(run: string): Promise<boolean> {
    if (this.isKnown(run)) return false
    const queries = await Promise.allSettled(this.#commands.primaries().map((server) => this.#runOf(server)))
    if (queries.every((each) => each.status === 'rejected')) throw queries[0]?.reason
    // When Redis shows no run, there is nothing to compare with.
    if (this.#known.size === 0 || this.#known.has(run)) return false
    this.#warnOnce('store.sessions_of_an_earlier_run', {
      hint: 'Redis was restarted, or a replica took its place. The gateway asks the provider once about each of these sessions.',
    })
    return true
  }

  #runOf(server: Redis): Promise<string> {
    const before = this.#queries.get(server)
    if (before !== undefined) return before
    const query = this.#query(server)
    this.#queries.set(server, query)
    const forget = () => {
      if (this.#queries.get(server) === query) this.#queries.delete(server)
    }
    // When a server process ends, its connections close.
    server.once('close', forget)
    query.catch(forget)
    return query
  }

  async #query(server: Redis): Promise<string> {
    let denied: string | undefined
    const info = await this.#commands.reply(server.info('server')).catch((error: unknown) => {
      if (!reason(error).includes('NOPERM')) throw error
      denied = reason(error)
      return ''
    })
    const run = /^run_id:(\w+)/m.exec(info)?.[1]?.slice(0, runLength) ?? ''
    if (run === '')
      this.#warnOnce('store.older_copies_not_noticed', {
        reason: denied ?? 'INFO names no run_id',
        hint: 'Allow INFO to the Redis user (ACL SETUSER USER +info). Otherwise a Redis that was restored from an older copy serves ended sessions again.',
      })
    else this.#known.add(run)
    return run
  }

  #warnOnce(message: string, fields: LogFields): void {
    if (!this.#warned.has(message)) this.#log.warn(message, { store: this.#commands.address, ...fields })
    this.#warned.add(message)
  }
}
