import { Redis } from 'ioredis'
import type { RedisStoreConfig } from '../../../config/model/session.ts'
import { ClusterConnection, connectForNotices } from './cluster.ts'
import { RedisConnection } from './connection.ts'
import { sentinelOptions, serverOptions } from './options.ts'
import { SentinelConnection } from './sentinel.ts'

export interface RedisServers {
  readonly commands: RedisConnection
  /** Receives the notices. */
  readonly subscriber: RedisConnection
  /** For writes that replicas must acknowledge; `undefined` when none has to. */
  readonly endings: RedisConnection | undefined
}

/**
 * Connects to one server, to the primary that Sentinels name, or to a Cluster. The connections are
 * opened in the background.
 */
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
