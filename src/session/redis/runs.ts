import type { Redis } from 'ioredis'
import { reason } from '../../core/errors.ts'
import type { Log, LogFields } from '../../observe/log.ts'
import type { RedisConnection } from './connection.ts'

/** How much of a run ID is kept: 48 bits. */
const runLength = 12

/**
 * Which runs of Redis this process knows. A run is the life of one server process, and has a random
 * ID. Each session names the run in which it was written last. A server that starts from a file,
 * and a replica that takes the place of its primary, may lack the last endings: their run is
 * another one. A process that was connected to the earlier run heard of the endings in it and
 * remembers them. For any other process, a session of an earlier run is doubtful. In a Cluster each
 * primary has a run of its own.
 */
export class RedisRuns {
  readonly #commands: RedisConnection
  readonly #log: Log
  readonly #known = new Set<string>()
  readonly #asked = new WeakMap<Redis, Promise<string>>()
  readonly #told = new Set<string>()

  constructor(commands: RedisConnection, log: Log) {
    this.#commands = commands
    this.#log = log
    // A process knows a run only if it was connected during it, so it asks before the first session
    // is read.
    const learn = () => void Promise.allSettled(commands.servers.map((server) => this.#runOf(server)))
    commands.redis.on('ready', learn)
    // A Cluster emits this each time that it knows its primaries anew: after a failover, and every
    // five seconds.
    commands.redis.on('refresh', learn)
  }

  /**
   * The run of the server that holds a hash tag; empty when Redis does not tell it.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   */
  async current(tag: string): Promise<string> {
    return this.#runOf(this.#commands.serverOf(tag))
  }

  /**
   * Whether a session of this run may have ended without this process knowing. The run may be that
   * of any primary, because slots move.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE` when no primary answers
   */
  async isUnknown(run: string): Promise<boolean> {
    if (run === '' || this.#known.has(run)) return false
    const asked = await Promise.allSettled(this.#commands.primaries().map((server) => this.#runOf(server)))
    if (asked.every((each) => each.status === 'rejected')) throw asked[0]?.reason
    // Without any run, nothing can be compared.
    if (this.#known.size === 0 || this.#known.has(run)) return false
    this.#warnOnce('store.sessions_of_an_earlier_run', {
      hint: 'Redis was restarted, or a replica took its place. The provider is asked about each of these sessions once.',
    })
    return true
  }

  #runOf(server: Redis): Promise<string> {
    const before = this.#asked.get(server)
    if (before !== undefined) return before
    const asked = this.#ask(server)
    this.#asked.set(server, asked)
    const forget = () => {
      if (this.#asked.get(server) === asked) this.#asked.delete(server)
    }
    // Every server process ends with its connections.
    server.once('close', forget)
    asked.catch(forget)
    return asked
  }

  async #ask(server: Redis): Promise<string> {
    let denied: string | undefined
    const info = await this.#commands.answer(server.info('server')).catch((error: unknown) => {
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
    if (!this.#told.has(message)) this.#log.warn(message, { store: this.#commands.address, ...fields })
    this.#told.add(message)
  }
}
