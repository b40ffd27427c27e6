/** Callers that ask for the same key while work is under way share its one result. */
export class SingleFlight<K, V> {
  readonly #underWay = new Map<K, Promise<V>>()

  /** How many keys are worked on. */
  get size(): number {
    return this.#underWay.size
  }

  /** Resolves when what is under way now is over, well or not. */
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
