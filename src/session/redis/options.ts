import { Redis, type ClusterOptions, type RedisOptions } from 'ioredis'
import type {
  Address,
  RedisClusterConfig,
  RedisSentinelConfig,
  RedisServerConfig,
  RedisStoreConfig,
  RedisTlsConfig,
} from '../../config/model.ts'
import { scripts } from './scripts.ts'
import './timeouts.ts'

// ioredis listens for the first error of a connection. TLS that is given up in its handshake may
// have a second one, and an error that nobody listens for ends the process. The connections that it
// makes for itself, to Sentinels, are of this class too.
const streams = new WeakMap<Redis, Redis['stream']>()
Object.defineProperty(Redis.prototype, 'stream', {
  get(this: Redis) {
    return streams.get(this)
  },
  set(this: Redis, stream: Redis['stream']) {
    streams.set(
      this,
      stream.on('error', () => {}),
    )
  },
})

export const disconnectTimeout = 100
const connectTimeout = 2_000
const longestRetryDelay = 2_000
/**
 * In ms. A server that owes an answer and is silent for so long hangs, and no operation waits for a
 * connection that has been down for so long. Nothing is served from memory then either.
 */
export const longestSilence = 1_500

type Options = Omit<RedisOptions, 'replyMapping'>

/**
 * How long to wait before the next attempt to connect: a little random, so that not all processes
 * come at once.
 */
export function retryDelay(attempt: number): number {
  return Math.min(50 * 2 ** (attempt - 1), longestRetryDelay) + Math.random() * 50
}

/** For one connection to one server. */
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

/** For one connection to the server that the Sentinels name; they are asked at each attempt. */
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
    // What the Sentinels say of each other is not asked for: those that are to be believed are
    // configured.
    updateSentinels: false,
    // When no Sentinel knows, the connection ends, and is started again by us.
    sentinelRetryStrategy: () => null,
    retryStrategy: retryDelay,
  }
}

/** For a connection to a Sentinel, to be told of a failover. */
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

/** For the connections to all nodes of a Cluster. */
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
    // Asked of any node, one that is away among them, it would keep us from all the others.
    enableReadyCheck: false,
    // A name is kept, as its certificate is in that name.
    dnsLookup: (hostname, callback) => callback(null, hostname),

    // A redirected command was not carried out where it was refused: it may be sent again. One that
    // was never answered may not.
    maxRedirections: 4,
    retryDelayOnTryAgain: 50,
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
  }
}

/** For a connection to one node of a Cluster, wherever that is. */
export function nodeOptions(config: RedisClusterConfig, purpose: string): Options {
  return {
    ...connectionOptions(config, purpose),
    ...(config.tls && { tls: tlsOptions(config.tls) }),
    lazyConnect: true,
    retryStrategy: retryDelay,
  }
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

    connectTimeout,
    disconnectTimeout,
    commandTimeout: timeoutMs,
    // A server that hangs keeps its connections, and what we send to it would pile up here. A slow
    // server answers something in time.
    socketTimeout: Math.min(timeoutMs, longestSilence),
    maxLoadingRetryTime: 500,

    // Nothing waits for a connection, and nothing is sent twice: what was not answered is refused
    // when the connection breaks.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,

    // After a failover, the old primary is a replica.
    reconnectOnError: (error: Error) => /READONLY|MASTERDOWN/.test(error.message),
  }
}

function tlsOptions({ ca, cert, key }: RedisTlsConfig) {
  return { ...(ca !== undefined && { ca }), ...(cert !== undefined && { cert }), ...(key !== undefined && { key }) }
}
