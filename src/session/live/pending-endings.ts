import { BoundedMap } from '../../core/bounded-map.ts'
import { reason } from '../../core/errors.ts'
import type { SessionKey, SidTag, SubTag } from '../../core/names.ts'
import { Repeating } from '../../core/repeating.ts'
import type { Log } from '../../observe/log.ts'

const maxProven = 10_000
/** Any client can cause unproven endings, so this limit is lower. */
const maxUnproven = 1_000

const pauseMs = 1_000
const batchSize = 20

/** One session, or all sessions of one sid or sub. */
export type EndingScope = SessionKey | SidTag | SubTag

export interface PendingEnding {
  /** Two endings with the same name are the same order. */
  readonly name: string
  readonly scope: EndingScope
  /** Sessions that were created later are not part of the order. In ms since the epoch. */
  readonly createdUntil: number
  /** Whether the order is signed, or is about a session in memory. A client may send any cookie. */
  readonly isProven: boolean
  /** Called until it succeeds. */
  readonly run: () => Promise<unknown>
}

/**
 * Endings that the store has not accepted. Not every caller repeats its order after the error, so
 * this process does, until the store accepts it. Until then it serves no session in their scope.
 */
export class PendingEndings {
  readonly #proven: BoundedMap<string, PendingEnding>
  readonly #unproven: BoundedMap<string, PendingEnding>
  readonly #byScope = new Map<EndingScope, Map<string, PendingEnding>>()
  readonly #log: Log
  readonly #trying = new Repeating('pending_endings', () => this.#try())
  #hasWarned = false

  constructor(log: Log) {
    this.#log = log
    const dispose = (ending: PendingEnding, _name: string, why: string) => {
      this.#removeFromScope(ending)
      if (why === 'evict') this.#warnOnce()
    }
    this.#proven = new BoundedMap('pending_endings', maxProven, { dispose })
    this.#unproven = new BoundedMap('pending_endings_unproven', maxUnproven, { dispose })
  }

  /**
   * Whether an ending applies to a session in one of these scopes. `createdAt`: in ms since the
   * epoch.
   */
  covers(createdAt: number, ...scopes: readonly EndingScope[]): boolean {
    if (this.#byScope.size === 0) return false
    return scopes.some((scope) =>
      [...(this.#byScope.get(scope)?.values() ?? [])].some(({ createdUntil }) => createdAt <= createdUntil),
    )
  }

  get isEmpty(): boolean {
    return this.#byScope.size === 0
  }

  add(ending: PendingEnding): void {
    const { name } = ending
    const pending = this.#proven.get(name) ?? this.#unproven.get(name) ?? ending
    const endings = pending.isProven ? this.#proven : this.#unproven
    // Deleted first, because the order of insertion is the order of the attempts.
    endings.delete(name)
    endings.set(name, pending)
    const ofScope = this.#byScope.get(pending.scope) ?? new Map<string, PendingEnding>()
    this.#byScope.set(pending.scope, ofScope.set(name, pending))
    this.#trying.wakeIn(pauseMs)
  }

  /** The store has accepted the order with this name. */
  complete(name: string): void {
    this.#proven.delete(name)
    this.#unproven.delete(name)
  }

  /** Drops all endings, because the process stops. */
  clear(): void {
    this.#proven.clear()
    this.#unproven.clear()
  }

  #removeFromScope({ name, scope }: PendingEnding): void {
    const endings = this.#byScope.get(scope)
    endings?.delete(name)
    if (endings?.size === 0) this.#byScope.delete(scope)
  }

  #warnOnce(): void {
    if (this.#hasWarned) return
    this.#hasWarned = true
    this.#log.error('session.endings_forgotten', {
      hint: 'Too many endings wait for the store, so the oldest ones were dropped. Repeat them when the store is available.',
    })
  }

  /** @returns a pause while endings wait */
  async #try(): Promise<number | undefined> {
    await this.#runAll(this.#proven)
    await this.#runAll(this.#unproven)
    if (!this.isEmpty) return pauseMs
    this.#hasWarned = false
    return undefined
  }

  /**
   * Runs the endings in batches, the longest waiting first. Stops when a whole batch fails, because
   * then the store is still unavailable.
   */
  async #runAll(endings: BoundedMap<string, PendingEnding>): Promise<void> {
    const waiting = [...endings.values()].toReversed()
    for (let at = 0; at < waiting.length; at += batchSize) {
      const outcomes = await Promise.allSettled(waiting.slice(at, at + batchSize).map((ending) => this.#run(ending)))
      if (!outcomes.some(({ status }) => status === 'fulfilled')) return
    }
  }

  async #run(ending: PendingEnding): Promise<void> {
    try {
      await ending.run()
      this.complete(ending.name)
    } catch (error) {
      // It goes to the end. Endings that were cleared, because the process stops, are not added.
      if (this.covers(ending.createdUntil, ending.scope)) this.add(ending)
      this.#log.debug('session.ending_pending', { reason: reason(error) })
      throw error
    }
  }
}
