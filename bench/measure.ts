// Measures contenders under load.
import type { Bed } from './bed.ts'
import type { LoadOrder, RequestsOrder, WebSocketsOrder } from './load/order.ts'
import { runInTurn, spread, startMeter, warmUp, type Disturbed, type Plan, type Used, type WarmUp } from './rounds.ts'
import type { Stand } from './stand.ts'
import { memoryBytes } from './usage.ts'

/** The load of a round, without the contender. */
export type Load =
  | Pick<
      RequestsOrder,
      'kind' | 'bodyBytes' | 'uploadBytes' | 'connections' | 'rate' | 'fields' | 'streams' | 'reconnects'
    >
  | Pick<WebSocketsOrder, 'kind' | 'areIdle' | 'connections'>

/** The base of all other loads: 1 KiB, 32 connections, the header fields of real traffic. */
export const usualLoad = { kind: 'requests', bodyBytes: 1024, connections: 32, fields: 'typical' } as const

export interface Round extends Disturbed {
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
}

/** The rounds of a contender that count. */
export interface Measured {
  readonly rounds: readonly Round[]
  readonly warmUp: WarmUp
}

/** Carries out a round of a contender, and may look at what happens meanwhile. */
export type Watch = (stand: Stand, round: () => Promise<Round>) => Promise<Round>

/** Warms the contenders up, and measures them in turn. */
export async function measureInTurn(
  bed: Bed,
  stands: readonly Stand[],
  load: Load,
  plan: Plan,
  watch: Watch = (_stand, round) => round(),
): Promise<Map<Stand, Measured>> {
  const warmUps = new Map<Stand, WarmUp>()
  for (const stand of stands) {
    const window = async () => {
      const { cpu, requestsPerSecond } = await measure(bed, stand, load, plan.warmUp)
      return { each: cpu, cpuSeconds: (cpu * requestsPerSecond * plan.warmUp) / 1e6 }
    }
    warmUps.set(stand, await warmUp(window))
  }
  const rounds = await runInTurn(stands, plan, (stand) => watch(stand, () => measure(bed, stand, load, plan.seconds)))
  return new Map(
    [...rounds].map(([stand, each]) => [stand, { rounds: each, warmUp: warmUps.get(stand) as WarmUp }] as const),
  )
}

/** Measures one round at once, without waiting until other programs are idle. */
async function measure(bed: Bed, stand: Stand, load: Load, seconds: number): Promise<Round> {
  const { pid, port, tls, visitors } = stand
  const order: LoadOrder = { ...load, port, tls, visitors, ms: seconds * 1000 }
  let stop = startMeter(pid)
  let used: Used | undefined
  const around = { started: () => void (stop = startMeter(pid)), ended: () => void (used = stop()) }
  const result = await bed.load(order, around).catch((error: unknown) => {
    throw new Error(`${stand.title}: ${(error as Error).message}`)
  })
  const { cpu, support, foreign } = used ?? stop()
  return {
    requestsPerSecond: result.count / result.seconds,
    p50: result.p50,
    p99: result.p99,
    cpu: cpu / result.count,
    support: support / result.count,
    memory: memoryBytes(pid),
    foreign,
  }
}

export function medianOf(measured: Measured | undefined, figure: keyof Round): number {
  return spread((measured?.rounds ?? []).map((round) => round[figure])).median
}
