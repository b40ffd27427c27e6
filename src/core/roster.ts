/** As long as there are no more, none is looked at whether it is needed. */
const fewest = 64

/**
 * A map for what comes and goes with requests. Deleting what is used again in a moment would make a
 * table anew each time, and V8 makes that of an old map among the old objects, which are costly to
 * look through. So what is not needed any more stays until so much of it has come together that it
 * is worth while.
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

  /** The one there is, or a new one. */
  of(key: Key): Value {
    let value = this.#entries.get(key)
    if (value !== undefined) return value
    if (this.#entries.size >= this.#limit) this.#tidy()
    value = this.#make()
    this.#entries.set(key, value)
    return value
  }

  /** Those that are needed. */
  *needed(): IterableIterator<readonly [Key, Value]> {
    for (const entry of this.#entries) if (this.#isNeeded(entry[1])) yield entry
  }

  #tidy(): void {
    for (const [key, value] of this.#entries) if (!this.#isNeeded(value)) this.#entries.delete(key)
    this.#limit = Math.max(fewest, 2 * this.#entries.size)
  }
}
