import { LRUCache } from 'lru-cache'
import { reason } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import type { Log } from '../observe/log.ts'

const maxOwed = 10_000

/** How long to wait before each attempt, in ms. */
const pause = 1_000

interface OwedEnding {
  readonly keys: readonly SessionKey[]
  readonly order: () => Promise<unknown>
}

/**
 * Orders to end sessions that the store did not take. Whoever ordered has been told, and is to order again; but not everybody
 * does, so they are carried out as soon as the store takes them, for as long as this process lives.
 */
export class OwedEndings {
  readonly #orders: LRUCache<string, OwedEnding>
  readonly #keys = new Set<SessionKey>()
  readonly #log: Log
  #isTrying = false

  constructor(log: Log) {
    this.#log = log
    this.#orders = new LRUCache({
      max: maxOwed,
      dispose: ({ keys }) => keys.forEach((key) => this.#keys.delete(key)),
    })
  }

  /** Whether a session is to be ended, as far as it was known when that was ordered. */
  concern(key: SessionKey): boolean {
    return this.#keys.has(key)
  }

  /** `order` is given again until it succeeds; it is the same order if it has the same name. */
  owe(name: string, keys: readonly SessionKey[], order: () => Promise<unknown>): void {
    const known = this.#orders.get(name)?.keys ?? []
    this.#orders.set(name, { keys: [...known, ...keys], order })
    for (const key of [...known, ...keys]) this.#keys.add(key)
    if (!this.#isTrying) void this.#try()
  }

  /** It was carried out. */
  settle(name: string): void {
    this.#orders.delete(name)
  }

  /** The process stops: all are given up. */
  forget(): void {
    this.#orders.clear()
  }

  async #try(): Promise<void> {
    this.#isTrying = true
    while (this.#orders.size > 0) {
      await new Promise<void>((resolve) => void setTimeout(resolve, pause).unref())
      for (const [name, { order }] of [...this.#orders.entries()].toReversed())
        try {
          await order()
          this.settle(name)
        } catch (error) {
          this.#log.debug('session.ending_owed', { reason: reason(error) })
          break
        }
    }
    this.#isTrying = false
  }
}
