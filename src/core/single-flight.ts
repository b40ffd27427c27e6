/** Calls with the same key share the result of the work that is under way. */
export class SingleFlight<K, V> {
  readonly #underWay = new Map<K, Promise<V>>()

  /** The number of keys with work under way. */
  get size(): number {
    return this.#underWay.size
  }

  /** Whether work for this key is under way. */
  has(key: K): boolean {
    return this.#underWay.has(key)
  }

  /** Resolves when the current work has ended, with or without success. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay.values())
  }

  run(key: K, work: () => Promise<V>): Promise<V> {
    const running = this.#underWay.get(key)
    if (running) return running
    const started = work().finally(() => this.#underWay.delete(key))
    this.#underWay.set(key, started)
    return started
  }
}
