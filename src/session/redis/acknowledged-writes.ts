import type { Redis } from 'ioredis'
import { reason } from '../../core/errors.ts'
import type { Log } from '../../observe/log.ts'
import type { RedisConnection } from './connection.ts'
import type { ScriptName } from './scripts.ts'

/** How long one `WAIT` may block the connection, in ms: scripts of other endings are behind it. */
const longestWait = 100

/** The result of a script, and when replicas have it too. */
export interface AcknowledgedWrite {
  readonly answer: unknown
  /**
   * Resolves when enough replicas have it. Rejects with `ERR_STORE_UNAVAILABLE` when they do not in
   * time.
   */
  readonly acknowledged: Promise<void>
}

interface Waiting {
  /**
   * The socket over which the script ran. After another one is opened, Redis does not know which
   * write is meant.
   */
  readonly stream: unknown
  /** On the clock of `performance`. */
  readonly until: number
  resolve(): void
  reject(error: Error): void
}

/**
 * Scripts whose writes have to be in several replicas before they count. They run over a connection
 * of their own, because `WAIT` blocks all commands behind it. One `WAIT` at a time is sent to each
 * server. It covers all writes of the connection before it.
 */
export class AcknowledgedWrites {
  readonly #connection: RedisConnection
  readonly #replicas: number
  readonly #log: Log
  readonly #waiting = new Map<Redis, Set<Waiting>>()
  #isShort = false

  constructor(connection: RedisConnection, replicas: number, log: Log) {
    this.#connection = connection
    this.#replicas = replicas
    this.#log = log
  }

  /**
   * Runs a script on the server that holds a hash tag. `until` is the end of the wait, on the clock
   * of `performance`.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   */
  async run(
    tag: string,
    script: ScriptName,
    { keys, args, until }: { keys: readonly string[]; args: readonly (string | number)[]; until: number },
  ): Promise<AcknowledgedWrite> {
    const server = this.#connection.serverOf(tag)
    const { stream } = server
    const answer = await this.#connection.runAt(server, script, keys, args)
    const acknowledged = new Promise<void>((resolve, reject) => this.#wait(server, { stream, until, resolve, reject }))
    // An earlier step of the same operation may fail first.
    acknowledged.catch(() => {})
    return { answer, acknowledged }
  }

  #wait(server: Redis, waiting: Waiting): void {
    const others = this.#waiting.get(server)
    if (others !== undefined) {
      others.add(waiting)
      return
    }
    const all = new Set([waiting])
    this.#waiting.set(server, all)
    void this.#ask(server, all).finally(() => this.#waiting.delete(server))
  }

  async #ask(server: Redis, all: Set<Waiting>): Promise<void> {
    while (all.size > 0) {
      for (const waiting of all)
        if (waiting.stream !== server.stream) this.#refuse(all, [waiting], 'the connection was closed')
      const asked = [...all]
      if (asked.length === 0) return
      const patience = Math.min(longestWait, this.#connection.timeoutMs / 4)
      try {
        const count = await server.wait(this.#replicas, Math.ceil(patience))
        if (count >= this.#replicas) this.#settle(all, asked)
        else {
          const now = performance.now()
          const late = asked.filter(({ until }) => now + patience > until)
          if (late.length > 0) this.#tooFew(count)
          this.#refuse(all, late, `${count} of ${this.#replicas} replicas have acknowledged`)
        }
      } catch (error) {
        this.#refuse(all, asked, reason(error))
      }
    }
  }

  #settle(all: Set<Waiting>, asked: readonly Waiting[]): void {
    if (this.#isShort) this.#log.info('store.endings_acknowledged', { store: this.#connection.address })
    this.#isShort = false
    for (const waiting of asked) {
      all.delete(waiting)
      waiting.resolve()
    }
  }

  #refuse(all: Set<Waiting>, refused: readonly Waiting[], why: string): void {
    for (const waiting of refused) {
      all.delete(waiting)
      waiting.reject(this.#connection.unavailable(why))
    }
  }

  #tooFew(count: number): void {
    if (!this.#isShort)
      this.#log.error('store.endings_not_acknowledged', {
        store: this.#connection.address,
        acknowledged: count,
        wanted: this.#replicas,
        hint: 'Check the replicas of Redis and session.store.redis.replicas_acknowledge. Logouts get 503 until enough replicas acknowledge.',
      })
    this.#isShort = true
  }
}
