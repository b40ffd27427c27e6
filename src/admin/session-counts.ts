import { maxSamples, sampleMs, slotOf } from './samples.ts'
import type { Overview } from './view.ts'

/**
 * How many sessions the store had, for a chart. No metric has this number, because counting reads
 * all keys of the store. The page counts them anyway, so the numbers are of times at which it was
 * open.
 */
export class SessionCounts {
  readonly #bySlot = new Map<number, number>()

  /** Keeps the number that an overview has. The number for a search is of another kind. */
  note({ at, query, sessions }: Pick<Overview, 'at' | 'query' | 'sessions'>): void {
    const isSearch = query.sub + query.sid + query.text !== ''
    if (isSearch || 'fault' in sessions || sessions.count === undefined) return
    this.#bySlot.set(slotOf(at), sessions.count)
    for (const slot of this.#bySlot.keys()) if (slot <= at - maxSamples * sampleMs) this.#bySlot.delete(slot)
  }

  /** The last number of every ten seconds, the oldest first. `undefined`: no page was open. */
  latest(now: number): readonly (number | undefined)[] {
    const newest = slotOf(now)
    return Array.from({ length: maxSamples }, (_, index) =>
      this.#bySlot.get(newest - (maxSamples - 1 - index) * sampleMs),
    )
  }
}
