import type { Redis } from 'ioredis'
import type { Log } from '../../../observe/log.ts'
import type { RedisConnection } from './connection.ts'

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

  /**
   * Whether a server has lost its keys: its epoch differs from the last known one. Remembers the
   * epoch.
   */
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

  /** Whether a server has evicted keys since the last call. */
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
