import { ownText } from './own-text.ts'

/** How many names are remembered. Peers use few different ones. */
const maxNames = 1024
/** Longer names are not remembered, because peers may invent them. */
const maxNameLength = 64

/** Remembers something about each name of a header field, in bounded memory. */
export class ByName<Value> {
  readonly #make: (name: string) => Value
  readonly #values = new Map<string, Value>()

  /** @param make receives a copy of the name, which does not keep the message in memory */
  constructor(make: (name: string) => Value) {
    this.#make = make
  }

  /** @param name as the peer wrote it */
  of(name: string): Value {
    const known = this.#values.get(name)
    if (known !== undefined) return known
    const copy = ownText(name)
    const value = this.#make(copy)
    if (this.#values.size < maxNames && copy.length <= maxNameLength) this.#values.set(copy, value)
    return value
  }

  remembers(name: string): boolean {
    return this.#values.has(name)
  }
}
