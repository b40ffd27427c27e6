import type { Redis } from 'ioredis'
import type { Log } from '../../observe/log.ts'
import type { RedisConnection } from './connection.ts'

/**
 * Finds out that Redis has lost what it was to keep: it was emptied, restarted with less, or
 * evicts.
 */
export class RedisLosses {
  readonly #commands: RedisConnection
  readonly #log: Log
  readonly #epochs = new Map<string, string>()
  readonly #evicted = new WeakMap<Redis, number>()
  #mayAsk = true

  constructor(commands: RedisConnection, log: Log) {
    this.#commands = commands
    this.#log = log
  }

  /**
   * Takes note of the epoch of a server. `true`: it is another one than before, so that what was
   * stored there is gone.
   */
  isAnother(anchor: string, epoch: string): boolean {
    const known = this.#epochs.get(anchor)
    this.#epochs.set(anchor, epoch)
    if (known === undefined || known === epoch) return false
    this.#log.error('store.has_lost_sessions', {
      store: this.#commands.address,
      hint: 'Redis was emptied, or restarted with less than it held; nobody is signed in from memory',
    })
    return true
  }

  /** Whether a server has evicted keys since it was last asked. */
  async hasEvicted(): Promise<boolean> {
    if (!this.#mayAsk) return false
    const answers = await Promise.all(this.#commands.servers.map((server) => this.#hasEvicted(server)))
    return answers.includes(true)
  }

  async #hasEvicted(server: Redis): Promise<boolean> {
    const stats = await server.info('stats').catch((error: unknown) => {
      if (error instanceof Error && error.message.includes('NOPERM')) this.#mayAsk = false
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
      hint: 'sessions and logouts are lost: give Redis more memory, and the maxmemory-policy noeviction',
    })
    return true
  }
}
