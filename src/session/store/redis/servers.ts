import { Redis } from 'ioredis'
import type { RedisSentinelConfig, RedisStoreConfig } from '../../../config/model/session.ts'
import { ClusterConnection, connectForNotices } from './cluster.ts'
import { sentinelOptions, serverOptions, watchOptions } from './options.ts'
import { RedisConnection } from './redis-connection.ts'

export interface RedisServers {
  readonly commands: RedisConnection
  /** Receives the notices. */
  readonly subscriber: RedisConnection
  /** For writes that replicas must acknowledge; `undefined` when none has to. */
  readonly endings: RedisConnection | undefined
}

/** Connects in the background to one server, the primary of Sentinels, or a Cluster. */
export function connectToRedis(config: RedisStoreConfig): RedisServers {
  const { timeoutMs, replicasAcknowledge } = config
  const ifNeeded = (connect: () => RedisConnection) => (replicasAcknowledge > 0 ? connect() : undefined)
  switch (config.kind) {
    case 'redis': {
      const about = { address: `${config.url.hostname}:${config.url.port || '6379'}`, timeoutMs }
      const connect = (purpose: string) => new RedisConnection(new Redis(serverOptions(config, purpose)), about)
      return {
        commands: connect('commands'),
        subscriber: connect('notices'),
        endings: ifNeeded(() => connect('endings')),
      }
    }
    case 'redis_sentinel': {
      const address = `${config.name} (Sentinels ${listOf(config.sentinels)})`
      const commands = new SentinelConnection(config, address)
      return {
        commands,
        subscriber: new RedisConnection(new Redis(sentinelOptions(config, 'notices')), commands),
        endings: ifNeeded(() => new SentinelConnection(config, address, 'endings')),
      }
    }
    case 'redis_cluster': {
      const address = `${listOf(config.nodes)} (Cluster)`
      const commands = new ClusterConnection(config, address)
      return {
        commands,
        subscriber: connectForNotices(config, commands),
        endings: ifNeeded(() => new ClusterConnection(config, address, 'endings')),
      }
    }
  }
}

function listOf(addresses: readonly { readonly host: string; readonly port: number }[]): string {
  return addresses.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`).join(', ')
}

/** How often a Sentinel is pinged, in ms. Only a ping shows that a connection is dead. */
const pingIntervalMs = 5_000

/** A connection to the primary of Sentinels, replaced as soon as one announces another primary. */
class SentinelConnection extends RedisConnection {
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

  /** Sentinels name a new primary in replies before they announce it, so this may be true. */
  #leadsTo(host: string | undefined, port: number): boolean {
    const { stream } = this.redis
    return this.redis.status === 'ready' && stream.remoteAddress === host && stream.remotePort === port
  }

  override renewCredentials(config: RedisSentinelConfig): void {
    super.renewCredentials(config)
    const { sentinelUsername: username, sentinelPassword: password } = config
    for (const { options } of this.#watches) Object.assign(options, { username, password })
  }

  override async close(): Promise<void> {
    clearInterval(this.#pinging)
    for (const watch of this.#watches) watch.disconnect()
    await super.close()
  }
}
