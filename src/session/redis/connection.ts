import { type Cluster, Redis } from 'ioredis'
import { GatewayError, reason } from '../../core/errors.ts'
import type { Log } from '../../observe/log.ts'
import { disconnectTimeout, longestSilence, retryDelay } from './options.ts'
import { scripts, type ScriptName } from './scripts.ts'
import { afterSocketsAreRead } from './timeouts.ts'

type Argument = string | number | Buffer
type Command = (...args: (Argument | readonly Argument[])[]) => Promise<unknown>

/**
 * For an operation of several steps: rejects when the time is up before a step ends. `until` is on
 * the clock of `performance`.
 */
export interface Deadline {
  <T>(step: Promise<T>): Promise<T>
  readonly until: number
}

/** The slot in which the processes find each other. */
export const meetingTag = 'notices'

/**
 * A connection that comes back by itself, for ever, and never queues: while it is down every
 * command is refused at once.
 */
export class RedisConnection {
  readonly redis: Redis | Cluster
  /** Where it leads, for the log. */
  readonly address: string
  readonly timeoutMs: number
  #problem = 'not connected yet'
  #problemIsOld = true
  #sentinelProblem = ''
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
    redis.on('error', (error: unknown) => this.failed(error))
    redis.on('sentinelError', (error: unknown) => (this.#sentinelProblem = reason(error)))
    redis.on('connecting', () => (this.#problemIsOld = true))
    redis.on('ready', () => {
      this.#problem = 'the connection was closed'
      this.#problemIsOld = true
      this.#attempts = 0
      this.#downSince = undefined
    })
    const markDown = () => (this.#downSince ??= performance.now())
    redis.on('close', markDown)
    redis.on('end', markDown)
    // ioredis gives up when a connection cannot even be tried. We do not.
    redis.on('end', () => this.#startAgain())
  }

  /** The servers behind it that hold something of their own. */
  get servers(): readonly Redis[] {
    return this.redis instanceof Redis ? [this.redis] : []
  }

  /**
   * All servers that hold something of their own. @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   * when they are not known
   */
  primaries(): readonly Redis[] {
    return this.redis instanceof Redis ? [this.redis] : []
  }

  /**
   * The server that holds a hash tag. @throws {GatewayError} `ERR_STORE_UNAVAILABLE` when it is not
   * known
   */
  serverOf(_tag: string): Redis {
    if (this.redis instanceof Redis) return this.redis
    throw this.unavailable(this.#problem)
  }

  /** Hash tags: one in each of these servers, that of the meeting place first. */
  get anchors(): readonly string[] {
    return [meetingTag]
  }

  /**
   * Calls back when another server has taken the place of one of several. (Of one alone, the
   * connection ends.)
   */
  onTakeover(_listener: () => void): void {}

  /**
   * Whether what a script publishes is certain to reach every process that listens at the meeting
   * place.
   */
  get publishesEverywhere(): boolean {
    return true
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

  /**
   * The same at one server, without redirections. It sends one command, so that the script never
   * runs later than it was sent.
   */
  async runAt(server: Redis, script: ScriptName, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    return this.answer(server.callBuffer('EVAL', scripts[script].trim(), keys.length, ...keys, ...args))
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

  /**
   * For what takes several steps: none of them is waited for when the time is up, and none is begun
   * then.
   */
  deadline(): Deadline {
    const until = performance.now() + this.timeoutMs
    const intime = async <T>(step: Promise<T>): Promise<T> => {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<never>((_, reject) => {
        const refuse = () => reject(this.unavailable(`no answer within ${this.timeoutMs} ms`))
        timer = setTimeout(() => afterSocketsAreRead(refuse), Math.max(0, until - performance.now())).unref()
      })
      try {
        return await Promise.race([step, late])
      } finally {
        clearTimeout(timer)
      }
    }
    return Object.assign(intime, { until })
  }

  /**
   * Resolves when the connection is usable. Waits for a first attempt and for a short interruption,
   * within the time limit.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`, at once when the connection has been down for
   * {@link longestSilence}
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
        else reject(this.unavailable(this.#problem))
      }
      const waitOrSettle = () => {
        clearTimeout(timer)
        const until = Math.min(end, (this.#downSince ?? Infinity) + longestSilence)
        const remaining = until - performance.now()
        if (remaining <= 0) settle()
        else timer = setTimeout(() => afterSocketsAreRead(settle), remaining)
      }
      redis.on('ready', settle).on('close', waitOrSettle).on('end', waitOrSettle)
      waitOrSettle()
    })
  }

  /** Drops the connection, to have another one. */
  renew(): void {
    // While it is being opened ioredis would take this for the end.
    if (this.redis.status === 'ready' || this.redis.status === 'connect') this.redis.disconnect(true)
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    const { status } = this.redis
    this.redis.disconnect()
    if (status === 'end' || status === 'reconnecting') return
    await new Promise<void>((resolve) => {
      const late = setTimeout(resolve, 2 * disconnectTimeout)
      this.redis.once('end', () => {
        clearTimeout(late)
        resolve()
      })
    })
  }

  protected failed(error: unknown): void {
    // The first thing that goes wrong with a connection explains the others.
    if (this.#problemIsOld) this.#problem = this.#explained(error)
    this.#problemIsOld = false
    // A refused SELECT would leave us in database 0, among what belongs to others.
    if (error instanceof Error && error.name === 'ReplyError') this.renew()
  }

  #explained(error: unknown): string {
    const text = reason(error)
    if (!text.startsWith('All sentinels are unreachable')) return text
    const problem = this.#sentinelProblem
    if (problem.endsWith('invalid reply: null')) return 'the Sentinels do not know a primary of this name'
    // ioredis knows more, and keeps it.
    return problem.endsWith('Connection is closed.')
      ? `${problem} It is away, or the TLS settings do not fit.`
      : problem
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
 * How long a connection has to last, in ms, before an outage is over: a failover may take more than
 * one.
 */
const settlingTime = 1_000

/** What the operator can do about it, where Redis says what is the matter. */
function hintOn(problem: string): string | undefined {
  if (problem.startsWith('NOAUTH')) return 'this Redis wants a password: set session.store.redis.password'
  if (problem.startsWith('WRONGPASS')) return 'check password and username in session.store.redis'
  if (problem.startsWith('NOPERM')) return 'give the Redis user what docs/configuration.md#redis says'
  return undefined
}

/**
 * One line when the store goes, one when it is back to stay, none for each attempt. A store that
 * was never there gets a second line when `whySchemeIsWrong` finds the reason in the scheme of its
 * URL.
 */
export function reportAvailability(
  connection: RedisConnection,
  log: Log,
  whySchemeIsWrong: (problem: string) => Promise<string | undefined>,
): void {
  const { redis, address: store } = connection
  let available: boolean | undefined
  let settling: NodeJS.Timeout | undefined
  redis.once('ready', () => void warnOfEviction(connection, log))
  const back = () => {
    available = true
    log.info('store.available', { store })
  }
  const gone = () => {
    clearTimeout(settling)
    if (available === false || connection.closed) return
    if (available === undefined)
      void whySchemeIsWrong(connection.problem).then((hint) => {
        if (hint !== undefined && !connection.closed) log.warn('store.wrong_scheme', { store, hint })
      })
    available = false
    const hint = hintOn(connection.problem)
    log.warn('store.unavailable', { store, reason: connection.problem, ...(hint === undefined ? {} : { hint }) })
  }
  redis.on('ready', () => {
    clearTimeout(settling)
    if (available === undefined) back()
    else if (!available) settling = setTimeout(back, settlingTime).unref()
  })
  redis.on('close', gone)
  redis.on('end', gone)
}

/**
 * Everything here expires by itself, so any policy but `noeviction` lets Redis forget a logout
 * before its time.
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
    hint: 'when Redis is full it forgets sessions and logouts: set its maxmemory-policy to noeviction',
  })
}
