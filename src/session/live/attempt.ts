import type { SessionStore } from '../store/store.ts'

/**
 * The first attempt to carry out an order. An order that is repeated after an error ends only what
 * began before its first attempt, because people may have signed in again meanwhile.
 */
export class Attempt {
  /** By the clock of this process, in ms since the epoch. */
  readonly at: number
  hasFailed = false
  readonly #startedAt = performance.now()
  #storeTime: number | undefined

  constructor(at: number) {
    this.at = at
  }

  /** When it was, in the store's time at the latest; throws `ERR_STORE_UNAVAILABLE`. */
  async storeTime(store: Pick<SessionStore, 'time'>): Promise<number> {
    if (this.#storeTime !== undefined) return this.#storeTime
    // Before the request: the store reads its time later, so the result is not too early.
    const elapsedMs = performance.now() - this.#startedAt
    const { latest } = await store.time()
    return (this.#storeTime ??= Math.ceil(latest - elapsedMs))
  }
}
