import { Redis } from 'ioredis'
import { CommandRejected, type Deadline, type RedisConnection } from './redis-connection.ts'

/** A session in the reply of the script `read`. Without a session, `sealed` is `null`. */
export type FoundSession = readonly [
  sealed: Buffer | null,
  version: Buffer | null,
  run: Buffer | null,
  ttl: number,
  begun_at: Buffer | null,
]

interface WaitingRead {
  readonly place: string
  readonly resolve: (found: FoundSession | Promise<FoundSession>) => void
  readonly reject: (error: unknown) => void
}

/**
 * How many sessions one command reads: meanwhile Redis does nothing else, and with many thousands
 * the time limit of the first would be over before the last is prepared.
 */
export const maxReadsTogether = 64
/** How long commands are not combined after Redis has rejected one because of its keys, in ms. */
const separateMs = 60_000

/**
 * Reads sessions for many requests. The reads of one turn of the event loop are one command, sent
 * after the events that have arrived were handled. Its time limit begins then, so a long turn does
 * not count.
 *
 * In a Cluster, the keys of a command must lie in one slot, so each read is a command, and all are
 * sent in one write.
 */
export class SharedReads {
  readonly #connection: RedisConnection
  #waiting: WaitingRead[] = []
  /** From when on one command may have keys of several slots, on the clock of `performance`. */
  #combinesFrom: number

  constructor(connection: RedisConnection) {
    this.#connection = connection
    this.#combinesFrom = connection.redis instanceof Redis ? 0 : Infinity
  }

  /** Reads the session at a key of Redis; throws `ERR_STORE_UNAVAILABLE`. */
  read(place: string): Promise<FoundSession> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.push({ place, resolve, reject }) === 1) setImmediate(() => this.#send())
    })
  }

  #send(): void {
    const reads = this.#waiting.slice(0, maxReadsTogether)
    this.#waiting = this.#waiting.slice(maxReadsTogether)
    if (this.#waiting.length > 0) setImmediate(() => this.#send())
    if (performance.now() >= this.#combinesFrom) void this.#sendTogether(reads)
    else void this.#sendEach(reads)
  }

  async #sendTogether(reads: readonly WaitingRead[]): Promise<void> {
    const inTime = this.#connection.deadline()
    try {
      const found = await this.#found(reads.map(({ place }) => place))
      for (const [index, { resolve }] of reads.entries()) resolve(found[index] as FoundSession)
    } catch (error) {
      if (error instanceof CommandRejected && reads.length > 1) await this.#repeatEach(reads, inTime)
      else for (const { reject } of reads) reject(error)
    }
  }

  /**
   * Redis may reject a command because of one of its keys, so each session is read alone. When no
   * read fails, Redis may not accept the keys in one command: some services distribute the slots
   * behind one address. Then commands are not combined for a while.
   */
  async #repeatEach(reads: readonly WaitingRead[], inTime: Deadline): Promise<void> {
    const outcomes = await Promise.allSettled(this.#sendEach(reads, inTime))
    if (outcomes.every(({ status }) => status === 'fulfilled')) this.#combinesFrom = performance.now() + separateMs
  }

  #sendEach(reads: readonly WaitingRead[], inTime?: Deadline): readonly Promise<FoundSession>[] {
    return this.#connection.inOneWrite(() =>
      reads.map(({ place, resolve }) => {
        const found = this.#found([place]).then(([session]) => session as FoundSession)
        const read = inTime ? inTime(found) : found
        resolve(read)
        return read
      }),
    )
  }

  async #found(places: readonly string[]): Promise<readonly FoundSession[]> {
    const found = (await this.#connection.run('read', places, [])) as readonly FoundSession[]
    if (found.length === places.length) return found
    throw this.#connection.unavailable(`${found.length} sessions in the reply to a read of ${places.length}`)
  }
}
