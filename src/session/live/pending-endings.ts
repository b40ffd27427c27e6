import { BoundedMap } from '../../core/bounded-map.ts'
import { reason } from '../../core/errors.ts'
import type { SessionKey, SidTag, SubTag } from '../../core/names.ts'
import { pauses } from '../../core/pauses.ts'
import { Repeating } from '../../core/repeating.ts'
import type { Log } from '../../observe/log.ts'
import type { Attempt } from './attempt.ts'

const maxTrusted = 10_000
/** Any client can cause untrusted endings, so this limit is lower. */
const maxUntrusted = 1_000

const batchSize = 20

/** One session, or all sessions of one sid or sub. */
export type EndingScope = SessionKey | SidTag | SubTag

export interface PendingEnding {
  /** Two endings with the same name are the same order. */
  readonly name: string
  readonly scope: EndingScope
  /** Sessions that were created later are not part of the order. In ms since the epoch. */
  readonly createdUntil: number
  /** Absent: the ending is of one session, for which its time does not matter. */
  readonly attempt?: Attempt
  /** Whether the order is signed, or is about a session in memory. A client may send any cookie. */
  readonly isTrusted: boolean
  /** Repeats the whole order. Called until it succeeds. */
  readonly repeat: () => Promise<unknown>
}

/**
 * Endings that the store has not accepted. Not every caller repeats its order after the error, so
 * this process does, until the store accepts it. Until then it serves no session in their scope.
 */
export class PendingEndings {
  readonly #trusted: BoundedMap<string, PendingEnding>
  readonly #untrusted: BoundedMap<string, PendingEnding>
  readonly #byScope = new Map<EndingScope, Map<string, PendingEnding>>()
  /** The failed attempts of orders that only their sender repeats, by the name of the order. */
  readonly failedAttempts = new BoundedMap<string, Attempt>('failed_endings', maxUntrusted)
  readonly #log: Log
  readonly #trying = new Repeating('pending_endings', () => this.#try())
  #hasWarned = false

  constructor(log: Log) {
    this.#log = log
    const dispose = (ending: PendingEnding, _name: string, why: string) => {
      this.#removeFromScope(ending)
      if (why === 'evict') this.#warnOnce()
    }
    this.#trusted = new BoundedMap('pending_endings', maxTrusted, { dispose })
    this.#untrusted = new BoundedMap('pending_endings_untrusted', maxUntrusted, { dispose })
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
    const pending = this.#trusted.get(name) ?? this.#untrusted.get(name) ?? ending
    const endings = pending.isTrusted ? this.#trusted : this.#untrusted
    // Deleted first, because the order of insertion is the order of the attempts.
    endings.delete(name)
    endings.set(name, pending)
    const ofScope = this.#byScope.get(pending.scope) ?? new Map<string, PendingEnding>()
    this.#byScope.set(pending.scope, ofScope.set(name, pending))
    this.#trying.wakeIn(pauses.repeatEndingsMs)
  }

  /** The first attempt of the order with this name, if it is pending. */
  attemptOf(name: string): Attempt | undefined {
    return (this.#trusted.peek(name) ?? this.#untrusted.peek(name))?.attempt
  }

  /** The store has accepted the order with this name. */
  complete(name: string): void {
    this.#trusted.delete(name)
    this.#untrusted.delete(name)
  }

  /** Drops all endings, because the process stops. */
  clear(): void {
    this.#trusted.clear()
    this.#untrusted.clear()
  }

  #removeFromScope({ name, scope }: PendingEnding): void {
    const endings = this.#byScope.get(scope)
    endings?.delete(name)
    if (endings?.size === 0) this.#byScope.delete(scope)
  }

  #warnOnce(): void {
    if (this.#hasWarned) return
    this.#hasWarned = true
    const hint =
      'Too many endings wait for the store, so the oldest ones were dropped. Repeat them when the store is available.'
    this.#log.error('session.endings_forgotten', { hint })
  }

  /** @returns a pause while endings wait */
  async #try(): Promise<number | undefined> {
    await this.#repeatAll(this.#trusted)
    await this.#repeatAll(this.#untrusted)
    if (!this.isEmpty) return pauses.repeatEndingsMs
    this.#hasWarned = false
    return undefined
  }

  /**
   * Repeats the orders in batches, those first whose last attempt was the longest ago. Stops when a
   * whole batch fails, because then the store is still unavailable.
   */
  async #repeatAll(endings: BoundedMap<string, PendingEnding>): Promise<void> {
    const waiting = [...endings.values()].toReversed()
    for (let at = 0; at < waiting.length; at += batchSize) {
      const outcomes = await Promise.allSettled(waiting.slice(at, at + batchSize).map((ending) => this.#repeat(ending)))
      if (!outcomes.some(({ status }) => status === 'fulfilled')) return
    }
  }

  async #repeat(ending: PendingEnding): Promise<void> {
    try {
      await ending.repeat()
      this.complete(ending.name)
    } catch (error) {
      // It goes to the end, so that the next attempt begins with the others. Endings that were
      // cleared, because the process stops, are not added again.
      if (this.covers(ending.createdUntil, ending.scope)) this.add(ending)
      this.#log.debug('session.ending_pending', { reason: reason(error) })
      throw error
    }
  }
}
