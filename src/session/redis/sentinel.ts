import { Redis } from 'ioredis'
import type { RedisSentinelConfig } from '../../config/model.ts'
import { RedisConnection } from './connection.ts'
import { sentinelOptions, watchOptions } from './options.ts'

/**
 * How often a Sentinel is asked for a sign of life, in ms: a connection may be dead and not know
 * it.
 */
const pingInterval = 5_000

/**
 * A connection to the primary that the Sentinels name: left as soon as one of them says that
 * another took its place.
 */
export class SentinelConnection extends RedisConnection {
  declare readonly redis: Redis
  readonly #watches: readonly Redis[]
  readonly #pinging: NodeJS.Timeout

  constructor(config: RedisSentinelConfig, address: string, purpose = 'commands') {
    super(new Redis(sentinelOptions(config, purpose)), { address, timeoutMs: config.timeoutMs })
    // ioredis could do it, and would write of each Sentinel that is away to standard error, again
    // and again.
    this.#watches = config.sentinels.map((sentinel) => {
      const watch = new Redis(watchOptions(config, sentinel))
      watch.on('error', () => {})
      watch.on('ready', () => void watch.subscribe('+switch-master').catch(() => {}))
      watch.on('message', (_channel: string, text: string) => {
        const [name, , , host, port] = text.split(' ')
        if (name === config.name && !this.#leadsTo(host, Number(port))) this.renew()
      })
      return watch
    })
    this.#pinging = setInterval(() => this.#watches.forEach((watch) => void watch.ping().catch(() => {})), pingInterval)
    this.#pinging.unref()
  }

  /**
   * Sentinels name the new primary to those who ask before they announce it: whoever has found it
   * stays there.
   */
  #leadsTo(host: string | undefined, port: number): boolean {
    const { stream } = this.redis
    return this.redis.status === 'ready' && stream.remoteAddress === host && stream.remotePort === port
  }

  override async close(): Promise<void> {
    clearInterval(this.#pinging)
    for (const watch of this.#watches) watch.disconnect()
    await super.close()
  }
}
