import { ownText } from './own-text.ts'

/** How many names are remembered. Peers use few different ones. */
const maxNames = 1024
/** Longer names are not remembered, because peers may invent them. */
const maxNameLength = 64

interface Remembered<Value> {
  readonly name: string
  readonly value: Value
  /** The remembered name that followed the last time. */
  next: Remembered<Value> | undefined
}

/**
 * Remembers something about each name of a header field, in bounded memory. Fields usually have the
 * same order again. So a name is first compared with the one that followed the last time, which
 * takes less time than a search in a map.
 */
export class ByName<Value> {
  readonly #make: (name: string) => Value
  readonly #names = new Map<string, Remembered<Value>>()
  #last: Remembered<Value> | undefined

  /** @param make receives a copy of the name, which does not keep the message in memory */
  constructor(make: (name: string) => Value) {
    this.#make = make
  }

  /** @param name as the peer wrote it */
  of(name: string): Value {
    const last = this.#last
    const expected = last?.next
    if (expected?.name === name) {
      this.#last = expected
      return expected.value
    }
    const known = this.#names.get(name)
    if (known === undefined) return this.#add(name)
    if (last !== undefined) last.next = known
    this.#last = known
    return known.value
  }

  #add(name: string): Value {
    const copy = ownText(name)
    const value = this.#make(copy)
    if (this.#names.size < maxNames && copy.length <= maxNameLength)
      this.#names.set(copy, { name: copy, value, next: undefined })
    return value
  }

  remembers(name: string): boolean {
    return this.#names.has(name)
  }
}
