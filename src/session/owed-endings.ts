import { LRUCache } from 'lru-cache'
import { reason } from '../core/errors.ts'
import type { SessionKey, SidTag, SubTag } from '../core/names.ts'
import type { Log } from '../observe/log.ts'

const maxOwed = 10_000
/** Of those that anybody could make up. */
const maxUnproven = 1_000

/** How long to wait before each attempt, in ms. */
const pause = 1_000
/** So many orders are given at once. */
const atOnce = 20

/** A session, or all of one sid or sub. */
export type Whom = SessionKey | SidTag | SubTag

export interface OwedEnding {
  /** It is the same order if it has the same name. */
  readonly name: string
  readonly whom: Whom
  /** Sessions that were made later are not meant; in ms since the epoch. */
  readonly until: number
  /**
   * Whether it is signed, or about a session that is known; a cookie that a stranger sends may be
   * nobody's.
   */
  readonly isProven: boolean
  /** Is called until it succeeds. */
  readonly give: () => Promise<unknown>
}

/**
 * Orders to end sessions that the store did not take. Whoever ordered has been told, and is to
 * order again; but not everybody does, so they are carried out as soon as the store takes them, for
 * as long as this process lives. Until then whom they are about is not served by this process.
 */
export class OwedEndings {
  readonly #proven: LRUCache<string, OwedEnding>
  readonly #unproven: LRUCache<string, OwedEnding>
  /** The orders about each. */
  readonly #about = new Map<Whom, Map<string, OwedEnding>>()
  readonly #log: Log
  #isTrying = false
  #hasForgotten = false

  constructor(log: Log) {
    this.#log = log
    const dispose = (owed: OwedEnding, _name: string, why: LRUCache.DisposeReason) => {
      this.#forget(owed)
      if (why === 'evict') this.#tooMany()
    }
    this.#proven = new LRUCache({ max: maxOwed, dispose })
    this.#unproven = new LRUCache({ max: maxUnproven, dispose })
  }

  /** Whether one that was made at this time (ms since the epoch) is to be ended. */
  concern(createdAt: number, ...whom: readonly Whom[]): boolean {
    if (this.#about.size === 0) return false
    return whom.some((each) => [...(this.#about.get(each)?.values() ?? [])].some(({ until }) => createdAt <= until))
  }

  /** Whether nothing is owed. */
  get isEmpty(): boolean {
    return this.#about.size === 0
  }

  owe(order: OwedEnding): void {
    const { name } = order
    const known = this.#proven.get(name) ?? this.#unproven.get(name)
    const owed = known ?? order
    const orders = owed.isProven ? this.#proven : this.#unproven
    // Tried last, from now on.
    orders.delete(name)
    orders.set(name, owed)
    this.#about.set(owed.whom, (this.#about.get(owed.whom) ?? new Map<string, OwedEnding>()).set(name, owed))
    if (!this.#isTrying) void this.#try()
  }

  /** It was carried out. */
  settle(name: string): void {
    this.#proven.delete(name)
    this.#unproven.delete(name)
  }

  /** The process stops: all are given up. */
  forget(): void {
    this.#proven.clear()
    this.#unproven.clear()
  }

  #forget({ name, whom }: OwedEnding): void {
    const orders = this.#about.get(whom)
    orders?.delete(name)
    if (orders?.size === 0) this.#about.delete(whom)
  }

  #tooMany(): void {
    if (this.#hasForgotten) return
    this.#hasForgotten = true
    this.#log.error('session.endings_forgotten', {
      hint: 'more sessions were to be ended than are remembered while the store is away: the oldest of these orders has to come again',
    })
  }

  async #try(): Promise<void> {
    this.#isTrying = true
    while (!this.isEmpty) {
      await new Promise<void>((resolve) => void setTimeout(resolve, pause).unref())
      await this.#giveAll(this.#proven)
      await this.#giveAll(this.#unproven)
    }
    this.#isTrying = false
    this.#hasForgotten = false
  }

  /**
   * Some at a time, those first that were tried longest ago. When none of them is taken the others
   * have to wait.
   */
  async #giveAll(orders: LRUCache<string, OwedEnding>): Promise<void> {
    const waiting = [...orders.values()].toReversed()
    for (let at = 0; at < waiting.length; at += atOnce) {
      const outcomes = await Promise.allSettled(waiting.slice(at, at + atOnce).map((order) => this.#give(order)))
      if (!outcomes.some(({ status }) => status === 'fulfilled')) return
    }
  }

  async #give(order: OwedEnding): Promise<void> {
    try {
      await order.give()
      this.settle(order.name)
    } catch (error) {
      // Unless the process stops: the next time others have their turn first.
      if (this.concern(order.until, order.whom)) this.owe(order)
      this.#log.debug('session.ending_owed', { reason: reason(error) })
      throw error
    }
  }
}
