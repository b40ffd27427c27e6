// What the proxies of the network saw, merged: a fault touches many bytes of one link.
import type { Touch } from './history.ts'
import { partOf } from './parties.ts'

type Seen = Omit<Touch, 'type' | 'part'>

/** Touches of one link with a shorter pause in between are one, in ms. */
const mergedMs = 100

export class Touches {
  readonly #record: (touch: Touch) => void
  /** By link and kind. */
  readonly #open = new Map<string, Seen>()

  constructor(record: (touch: Touch) => void) {
    this.#record = record
  }

  add(seen: Seen): void {
    const key = `${seen.from}>${seen.to} ${seen.how} ${seen.code ?? ''}`
    const before = this.#open.get(key)
    if (before === undefined || seen.begin > before.end + mergedMs) {
      if (before !== undefined) this.#write(before)
      this.#open.set(key, seen)
    } else {
      const [begin, end] = [Math.min(before.begin, seen.begin), Math.max(before.end, seen.end)]
      this.#open.set(key, { ...seen, begin, end })
    }
  }

  /** Records what ended before a time, as nothing is merged with it any more. */
  settleBefore(time: number): void {
    for (const [key, seen] of this.#open)
      if (seen.end + mergedMs < time) {
        this.#open.delete(key)
        this.#write(seen)
      }
  }

  #write(seen: Seen): void {
    this.#record({ type: 'touch', part: partOf(seen.to), ...seen })
  }
}
