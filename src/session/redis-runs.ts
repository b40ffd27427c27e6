import { Redis } from 'ioredis'
import { reason } from '../core/errors.ts'
import type { Log } from '../observe/log.ts'
import type { RedisConnection } from './redis-connection.ts'

/** How much of a run ID is kept: 48 bits. */
const runLength = 12

/**
 * Which runs of Redis this process knows. A run is the life of one server process, and has a random ID. Each session names the run in
 * which it was written last. A server that starts from a file, and a replica that takes the place of its primary, may lack the last
 * endings: their run is another one. A process that was connected to the earlier run heard of the endings in it and remembers them.
 * For any other process, a session of an earlier run is doubtful.
 */
export class RedisRuns {
  readonly #commands: RedisConnection
  readonly #log: Log
  readonly #known = new Set<string>()
  readonly #told = new Set<string>()
  #asked: Promise<string> | undefined
  #current = ''

  constructor(commands: RedisConnection, log: Log) {
    this.#commands = commands
    this.#log = log
    // Every server process ends with its connections.
    commands.redis.on('close', () => (this.#asked = undefined))
  }

  /**
   * The run of the server that holds the sessions; empty when Redis does not tell it, and in a Cluster.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   */
  current(): Promise<string> {
    if (this.#asked === undefined) {
      const asked = this.#ask()
      this.#asked = asked
      asked.catch(() => {
        if (this.#asked === asked) this.#asked = undefined
      })
    }
    return this.#asked
  }

  /** Whether a session of this run may have ended without this process knowing. */
  isUnknown(run: string): boolean {
    if (run === '' || this.#current === '' || this.#known.has(run)) return false
    if (!this.#told.has(run))
      this.#log.warn('store.sessions_of_an_earlier_run', {
        store: this.#commands.address,
        hint: 'Redis was restarted, or a replica took its place. The provider is asked about each of these sessions once.',
      })
    this.#told.add(run)
    return true
  }

  async #ask(): Promise<string> {
    const { redis } = this.#commands
    if (!(redis instanceof Redis)) return ''
    const info = await this.#commands.answer(redis.info('server')).catch((error: unknown) => {
      if (reason(error).includes('NOPERM')) return ''
      throw error
    })
    const run = /^run_id:(\w+)/m.exec(info)?.[1]?.slice(0, runLength) ?? ''
    if (run !== '') this.#known.add(run)
    this.#current = run
    return run
  }
}
