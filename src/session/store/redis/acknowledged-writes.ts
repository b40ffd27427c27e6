import { setTimeout as wait } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { reason } from '../../../core/errors.ts'
import type { Log } from '../../../observe/log.ts'
import { CommandRejected, type RedisConnection } from './redis-connection.ts'
import type { ScriptName } from './scripts.ts'

/** How long one `WAIT` may block the connection, in ms: the scripts of other endings wait too. */
const longestWaitMs = 100
/** The pause until the node of a slot is looked for again, in ms. */
const lookAgainMs = 20

/** The reply of a script, and a promise that replicas have its writes too. */
export interface AcknowledgedWrite {
  readonly reply: unknown
  /**
   * Resolves when enough replicas have the writes; rejects with `ERR_STORE_UNAVAILABLE` if too
   * late.
   */
  readonly acknowledged: Promise<void>
}

interface Waiting {
  /** The socket that sent the script: `WAIT` over another one does not cover the write. */
  readonly stream: unknown
  /** On the clock of `performance`. */
  readonly until: number
  resolve(): void
  reject(error: Error): void
}

/**
 * Runs scripts whose writes must be in several replicas before they count, over a connection of
 * their own, because `WAIT` blocks it. Each server gets one `WAIT` at a time, for all earlier
 * writes.
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
   * Runs a script at the server of a hash tag. `until` ends the wait, on the clock of
   * `performance`.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   */
  async run(
    tag: string,
    script: ScriptName,
    { keys, args, until }: { keys: readonly string[]; args: readonly (string | number)[]; until: number },
  ): Promise<AcknowledgedWrite> {
    let server = this.#connection.serverOf(tag)
    let { stream } = server
    const send = () => this.#connection.runAt(server, script, keys, args)
    const reply = await send().catch(async (error: unknown) => {
      if (!isMoved(error)) throw error
      // The server has not run the script: another one has taken over its slots.
      server = await this.#successor(server, tag, { key: keys[0] ?? tag, until })
      stream = server.stream
      return send()
    })
    const acknowledged = new Promise<void>((resolve, reject) => this.#wait(server, { stream, until, resolve, reject }))
    // An earlier step of the same operation may fail first.
    acknowledged.catch(() => {})
    return { reply, acknowledged }
  }

  /**
   * The server that has taken over a hash tag. ioredis follows the redirection of a read, and then
   * knows it. A node that does not know it yet may make ioredis forget it once more, or redirect
   * the read back.
   */
  async #successor(former: Redis, tag: string, { key, until }: { key: string; until: number }): Promise<Redis> {
    for (;;) {
      const found = await this.#ownerOf(tag, key).catch((error: unknown) => error)
      if (found instanceof Redis && found !== former) return found
      if (performance.now() >= until)
        throw found instanceof Redis ? this.#connection.unavailable('the node of this slot is unknown') : found
      await wait(lookAgainMs)
    }
  }

  async #ownerOf(tag: string, key: string): Promise<Redis> {
    await this.#connection.reply(this.#connection.redis.exists(key))
    return this.#connection.serverOf(tag)
  }

  #wait(server: Redis, waiting: Waiting): void {
    const running = this.#waiting.get(server)
    if (running !== undefined) {
      running.add(waiting)
      return
    }
    const all = new Set([waiting])
    this.#waiting.set(server, all)
    void this.#waitAt(server, all).finally(() => this.#waiting.delete(server))
  }

  async #waitAt(server: Redis, all: Set<Waiting>): Promise<void> {
    while (all.size > 0) {
      for (const waiting of all)
        if (waiting.stream !== server.stream) this.#reject(all, [waiting], 'the connection was closed')
      const covered = [...all]
      if (covered.length === 0) return
      const waitMs = Math.min(longestWaitMs, this.#connection.timeoutMs / 4)
      try {
        const count = await server.wait(this.#replicas, Math.ceil(waitMs))
        if (count >= this.#replicas) this.#resolve(all, covered)
        else {
          const now = performance.now()
          const late = covered.filter(({ until }) => now + waitMs > until)
          if (late.length > 0) this.#logTooFew(count)
          this.#reject(all, late, `${count} of ${this.#replicas} replicas have acknowledged`)
        }
      } catch (error) {
        this.#reject(all, covered, reason(error))
      }
    }
  }

  #resolve(all: Set<Waiting>, covered: readonly Waiting[]): void {
    if (this.#isShort) this.#log.info('store.endings_acknowledged', { store: this.#connection.address })
    this.#isShort = false
    for (const waiting of covered) {
      all.delete(waiting)
      waiting.resolve()
    }
  }

  #reject(all: Set<Waiting>, rejected: readonly Waiting[], problem: string): void {
    for (const waiting of rejected) {
      all.delete(waiting)
      waiting.reject(this.#connection.unavailable(problem))
    }
  }

  #logTooFew(count: number): void {
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

/** Whether a node of a Cluster has replied that another one has the slot. */
function isMoved(error: unknown): boolean {
  return error instanceof CommandRejected && /: MOVED \d/.test(error.message)
}
