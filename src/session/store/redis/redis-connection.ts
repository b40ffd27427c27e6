import { type Cluster, Redis } from 'ioredis'
import type { RedisStoreConfig } from '../../../config/model/session.ts'
import { asHint } from '../../../core/connection-advice.ts'
import { GatewayError, reason } from '../../../core/errors.ts'
import type { Log } from '../../../observe/log.ts'
import { redisAdvice, type RedisProblem } from './advice.ts'
import { afterSocketsAreRead } from './ioredis-corrections.ts'
import { disconnectTimeoutMs, longestSilenceMs, needsAnotherServer, renewCredentials, retryDelay } from './options.ts'
import { scripts, type ScriptName } from './scripts.ts'

type Argument = string | number | Buffer
type Command = (...args: (Argument | readonly Argument[])[]) => Promise<unknown>

/** The time limit of several steps: rejects when it is over. `until` is by `performance`. */
export interface Deadline {
  <T>(step: Promise<T>): Promise<T>
  readonly until: number
}

/** The hash tag whose slot decides which server the notices go through. */
export const noticesTag = 'notices'

interface Outage {
  readonly text: string
  readonly problem?: RedisProblem
}

/** Redis has replied to a command with an error. */
export class CommandRejected extends GatewayError {}

/** Whether the servers do what the gateway relies on. See `StoreFitness`. */
interface Fitness {
  readonly pending: Promise<unknown> | undefined
  readonly fault: string | undefined
}

export function isErrorReply(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError'
}

/**
 * A connection that reconnects by itself while the process lives. It never queues: while it is
 * down, every command is rejected at once.
 */
export class RedisConnection {
  readonly redis: Redis | Cluster
  /** The address of the server, for the log. */
  readonly address: string
  readonly timeoutMs: number
  /** Absent: it does not matter, or another connection shows it. */
  fitness: Fitness | undefined
  /** Called with each error that a server replies. */
  onRejection: ((why: string) => void) | undefined
  #outage: Outage = { text: 'not connected yet' }
  /** Whether the outage is about an earlier connection, so that the next error replaces it. */
  #isOutageOld = true
  #sentinelError = ''
  #attempts = 0
  #closed = false
  /** Since when every attempt to connect has failed, on the clock of `performance`. */
  #downSince: number | undefined

