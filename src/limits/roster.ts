/** Up to this number of entries, nothing is removed. */
const fewest = 64

/**
 * A map for entries that come and go with requests. It keeps unneeded entries and removes many at
 * once, because frequent insertions and deletions make V8 rebuild the table in the old generation,
 * which is expensive to collect.
 */
export class Roster<Key, Value> {
  readonly #entries = new Map<Key, Value>()
  readonly #make: () => Value
  readonly #isNeeded: (value: Value) => boolean
  #limit = fewest

  constructor(make: () => Value, isNeeded: (value: Value) => boolean) {
    this.#make = make
    this.#isNeeded = isNeeded
  }

  get(key: Key): Value | undefined {
    return this.#entries.get(key)
  }

  /** The value of a key, or a new one. */
  of(key: Key): Value {
    let value = this.#entries.get(key)
    if (value !== undefined) return value
    if (this.#entries.size >= this.#limit) this.#tidy()
    value = this.#make()
    this.#entries.set(key, value)
    return value
  }

  /** The entries that are needed. */
  *needed(): IterableIterator<readonly [Key, Value]> {
    for (const entry of this.#entries) if (this.#isNeeded(entry[1])) yield entry
  }

  #tidy(): void {
    for (const [key, value] of this.#entries) if (!this.#isNeeded(value)) this.#entries.delete(key)
    this.#limit = Math.max(fewest, 2 * this.#entries.size)
  }
}
