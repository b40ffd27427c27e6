/**
 * The named objects of a kind that are in use, for what shows their state. It keeps none of them
 * alive. Several may have the same name.
 */
export class Instances<T extends { readonly name: string }> {
  readonly #references = new Set<WeakRef<T>>()
  /** Each event stream adds an object, so adding one must not visit the others. */
  readonly #gone = new FinalizationRegistry<WeakRef<T>>((reference) => this.#references.delete(reference))
  readonly #counts = new Map<string, number>()

  add(instance: T): void {
    const reference = new WeakRef(instance)
    this.#references.add(reference)
    this.#gone.register(instance, reference)
    this.#counts.set(instance.name, this.#counts.get(instance.name) ?? 0)
  }

  /** Counts something that has happened to an object of this name. */
  count(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
  }

  /** What was counted since the start of the process, also for objects that are gone. */
  get counts(): readonly (readonly [labels: readonly string[], value: number])[] {
    return [...this.#counts].map(([name, count]) => [[name], count])
  }

  /** A value for each name that has objects: `combine` makes one of the values of several. */
  values(
    read: (instance: T) => number,
    combine: (one: number, other: number) => number,
  ): readonly (readonly [labels: readonly string[], value: number])[] {
    const values = new Map<string, number>()
    for (const reference of this.#references) {
      const instance = reference.deref()
      if (instance === undefined) continue
      const known = values.get(instance.name)
      values.set(instance.name, known === undefined ? read(instance) : combine(known, read(instance)))
    }
    return [...values].map(([name, value]) => [[name], value])
  }
}
