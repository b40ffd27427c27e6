// Rounds: which of them count, how quiet the machine was, and when a contender is warm.
import { setTimeout as wait } from 'node:timers/promises'
import { busyMicros, cpuMicros } from './usage.ts'

/** How many rounds of each are repeated at most. */
const mostRepeated = 2

/** A round, and what disturbed it. */
export interface Disturbed {
  /** How many processors other programs used during the round, from 0 to 2. */
  readonly foreign: number
}

/** The highest use by other programs in a quiet round, in processors. */
const quiet = 0.06

export interface Plan {
  readonly rounds: number
  readonly seconds: number
  /** The length of one window of the warm-up, in seconds. */
  readonly warmUp: number
  /** How long a round waits at most until other programs are idle, in seconds. */
  readonly patience: number
  /** No round waits or is repeated after this time of `performance.now()`. */
  readonly repeatUntil: number
}

/**
 * Runs a round of each, then the next one of each, backwards: changes of the machine affect all of
 * them, and none always follows the same one. A round that other programs disturbed is run once
 * more while there is time. Of surplus rounds, those with the least disturbance count, whatever
 * their results.
 */
export async function runInTurn<Each, Round extends Disturbed>(
  all: readonly Each[],
  plan: Plan,
  run: (each: Each) => Promise<Round>,
): Promise<Map<Each, readonly Round[]>> {
  const { rounds, patience, repeatUntil } = plan
  const done = new Map<Each, Round[]>(all.map((each) => [each, []]))
  for (let round = 0; round < rounds + mostRepeated; round += 1)
    for (const [each, results] of round % 2 === 0 ? done : [...done].toReversed()) {
      const isLate = performance.now() > repeatUntil
      if ((isLate && results.length >= rounds) || results.filter(isQuiet).length === rounds) continue
      await untilQuiet(isLate ? 0 : patience)
      results.push(await run(each))
    }
  const leastDisturbed = (results: readonly Round[]) => results.toSorted((a, b) => a.foreign - b.foreign)
  return new Map([...done].map(([each, results]) => [each, leastDisturbed(results).slice(0, rounds)]))
}

/** Resolves when other programs are idle, at the latest after `seconds`. */
export async function untilQuiet(seconds: number): Promise<void> {
  const foreign = () => busyMicros(0) + busyMicros(1) - cpuMicros(process.pid)
  const giveUpAt = performance.now() + seconds * 1000
  while (performance.now() < giveUpAt) {
    const [before, ms] = [foreign(), 250]
    await wait(ms)
    if (foreign() - before <= quiet * ms * 1000) return
  }
}

export function isQuiet({ foreign }: Disturbed): boolean {
  return foreign <= quiet
}

/** Processor time in µs. */
export interface Used extends Disturbed {
  readonly seconds: number
  /** Of the contender. */
  readonly cpu: number
  /** Of all other processes of the bench: clients, upstream, provider and Redis. */
  readonly support: number
}

/** Starts to count processor time. The returned function tells what was used since then. */
export function startMeter(pid: number): () => Used {
  const read = () => ({
    at: performance.now(),
    cpu: cpuMicros(pid),
    bench: cpuMicros(process.pid),
    busy: busyMicros(0) + busyMicros(1),
  })
  const before = read()
  return () => {
    const after = read()
    const used = (what: keyof typeof before) => after[what] - before[what]
    const seconds = used('at') / 1000
    const foreign = Math.max(0, used('busy') - used('bench')) / (seconds * 1e6)
    return { seconds, cpu: used('cpu'), support: used('bench') - used('cpu'), foreign }
  }
}

/** How long a contender was under load before its first round. */
export interface WarmUp {
  readonly seconds: number
  /** Whether the processor time of the last two windows was about the same. */
  readonly isStable: boolean
}

/** A window of the warm-up. */
interface Window {
  /** The processor time for a request. */
  readonly each: number
  /** The processor time of the whole window, in seconds. */
  readonly cpuSeconds: number
}

interface WarmUpLimits {
  /** The maximum number of windows. */
  readonly most: number
  /** The minimum of processor time in seconds. On a busy machine it takes more windows. */
  readonly leastCpuSeconds: number
}

/** The largest difference of two windows of a stable contender. */
const stableWithin = 0.05

/**
 * Runs windows until the processor time for a request of two windows in succession differs by less
 * than 5 %, and the contender has used some processor time. Without this minimum, code that V8 has
 * not compiled yet would look stable on a busy machine.
 */
export async function warmUp(
  run: () => Promise<Window>,
  { most, leastCpuSeconds }: WarmUpLimits = { most: 8, leastCpuSeconds: 2 },
): Promise<WarmUp> {
  const startedAt = performance.now()
  const seconds = () => (performance.now() - startedAt) / 1000
  let [before, used] = [NaN, 0]
  for (let n = 0; n < most; n += 1) {
    const { each, cpuSeconds } = await run()
    used += cpuSeconds
    const isStable = Math.abs(each / before - 1) < stableWithin
    if (isStable && used >= leastCpuSeconds) return { seconds: seconds(), isStable }
    before = each
  }
  return { seconds: seconds(), isStable: false }
}

/** A median, and how quiet the machine was. */
export interface Figure {
  readonly value: number
  /** How many of the rounds were quiet. */
  readonly quiet: number
  readonly rounds: number
  /** It is calculated from other figures, so it cannot meet a target. */
  readonly isCalculated?: true
  /** When and on what it was measured. Absent: in this run. */
  readonly measured?: string
}

export function figureOf<Round extends Disturbed>(
  rounds: readonly Round[] | undefined,
  of: (round: Round) => number,
): Figure {
  const counted = rounds ?? []
  return { value: spread(counted.map(of)).median, quiet: counted.filter(isQuiet).length, rounds: counted.length }
}

/** The value below which this part of the values is, from 0 to 1. */
export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? NaN
}

export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length / 2
  const median = ((sorted[Math.ceil(middle) - 1] ?? NaN) + (sorted[Math.floor(middle)] ?? NaN)) / 2
  return { median, min: sorted[0] ?? NaN, max: sorted.at(-1) ?? NaN }
}
