// Measures the contenders in turn, so that changes of the machine affect all of them.
import { setTimeout as wait } from 'node:timers/promises'
import type { Bed } from './bed.ts'
import type { LoadOrder, RequestsOrder, WebSocketsOrder } from './load/order.ts'
import type { Stand } from './stand.ts'
import { busyMicros, cpuMicros, memoryBytes } from './usage.ts'

/** The load of a round, without the contender. */
export type Load =
  | Pick<RequestsOrder, 'kind' | 'bodyBytes' | 'uploadBytes' | 'connections' | 'rate'>
  | Pick<WebSocketsOrder, 'kind' | 'areIdle' | 'connections'>

/** The base of all other loads: 1 KiB, 32 connections. */
export const usualLoad = { kind: 'requests', bodyBytes: 1024, connections: 32 } as const

export interface Round {
  readonly requestsPerSecond: number
  /** The 50th and 99th percentile of the latency, in ms. */
  readonly p50: number
  readonly p99: number
  /** The processor time of the contender for a request, in µs. */
  readonly cpu: number
  /**
   * The processor time of all other processes of the bench for a request, in µs: clients, upstream
   * and Redis.
   */
  readonly support: number
  /** The resident memory at the end, in bytes. */
  readonly memory: number
  /** How many processors other programs used during the round, from 0 to 2. */
  readonly foreign: number
}

/** The highest use by other programs in a quiet round, in processors. */
const quiet = 0.06

export interface Plan {
  readonly rounds: number
  readonly seconds: number
  /** How long each contender is under load before the first round, in seconds. */
  readonly warmUp: number
  /** How long a round waits at most until other programs are idle, in seconds. */
  readonly patience: number
}

/**
 * Returns the rounds of each contender that count. A round that other programs disturbed is
 * measured once more. Of surplus rounds, those with the least disturbance count, whatever their
 * results.
 */
export async function measureInTurn(
  bed: Bed,
  stands: readonly Stand[],
  load: Load,
  { rounds, seconds, warmUp, patience }: Plan,
): Promise<Map<Stand, readonly Round[]>> {
  const measured = new Map<Stand, Round[]>(stands.map((stand) => [stand, []]))
  for (const stand of stands) await measure(bed, stand, load, warmUp)
  for (let round = 0; round < 2 * rounds; round += 1)
    for (const [stand, results] of measured) {
      if (results.filter(isQuiet).length === rounds) continue
      await untilQuiet(patience)
      results.push(await measure(bed, stand, load, seconds))
    }
  const leastDisturbed = (results: readonly Round[]) =>
    [...results].sort((a, b) => a.foreign - b.foreign).slice(0, rounds)
  return new Map([...measured].map(([stand, results]) => [stand, leastDisturbed(results)]))
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

/** Measures one round at once, without waiting until other programs are idle. */
export async function measure(bed: Bed, stand: Stand, load: Load, seconds: number): Promise<Round> {
  const usage = () => ({
    cpu: cpuMicros(stand.pid),
    bench: cpuMicros(process.pid),
    busy: busyMicros(0) + busyMicros(1),
  })
  let [before, after] = [usage(), usage()]
  const { port, tls, visitors } = stand
  const order: LoadOrder = { ...load, port, tls, visitors, ms: seconds * 1000 }
  const around = { started: () => void (before = usage()), ended: () => void (after = usage()) }
  const result = await bed.load(order, around).catch((error: unknown) => {
    throw new Error(`${stand.title}: ${(error as Error).message}`)
  })
  const used = (what: keyof typeof after) => after[what] - before[what]
  return {
    requestsPerSecond: result.count / result.seconds,
    p50: result.p50,
    p99: result.p99,
    cpu: used('cpu') / result.count,
    support: (used('bench') - used('cpu')) / result.count,
    memory: memoryBytes(stand.pid),
    foreign: (used('busy') - used('bench')) / (result.seconds * 1e6),
  }
}

export function isQuiet({ foreign }: Round): boolean {
  return foreign <= quiet
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

export function medianOf(rounds: readonly Round[] | undefined, figure: keyof Round): number {
  return spread((rounds ?? []).map((round) => round[figure])).median
}
