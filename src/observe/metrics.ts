/** How the values of several processes become one. */
export type Merge = 'sum' | 'max' | 'min'

/** A metric with all its values, as plain data that can be sent to another process. */
export interface Family {
  readonly name: string
  readonly help: string
  readonly kind: 'counter' | 'gauge' | 'histogram'
  readonly merge: Merge
  readonly labels: readonly string[]
  /** The upper bounds of the buckets of a histogram, without the infinite one. */
  readonly bounds: readonly number[]
  readonly cells: readonly Cell[]
}

export interface Cell {
  /** One for each label of the family. */
  readonly labels: readonly string[]
  /**
   * One value. For a histogram: the count of each bucket, including the infinite one, and then the
   * sum.
   */
  readonly values: readonly number[]
}

export interface MetricDescription {
  /** By the conventions of Prometheus: `gatehouse_…`, the unit, and `_total` for a counter. */
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
}

/** A value of a counter. Callers look it up once and keep it. */
export class Count {
  readonly labels: readonly string[]
  readonly values = [0]

  constructor(labels: readonly string[]) {
    this.labels = labels
  }

  add(by = 1): void {
    this.values[0] = (this.values[0] as number) + by
  }
}

/** The values of a histogram. Callers look it up once and keep it. */
export class Distribution {
  readonly labels: readonly string[]
  readonly values: number[]
  readonly #bounds: readonly number[]

  constructor(labels: readonly string[], bounds: readonly number[]) {
    this.labels = labels
    this.#bounds = bounds
    this.values = new Array<number>(bounds.length + 2).fill(0)
  }

  observe(value: number): void {
    const bounds = this.#bounds
    let bucket = 0
    while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket += 1
    this.values[bucket] = (this.values[bucket] as number) + 1
    this.values[bounds.length + 1] = (this.values[bounds.length + 1] as number) + value
  }
}

/** The reading of a gauge: a value, or several values with labels. */
export type Reading = number | readonly (readonly [labels: readonly string[], value: number])[]

/**
 * The cells of a metric by their labels. Labels must have few values, because cells are never
 * removed.
 */
class Cells<C extends Cell> {
  readonly #make: (labels: readonly string[]) => C
  readonly #byLabels = new Map<string, C>()

  constructor(make: (labels: readonly string[]) => C) {
    this.#make = make
  }

  of(...labels: readonly string[]): C {
    const key = labels.join('\n')
    const known = this.#byLabels.get(key)
    if (known !== undefined) return known
    const made = this.#make(labels)
    this.#byLabels.set(key, made)
    return made
  }

  all(): readonly C[] {
    return [...this.#byLabels.values()]
  }
}

/**
 * The metrics of this process. Describing a counter or histogram again returns the existing one.
 */
export class Metrics {
  readonly #families: { readonly name: string; readonly read: () => Family }[] = []
  readonly #counters = new Map<string, Cells<Count>>()
  readonly #histograms = new Map<string, Cells<Distribution>>()

  counter(description: MetricDescription): Cells<Count> {
    const known = this.#counters.get(description.name)
    if (known !== undefined) return known
    const cells = new Cells((labels) => new Count(labels))
    this.#counters.set(description.name, cells)
    // A counter without labels starts at 0.
    if (description.labels === undefined) cells.of()
    this.#add(description, 'counter', 'sum', [], () => cells.all())
    return cells
  }

  /** `bounds`: ascending. */
  histogram(description: MetricDescription & { readonly bounds: readonly number[] }): Cells<Distribution> {
    const { bounds } = description
    const known = this.#histograms.get(description.name)
    if (known !== undefined) return known
    const cells = new Cells((labels) => new Distribution(labels, bounds))
    this.#histograms.set(description.name, cells)
    this.#add(description, 'histogram', 'sum', bounds, () => cells.all())
    return cells
  }

  /** Adds a value that is read when metrics are collected. */
  gauge(description: MetricDescription & { readonly merge: Merge; readonly read: () => Reading }): void {
    this.#add(description, 'gauge', description.merge, [], () => cellsOf(description.read()))
  }

  /** Adds a counter whose value other code keeps. */
  counted(description: MetricDescription & { readonly read: () => Reading }): void {
    this.#add(description, 'counter', 'sum', [], () => cellsOf(description.read()))
  }

  collect(): readonly Family[] {
    return this.#families.map(({ read }) => read())
  }

  /** One metric, without the others. `undefined`: it is not described yet. */
  read(name: string): Family | undefined {
    return this.#families.find((family) => family.name === name)?.read()
  }

  #add(
    { name, help, labels = [] }: MetricDescription,
    kind: Family['kind'],
    merge: Merge,
    bounds: readonly number[],
    cells: () => readonly Cell[],
  ): void {
    this.#families.push({ name, read: () => ({ name, help, kind, merge, labels, bounds, cells: cells() }) })
  }
}

function cellsOf(reading: Reading): readonly Cell[] {
  if (typeof reading === 'number') return [{ labels: [], values: [reading] }]
  return reading.map(([labels, value]) => ({ labels, values: [value] }))
}