  constructor(
    redis: Redis | Cluster,
    { address, timeoutMs }: { readonly address: string; readonly timeoutMs: number },
  ) {
    this.redis = redis
    this.address = address
    this.timeoutMs = timeoutMs
    redis.setMaxListeners(0)
    redis.on('error', (error: unknown) => {
      tolerateFurtherErrors(redis)
      this.failed(error)
    })
    redis.on('sentinelError', (error: unknown) => (this.#sentinelError = reason(error)))
    redis.on('connecting', () => (this.#isOutageOld = true))
    redis.on('ready', () => {
      this.#outage = { text: 'the connection was closed' }
      this.#isOutageOld = true
      this.#attempts = 0
      this.#downSince = undefined
    })
    const markDown = () => (this.#downSince ??= performance.now())
    redis.on('close', markDown)
    redis.on('end', markDown)
    // ioredis stops when it cannot even try to connect.
    redis.on('end', () => this.#startAgain())
  }

  /** The primaries that are connected now. */
  get servers(): readonly Redis[] {
    return this.redis instanceof Redis ? [this.redis] : []
  }

  /** All primaries; throws `ERR_STORE_UNAVAILABLE` when they are unknown. */
  primaries(): readonly Redis[] {
    return this.redis instanceof Redis ? [this.redis] : []
  }

  /** The server of a hash tag; throws `ERR_STORE_UNAVAILABLE` when it is unknown. */
  serverOf(_tag: string): Redis {
    if (this.redis instanceof Redis) return this.redis
    throw this.unavailable(this.why)
  }

  /** One hash tag for each primary. The first one is that of the notices. */
  get anchors(): readonly string[] {
    return [noticesTag]
  }

  /** Calls back when a Cluster has another primary. A single one gets a new connection. */
  onTakeover(_listener: () => void): void {}

  /** Whether a message that a script publishes reaches every process for certain. */
  get publishesEverywhere(): boolean {
    return true
  }

  /** The next connection authenticates with the credentials of this configuration. */
  renewCredentials(config: RedisStoreConfig): void {
    renewCredentials(this.redis, config)
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Why it is down, or why it was down the last time. */
  get why(): string {
    return this.#outage.text
  }

  /** The known problem behind `why`. Absent: all others. */
  get problem(): RedisProblem | undefined {
    return this.#outage.problem
  }

  /** Runs a script. Strings in the reply are buffers. */
  async run(script: ScriptName, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    const command = (this.redis as unknown as Record<string, Command>)[`${script}Buffer`] as Command
    return this.reply(command.call(this.redis, keys.length, keys, args))
  }

  /** Sends the commands of a function in one write to each server. */
  inOneWrite<T>(send: () => T): T {
    // While it is not connected, ioredis has no stream yet, or an earlier one.
    const streams = this.servers.flatMap(({ status, stream }) => (status === 'ready' ? stream : []))
    for (const stream of streams) stream.cork()
    try {
      return send()
    } finally {
      for (const stream of streams) stream.uncork()
    }
  }

  /** Runs a script at one server, as one command: it does not run after the connection is lost. */
  async runAt(server: Redis, script: ScriptName, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    return this.reply(server.callBuffer('EVAL', scripts[script].trim(), keys.length, ...keys, ...args))
  }

  /**
   * Waits for the reply to a command, and for the trial of the server.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE` for any error, and for a server that is not fit;
   * a {@link CommandRejected} when the reply is an error
   */
  async reply<T>(command: Promise<T>): Promise<T> {
    try {
      const reply = await command
      if (this.fitness?.pending !== undefined) await this.fitness.pending
      if (this.fitness?.fault === undefined) return reply
    } catch (error) {
      // Only the text, because ioredis attaches the command with its arguments to its errors.
      if (isErrorReply(error)) this.#noteRejection(reason(error))
      const unavailable = this.unavailable(this.redis.status === 'ready' ? reason(error) : this.why)
      throw isErrorReply(error) ? new CommandRejected(unavailable.code, unavailable.message) : unavailable
    }
    throw this.unavailable(this.fitness.fault)
  }

  /** A server that rejects writes is left at once: its words explain the end of the connection. */
  #noteRejection(why: string): void {
    if (needsAnotherServer.test(why) && this.#isOutageOld) {
      this.#outage = { text: why }
      this.#isOutageOld = false
    }
    this.onRejection?.(why)
  }

  unavailable(why: string): GatewayError {
    return new GatewayError('ERR_STORE_UNAVAILABLE', `the session store at ${this.address} is not available: ${why}`)
  }

  /** Starts the time limit of an operation with several steps. */
  deadline(): Deadline {
    const until = performance.now() + this.timeoutMs
    const inTime = async <T>(step: Promise<T>): Promise<T> => {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<never>((_, reject) => {
        const rejectLate = () => reject(this.unavailable(`no reply within ${this.timeoutMs} ms`))
        timer = setTimeout(() => afterSocketsAreRead(rejectLate), Math.max(0, until - performance.now())).unref()
      })
      try {
        return await Promise.race([step, late])
      } finally {
        clearTimeout(timer)
      }
    }
    return Object.assign(inTime, { until })
  }

  /**
   * Waits until the connection is usable, through the first attempt or a short interruption.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE` when the time limit is over, or the connection
   * has been down for {@link longestSilenceMs}
   */
  async ready(): Promise<void> {
    const { redis, timeoutMs } = this
    if (redis.status === 'ready') return
    const end = performance.now() + timeoutMs
    await new Promise<void>((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined
      const settle = () => {
        clearTimeout(timer)
        redis.off('ready', settle).off('close', waitOrSettle).off('end', waitOrSettle)
        if (redis.status === 'ready') resolve()
        else reject(this.unavailable(this.why))
      }
      const waitOrSettle = () => {
        clearTimeout(timer)
        const until = Math.min(end, (this.#downSince ?? Infinity) + longestSilenceMs)
        const remaining = until - performance.now()
        if (remaining <= 0) settle()
        else timer = setTimeout(() => afterSocketsAreRead(settle), remaining)
      }
      redis.on('ready', settle).on('close', waitOrSettle).on('end', waitOrSettle)
      waitOrSettle()
    })
  }

  /** Closes the connection and opens another one. */
  renew(): void {
    // While a connection is being opened, ioredis would not reconnect.
    if (this.redis.status === 'ready' || this.redis.status === 'connect') this.redis.disconnect(true)
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    const { status } = this.redis
    // A TLS handshake that is interrupted may emit more than one error.
    tolerateFurtherErrors(this.redis)
    this.redis.disconnect()
    if (status === 'end' || status === 'reconnecting') return
    await new Promise<void>((resolve) => {
      const late = setTimeout(resolve, 2 * disconnectTimeoutMs)
      this.redis.once('end', () => {
        clearTimeout(late)
        resolve()
      })
    })
  }

  protected failed(error: unknown): void {
    // The first error of a connection explains the later ones.
    if (this.#isOutageOld) this.#outage = this.#outageBy(error)
    this.#isOutageOld = false
    // After a rejected SELECT, the connection would use database 0, which may belong to others.
    if (isErrorReply(error)) this.renew()
  }

  /** Explains an error of ioredis, whose messages about Sentinels lack the reason. */
  #outageBy(error: unknown): Outage {
    const text = reason(error)
    if (!text.startsWith('All sentinels are unreachable')) return { text }
    const why = this.#sentinelError
    if (why.endsWith('invalid reply: null'))
      return { text: 'the Sentinels do not know a primary of this name', problem: 'unknown_primary' }
    // ioredis does not pass on the reason.
    const isClosed = why.endsWith('Connection is closed.')
    return { text: isClosed ? `${why} It is unavailable, or the TLS settings do not fit.` : why }
  }

  #startAgain(): void {
    if (this.#closed) return
    this.#attempts += 1
    setTimeout(() => {
      if (!this.#closed) this.redis.connect().catch(() => {})
    }, retryDelay(this.#attempts)).unref()
  }
}

/**
 * ioredis listens for the first error of a socket only, and an error without a listener ends the
 * process. See also `ioredis-corrections.ts`.
 */
function tolerateFurtherErrors(redis: Redis | Cluster): void {
  if (redis instanceof Redis) (redis.stream as Redis['stream'] | undefined)?.once('error', () => {})
}

/** How long a connection must last to end an outage, in ms. A failover may open several. */
const settlingTimeMs = 1_000

/**
 * Logs one line for each outage and its end, but none for each attempt. If the first connection
 * fails, `explainScheme` checks whether the scheme of the URL is the reason.
 */
export function reportAvailability(
  connection: RedisConnection,
  log: Log,
  explainScheme: (why: string) => Promise<string | undefined>,
): void {
  const { redis, address: store } = connection
  let available: boolean | undefined
  let settling: NodeJS.Timeout | undefined
  redis.once('ready', () => void warnOfEviction(connection, log))
  const logAvailable = () => {
    available = true
    log.info('store.available', { store })
  }
  const logUnavailable = () => {
    clearTimeout(settling)
    if (available === false || connection.closed) return
    if (available === undefined)
      void explainScheme(connection.why).then((hint) => {
        if (hint !== undefined && !connection.closed) log.warn('store.wrong_scheme', { store, hint })
      })
    available = false
    const { why, problem } = connection
    const advice = redisAdvice({ why, ...(problem !== undefined && { problem }) })
    log.warn('store.unavailable', { store, reason: why, hint: asHint(advice) })
  }
  redis.on('ready', () => {
    clearTimeout(settling)
    if (available === undefined) logAvailable()
    else if (!available) settling = setTimeout(logAvailable, settlingTimeMs).unref()
  })
  redis.on('close', logUnavailable)
  redis.on('end', logUnavailable)
  const rejected = new Set<string>()
  // The connection stays, so nothing else would say why each sign-in gets 503.
  connection.onRejection = (why) => {
    const kind = rejectionOfAll.exec(why)?.[0]
    // A Cluster moves slots between its nodes.
    const isUsual = kind === 'MOVED' && !(redis instanceof Redis)
    if (kind === undefined || isUsual || available === false || rejected.has(kind)) return
    rejected.add(kind)
    log.warn('store.rejects_commands', { store, reason: why, hint: asHint(redisAdvice({ why })) })
  }
}

/** Errors that are about the server, not about one command. */
const rejectionOfAll = /^(?:MOVED|OOM|MISCONF|NOREPLICAS|NOPERM)\b/

/**
 * All keys of the gateway expire by themselves, so any policy but `noeviction` lets a full Redis
 * delete a tombstone too early.
 */
async function warnOfEviction({ servers, address }: RedisConnection, log: Log): Promise<void> {
  const memories = await Promise.all(servers.map((server) => server.info('memory').catch(() => '')))
  const policies = memories
    .filter((memory) => !/^maxmemory:0\s/m.test(memory))
    .map((memory) => /^maxmemory_policy:(\S+)/m.exec(memory)?.[1])
  const policy = policies.find((policy) => policy !== undefined && policy !== 'noeviction')
  if (policy === undefined) return
  log.warn('store.may_evict', {
    store: address,
    maxmemory_policy: policy,
    hint: 'A full Redis deletes sessions and logouts. Set its maxmemory-policy to noeviction.',
  })
}
