import { Redis } from 'ioredis'
import type { RedisSentinelConfig } from '../../../config/model/session.ts'
import { RedisConnection } from './connection.ts'
import { sentinelOptions, watchOptions } from './options.ts'

/** How often a Sentinel is pinged, in ms. Only a ping shows that a connection is dead. */
const pingIntervalMs = 5_000

/**
 * A connection to the primary that the Sentinels name. It is replaced as soon as a Sentinel
 * announces another primary.
 */
export class SentinelConnection extends RedisConnection {
  declare readonly redis: Redis
  readonly #watches: readonly Redis[]
  readonly #pinging: NodeJS.Timeout

  constructor(config: RedisSentinelConfig, address: string, purpose = 'commands') {
    super(new Redis(sentinelOptions(config, purpose)), { address, timeoutMs: config.timeoutMs })
    // ioredis could watch the Sentinels too, but it writes to standard error for each one that is
    // unavailable, at every attempt.
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
    this.#pinging = setInterval(
      () => this.#watches.forEach((watch) => void watch.ping().catch(() => {})),
      pingIntervalMs,
    )
    this.#pinging.unref()
  }

  /**
   * Whether the connection leads to this address. Sentinels name the new primary in replies before
   * they announce it, so the connection may lead there already.
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
