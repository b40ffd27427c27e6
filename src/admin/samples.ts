import type { Clock } from '../core/clock.ts'
import { ownMember } from '../core/json.ts'
import type { Family, Metrics } from '../observe/metrics.ts'

/** How much time a sample covers, in ms. */
export const sampleMs = 10_000
/** How many samples are kept: those of 15 minutes. */
export const maxSamples = 90

/** What happened since the sample before. The numbers are differences of metrics. */
export interface Sample {
  /** The time of the sample: a multiple of {@link sampleMs} since the epoch. */
  readonly slot: number
  /** The time since the sample before, in seconds. */
  readonly seconds: number
  readonly requests: number
  readonly signIns: number
  readonly failedSignIns: number
  readonly ended: number
  /** Requests that the gateway rejected or aborted, by code. Only codes that occurred. */
  readonly refusals: Readonly<Record<string, number>>
  /** The counts of the buckets of histograms, including the infinite one. Empty: no values. */
  readonly durations: readonly number[]
  readonly provider: readonly number[]
  readonly store: readonly number[]
}

/** The upper bounds of the buckets of a histogram, in seconds, without the infinite one. */
export type Bounds = readonly number[]

/** The samples of one process. */
export interface Samples {
  readonly samples: readonly Sample[]
  readonly bounds: Readonly<Record<'durations' | 'provider' | 'store', Bounds>>
}

const sources = {
  requests: 'gatehouse_requests_total',
  signIns: 'gatehouse_sessions_created_total',
  failedSignIns: 'gatehouse_sign_ins_failed_total',
  ended: 'gatehouse_sessions_ended_total',
  refusals: 'gatehouse_refusals_total',
  durations: 'gatehouse_request_duration_seconds',
  provider: 'gatehouse_provider_request_duration_seconds',
  store: 'gatehouse_store_duration_seconds',
} as const

/** The metrics at one time. */
interface Reading {
  readonly at: number
  readonly families: Readonly<Partial<Record<keyof typeof sources, Family>>>
}

/**
 * Takes a sample of the metrics of this process every ten seconds. Reads only counters and
 * histograms, because reading some gauges resets them.
 */
export class MetricSamples {
  readonly #metrics: Metrics
  readonly #clock: Clock
  readonly #samples: Sample[] = []
  readonly #timer: NodeJS.Timeout
  #last: Reading

  constructor(metrics: Metrics, clock: Clock) {
    this.#metrics = metrics
    this.#clock = clock
    this.#last = this.#read()
    this.#timer = setInterval(() => this.#take(), sampleMs).unref()
  }

