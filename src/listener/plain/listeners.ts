type Listener = (...values: never[]) => void

interface AddedListener {
  readonly event: string
  readonly listener: Listener
  readonly isOnce: boolean
}

/**
 * The listeners of a message, called like those of Node's `EventEmitter`. Most messages have one or
 * none. So a message costs less than with an `EventEmitter`, which creates three objects for that.
 */
export class Listeners {
  #entries: readonly AddedListener[] = noEntries

  on(event: string, listener: Listener): this {
    return this.#add({ event, listener, isOnce: false })
  }

  once(event: string, listener: Listener): this {
    return this.#add({ event, listener, isOnce: true })
  }

  off(event: string, listener: Listener): this {
    const index = this.#entries.findLastIndex((entry) => entry.event === event && entry.listener === listener)
    this.#entries = this.#entries.filter((_, at) => at !== index)
    return this
  }

  /** Removes all listeners for these events. */
  removeAll(...events: readonly string[]): void {
    this.#entries = this.#entries.filter(({ event }) => !events.includes(event))
  }

  /** @returns `false` when there is no listener for the event */
  emit(event: string, ...values: readonly unknown[]): boolean {
    let isHeard = false
    // A list is never changed, so this one has the listeners of now.
    for (const entry of this.#entries) {
      if (entry.event !== event) continue
      isHeard = true
      if (entry.isOnce) this.#remove(entry)
      entry.listener(...(values as never[]))
    }
    return isHeard
  }

  #remove(entry: AddedListener): void {
    const [only, second] = this.#entries
    this.#entries =
      only === entry && second === undefined ? noEntries : this.#entries.filter((other) => other !== entry)
  }

  #add(entry: AddedListener): this {
    this.#entries = this.#entries === noEntries ? [entry] : [...this.#entries, entry]
    return this
  }
}

const noEntries: readonly AddedListener[] = []
