import { type Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis'
import type { Address } from '../../../config/addresses.ts'
import type {
  RedisClusterConfig,
  RedisSentinelConfig,
  RedisServerConfig,
  RedisStoreConfig,
  RedisTlsConfig,
} from '../../../config/model/session.ts'
import { pauses } from '../../../core/pauses.ts'
import './ioredis-corrections.ts'
import { scripts } from './scripts.ts'

/** How long the end of a connection may take before the socket is destroyed, in ms. */
export const disconnectTimeoutMs = 100
/**
 * The longest silence before Redis counts as unavailable, in ms: a server that owes a reply hangs.
 * After so long a break, no operation waits, and no session is served from memory.
 */
export const longestSilenceMs = 1_500

/** Errors of a server that is not the primary. After a failover, the old primary is a replica. */
export const needsAnotherServer = /READONLY|MASTERDOWN/

type Options = Omit<RedisOptions, 'replyMapping'>

/**
 * How long to wait before the next attempt to connect, in ms. A random part keeps processes from
 * connecting at the same moment.
 */
export function retryDelay(attempt: number): number {
  return Math.min(50 * 2 ** (attempt - 1), pauses.reconnectToStoreMs) + Math.random() * 50
}

export function serverOptions({ url, ...config }: RedisServerConfig, purpose: string): Options {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const isAddress = host.includes(':') || /^[\d.]+$/.test(host)
  return {
    ...connectionOptions(config, purpose),
    host,
    port: Number(url.port || 6379),
    db: Number(url.pathname.slice(1) || 0),
    ...(config.tls && { tls: { ...tlsOptions(config.tls), ...(!isAddress && { servername: host }) } }),
    retryStrategy: retryDelay,
  }
}

/** Options of a connection to the primary. Each attempt to connect queries the Sentinels for it. */
export function sentinelOptions(config: RedisSentinelConfig, purpose: string): Options {
  return {
    ...connectionOptions(config, purpose),
    sentinels: config.sentinels.map(({ host, port }) => ({ host, port })),
    name: config.name,
    db: config.database,
    ...(config.sentinelUsername !== undefined && { sentinelUsername: config.sentinelUsername }),
    ...(config.sentinelPassword !== undefined && { sentinelPassword: config.sentinelPassword }),
    ...(config.tls && {
      tls: tlsOptions(config.tls),
      sentinelTLS: tlsOptions(config.tls),
      enableTLSForSentinelMode: true,
    }),
    sentinelCommandTimeout: config.timeoutMs,
    // Only configured Sentinels are trusted, so the gateway does not discover further ones.
    updateSentinels: false,
    // When no Sentinel knows the primary, the connection ends. `RedisConnection` starts it again.
    sentinelRetryStrategy: () => null,
    retryStrategy: retryDelay,
  }
}

/** Options of a connection to a Sentinel that receives its failover messages. */
export function watchOptions(config: RedisSentinelConfig, { host, port }: Address): Options {
  const { sentinelUsername: username, sentinelPassword: password, timeoutMs } = config
  return {
    ...connectionOptions({ username, password, timeoutMs }, 'failovers'),
    host,
    port,
    ...(config.tls && { tls: tlsOptions(config.tls) }),
    enableReadyCheck: false,
    retryStrategy: retryDelay,
  }
}

export function clusterOptions(
  config: RedisClusterConfig,
  purpose: string,
): Omit<ClusterOptions, 'redisOptions'> & {
  readonly redisOptions: Omit<Options, 'retryStrategy' | 'enableOfflineQueue'>
} {
  const { enableOfflineQueue, scripts, ...redisOptions } = connectionOptions(config, purpose)
  return {
    redisOptions: { ...redisOptions, ...(config.tls && { tls: tlsOptions(config.tls) }) },
    enableOfflineQueue,
    scripts,
    clusterRetryStrategy: retryDelay,
    slotsRefreshTimeout: config.timeoutMs,
    slotsRefreshInterval: 5_000,
    // The check may go to a node that is unavailable, and would delay the use of all others.
    enableReadyCheck: false,
    // Host names are kept, because certificates are issued for names.
    dnsLookup: (hostname, callback) => callback(null, hostname),

    // A redirected command was not executed, so it may be sent again. A command without a reply may
    // have been executed, so it may not.
    maxRedirections: 4,
    retryDelayOnTryAgain: 50,
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
  }
}

/** Options of a connection to one node of a Cluster. Its address is set before each attempt. */
export function nodeOptions(config: RedisClusterConfig, purpose: string): Options {
  return {
    ...connectionOptions(config, purpose),
    ...(config.tls && { tls: tlsOptions(config.tls) }),
    lazyConnect: true,
    retryStrategy: retryDelay,
  }
}

/** The next connections of a client authenticate with these credentials. Open ones stay open. */
export function renewCredentials(redis: Redis | Cluster, config: RedisStoreConfig): void {
  const { username, password } = config
  const { sentinelUsername, sentinelPassword } = { ...(config.kind === 'redis_sentinel' && config) }
  const all = redis instanceof Redis ? [redis.options] : redis.nodes().map(({ options }) => options)
  if (!(redis instanceof Redis)) all.push((redis.options.redisOptions ??= {}))
  for (const options of all) Object.assign(options, { username, password, sentinelUsername, sentinelPassword })
}

function connectionOptions(
  { username, password, timeoutMs }: Pick<RedisStoreConfig, 'username' | 'password' | 'timeoutMs'>,
  purpose: string,
) {
  return {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    connectionName: `gatehouse-${purpose}`,
    disableClientInfo: true,
    scripts: Object.fromEntries(Object.entries(scripts).map(([name, lua]) => [name, { lua: lua.trim() }])),

    connectTimeout: pauses.connectToStoreMs,
    disconnectTimeout: disconnectTimeoutMs,
    commandTimeout: timeoutMs,
    // A server that hangs keeps its connections open, and commands would pile up. A slow server
    // sends at least some bytes in time.
    socketTimeout: Math.min(timeoutMs, longestSilenceMs),
    maxLoadingRetryTime: 500,

    // No command waits for a connection, and none is sent twice. When a connection is lost, the
    // commands without a reply are rejected.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,

    reconnectOnError: (error: Error) => needsAnotherServer.test(error.message),
    // An option that ioredis does not know would have no effect.
  } satisfies Options
}

function tlsOptions({ ca, cert, key }: RedisTlsConfig) {
  return { ...(ca !== undefined && { ca }), ...(cert !== undefined && { cert }), ...(key !== undefined && { key }) }
}
