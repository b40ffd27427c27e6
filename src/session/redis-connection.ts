import { Redis } from 'ioredis'
import type { RedisOptions } from 'ioredis'
import type { RedisStoreConfig } from '../config/model.ts'
import { GatewayError, reason } from '../core/errors.ts'
import type { Log } from '../observe/log.ts'
import { scripts } from './redis-scripts.ts'
import type { ScriptName } from './redis-scripts.ts'

type Argument = string | number | Buffer
type Command = (...args: (Argument | readonly Argument[])[]) => Promise<unknown>

const connectTimeout = 2_000
const longestRetryDelay = 2_000
const disconnectTimeout = 100

/** A connection that comes back by itself, for ever, and never queues: while it is down every command is refused at once. */
export class RedisConnection {
  readonly redis: Redis
  readonly #config: RedisStoreConfig
  #problem = 'not connected yet'
  #problemIsOld = true
  #closed = false

  constructor(config: RedisStoreConfig, purpose: string) {
    this.#config = config
    this.redis = new Redis(redisOptions(config, purpose))
    this.redis.setMaxListeners(0)
    this.redis.on('error', (error: unknown) => this.#failed(error))
    this.redis.on('connecting', () => (this.#problemIsOld = true))
    this.redis.on('ready', () => {
      this.#problem = 'the connection was closed'
      this.#problemIsOld = true
    })
    // ioredis gives up when a connection cannot even be tried. We do not.
    this.redis.on('end', () => this.#startAgain())
  }

  /** `host:port`, for the log. */
  get address(): string {
    return `${this.#config.url.hostname}:${this.#config.url.port || '6379'}`
  }

  /** Whether it was closed by us, for good. */
  get closed(): boolean {
    return this.#closed
  }

  /** Why it is down, or was the last time. */
  get problem(): string {
    return this.#problem
  }

  /** Runs a script; strings in its answer are bytes. */
  async run(script: ScriptName, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    const command = (this.redis as unknown as Record<string, Command>)[`${script}Buffer`] as Command
    return this.answer(command.call(this.redis, keys.length, keys, args))
  }

  /** The answer to a command; whatever goes wrong means that the store cannot be used now. */
  async answer<T>(command: Promise<T>): Promise<T> {
    try {
      return await command
    } catch (error) {
      // The text only: ioredis hangs the command with its arguments on its errors.
      throw this.unavailable(this.redis.status === 'ready' ? reason(error) : this.#problem)
    }
  }

  unavailable(why: string): GatewayError {
    return new GatewayError('ERR_STORE_UNAVAILABLE', `the session store at ${this.address} is not available: ${why}`)
  }

  /** Resolves when the connection is usable, at once when it is. */
  async ready(): Promise<void> {
    if (this.redis.status === 'ready') return
    await new Promise<void>((resolve, reject) => {
      const settle = () => {
        clearTimeout(timer)
        this.redis.off('ready', settle)
        if (this.redis.status === 'ready') resolve()
        else reject(this.unavailable(this.#problem))
      }
      const timer = setTimeout(settle, this.#config.timeoutMs)
      this.redis.on('ready', settle)
    })
  }

  /** Drops the connection, to have another one. */
  renew(): void {
    // While it is being opened ioredis would take this for the end.
    if (this.redis.status === 'ready' || this.redis.status === 'connect') this.redis.disconnect(true)
  }

  async close(): Promise<void> {
    this.#closed = true
    const { status } = this.redis
    this.redis.disconnect()
    if (status === 'end' || status === 'reconnecting') return
    await new Promise<void>((resolve) => {
      this.redis.once('end', resolve)
      setTimeout(resolve, 2 * disconnectTimeout).unref()
    })
  }

  #failed(error: unknown): void {
    // The first thing that goes wrong with a connection explains the others.
    if (this.#problemIsOld) this.#problem = reason(error)
    this.#problemIsOld = false
    // A refused SELECT would leave us in database 0, among what belongs to others.
    if (error instanceof Error && error.name === 'ReplyError') this.renew()
  }

  #startAgain(): void {
    if (this.#closed) return
    setTimeout(() => {
      if (!this.#closed) this.redis.connect().catch(() => {})
    }, longestRetryDelay).unref()
  }
}

/** One line when the store goes, one when it comes back, none for each attempt. */
export function reportAvailability(connection: RedisConnection, log: Log): void {
  const { redis, address: store } = connection
  let available: boolean | undefined
  const gone = () => {
    if (available === false || connection.closed) return
    available = false
    log.warn('the session store cannot be reached', { store, reason: connection.problem })
  }
  redis.on('ready', () => {
    if (available === undefined) void warnOfEviction(connection, log)
    if (available !== true) log.info('the session store answers', { store })
    available = true
  })
  redis.on('close', gone)
  redis.on('end', gone)
}

/** Everything here expires by itself, so any policy but `noeviction` lets Redis forget a logout before its time. */
async function warnOfEviction(connection: RedisConnection, log: Log): Promise<void> {
  const memory = await connection.redis.info('memory').catch(() => '')
  const policy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1]
  if (policy === undefined || policy === 'noeviction' || /^maxmemory:0\s/m.test(memory)) return
  log.warn('Redis may evict sessions and logouts when it is full: set its maxmemory-policy to noeviction', {
    store: connection.address,
    maxmemory_policy: policy,
  })
}

function redisOptions(config: RedisStoreConfig, purpose: string): Omit<RedisOptions, 'replyMapping'> {
  const { url, timeoutMs } = config
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const isAddress = host.includes(':') || /^[\d.]+$/.test(host)
  const tls = { ...(config.ca !== undefined && { ca: config.ca }), ...(!isAddress && { servername: host }) }
  return {
    host,
    port: Number(url.port || 6379),
    db: Number(url.pathname.slice(1) || 0),
    ...(config.username !== undefined && { username: config.username }),
    ...(config.password !== undefined && { password: config.password }),
    ...(url.protocol === 'rediss:' && { tls }),
    connectionName: `gatehouse-${purpose}`,
    disableClientInfo: true,
    scripts: Object.fromEntries(Object.entries(scripts).map(([name, lua]) => [name, { lua: lua.trim() }])),

    connectTimeout,
    disconnectTimeout,
    commandTimeout: timeoutMs,
    // A server that hangs keeps its connections: without this, what we send to it would pile up here.
    socketTimeout: timeoutMs,
    retryStrategy: (times) => Math.min(50 * 2 ** (times - 1), longestRetryDelay) + Math.random() * 50,
    maxLoadingRetryTime: 500,

    // Nothing waits for a connection, and nothing is sent twice: what was not answered is refused when the connection breaks.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,

    // After a failover, the old primary is a replica.
    reconnectOnError: (error) => error.message.includes('READONLY'),
  }
}