  /** The samples up to now. The newest may be a little older than {@link sampleMs}. */
  get current(): Samples {
    this.#take()
    const boundsOf = (source: keyof typeof sources) => this.#last.families[source]?.bounds ?? []
    return {
      samples: this.#samples,
      bounds: { durations: boundsOf('durations'), provider: boundsOf('provider'), store: boundsOf('store') },
    }
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #take(): void {
    const now = this.#clock.now()
    const slot = slotOf(now)
    // The clock was set back.
    if (now < this.#last.at) {
      this.#samples.length = 0
      this.#last = this.#read()
    }
    if (slot === slotOf(this.#last.at)) return
    const reading = this.#read()
    this.#samples.push(sampleOf(slot, this.#last, reading))
    this.#last = reading
    if (this.#samples.length > maxSamples) this.#samples.shift()
  }

  #read(): Reading {
    const families: Partial<Record<keyof typeof sources, Family>> = {}
    for (const [source, name] of Object.entries(sources) as [keyof typeof sources, string][]) {
      const family = this.#metrics.read(name)
      if (family !== undefined) families[source] = { ...family, cells: family.cells.map(copyOf) }
    }
    return { at: this.#clock.now(), families }
  }
}

/** The time of the sample that covers a moment. */
export function slotOf(now: number): number {
  return Math.floor(now / sampleMs) * sampleMs
}

/** The values of a cell change, so the reading needs its own. */
function copyOf({ labels, values }: Family['cells'][number]): Family['cells'][number] {
  return { labels, values: [...values] }
}

function sampleOf(slot: number, before: Reading, after: Reading): Sample {
  const increase = (source: keyof typeof sources) => {
    const [sum = 0] = bucketsOf(after.families[source], 1)
    const [previous = 0] = bucketsOf(before.families[source], 1)
    return sum - previous
  }
  const buckets = (source: keyof typeof sources) => {
    const count = (after.families[source]?.bounds.length ?? 0) + 1
    const previous = bucketsOf(before.families[source], count)
    const counts = bucketsOf(after.families[source], count).map((value, index) => value - (previous[index] ?? 0))
    return counts.some((value) => value > 0) ? counts : []
  }
  return {
    slot,
    seconds: (after.at - before.at) / 1000,
    requests: increase('requests'),
    signIns: increase('signIns'),
    failedSignIns: increase('failedSignIns'),
    ended: increase('ended'),
    refusals: increaseByLabel(before.families.refusals, after.families.refusals),
    durations: buckets('durations'),
    provider: buckets('provider'),
    store: buckets('store'),
  }
}

/** The first values of all cells together. */
function bucketsOf(family: Family | undefined, count: number): number[] {
  const sums = new Array<number>(count).fill(0)
  for (const { values } of family?.cells ?? [])
    for (let index = 0; index < count; index += 1) sums[index] = (sums[index] ?? 0) + (values[index] ?? 0)
  return sums
}

function increaseByLabel(before: Family | undefined, after: Family | undefined): Record<string, number> {
  const previous = new Map(before?.cells.map(({ labels, values }) => [labels[0] ?? '', values[0] ?? 0]))
  const increases = (after?.cells ?? []).map(({ labels: [label = ''], values: [value = 0] }) => {
    return [label, value - (previous.get(label) ?? 0)] as const
  })
  return Object.fromEntries(increases.filter(([, increase]) => increase > 0))
}

/** A sample of all processes together. Absent counts of histograms: there were no values. */
export interface MergedSample {
  readonly requestsPerSecond: number
  readonly signInsPerMinute: number
  readonly failedSignInsPerMinute: number
  readonly endedPerMinute: number
  readonly refusals: Readonly<Record<string, number>>
  readonly refusalsPerMinute: number
  readonly durations: Quantiles | undefined
  readonly provider: Quantiles | undefined
  readonly store: Quantiles | undefined
}

/** Estimates from the buckets of a histogram, in seconds. */
export interface Quantiles {
  readonly p50: number
  readonly p99: number
}

/**
 * Merges the samples of processes by their time, the oldest first. A time without a sample of any
 * process is `undefined`.
 */
export function mergedSamples(processes: readonly Samples[], now: number): readonly (MergedSample | undefined)[] {
  const bySlot = new Map<number, Sample[]>()
  for (const sample of processes.flatMap(({ samples }) => samples))
    bySlot.set(sample.slot, [...(bySlot.get(sample.slot) ?? []), sample])
  const bounds = processes[0]?.bounds ?? { durations: [], provider: [], store: [] }
  // The newest time may still have the samples of some processes only.
  const isWhole = (bySlot.get(slotOf(now))?.length ?? 0) >= processes.length
  const newest = slotOf(now) - (isWhole ? 0 : sampleMs)
  return Array.from({ length: maxSamples }, (_, index) => {
    const samples = bySlot.get(newest - (maxSamples - 1 - index) * sampleMs)
    return samples && mergedSample(samples, bounds)
  })
}

function mergedSample(samples: readonly Sample[], bounds: Samples['bounds']): MergedSample {
  const perSecond = (of: (sample: Sample) => number) =>
    samples.reduce((sum, sample) => sum + (sample.seconds > 0 ? of(sample) / sample.seconds : 0), 0)
  const quantiles = (of: 'durations' | 'provider' | 'store') =>
    quantilesOf(
      samples.map((sample) => sample[of]),
      bounds[of],
    )
  const refusals: Record<string, number> = {}
  for (const [code, count] of samples.flatMap((sample) => Object.entries(sample.refusals)))
    refusals[code] = (ownMember(refusals, code) ?? 0) + count
  return {
    requestsPerSecond: perSecond(({ requests }) => requests),
    signInsPerMinute: 60 * perSecond(({ signIns }) => signIns),
    failedSignInsPerMinute: 60 * perSecond(({ failedSignIns }) => failedSignIns),
    endedPerMinute: 60 * perSecond(({ ended }) => ended),
    refusals,
    refusalsPerMinute: 60 * perSecond((sample) => Object.values(sample.refusals).reduce((sum, n) => sum + n, 0)),
    durations: quantiles('durations'),
    provider: quantiles('provider'),
    store: quantiles('store'),
  }
}

function quantilesOf(histograms: readonly (readonly number[])[], bounds: Bounds): Quantiles | undefined {
  const counts = [...bounds, Infinity].map((_, index) =>
    histograms.reduce((sum, histogram) => sum + (histogram[index] ?? 0), 0),
  )
  const total = counts.reduce((sum, count) => sum + count, 0)
  return total === 0 ? undefined : { p50: quantile(0.5, counts, bounds), p99: quantile(0.99, counts, bounds) }
}

/**
 * Estimates a quantile as Prometheus does: values are spread evenly over their bucket. A value
 * beyond the last bound counts as that bound.
 */
function quantile(q: number, counts: readonly number[], bounds: Bounds): number {
  const rank = q * counts.reduce((sum, count) => sum + count, 0)
  let below = 0
  for (const [index, upper] of bounds.entries()) {
    const count = counts[index] ?? 0
    const lower = bounds[index - 1] ?? 0
    if (count > 0 && below + count >= rank) return lower + ((upper - lower) * (rank - below)) / count
    below += count
  }
  return bounds.at(-1) ?? 0
}
