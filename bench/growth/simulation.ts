// What a morning costs an installation that is larger than any that was measured: a discrete-event
// model of people, gateways and Redis. The costs are those of `figures.json`. What else is known of
// the programs is below (`keptSessions`, `proofSeconds`). It uses no network and no clock, and the
// same seed gives the same result.
import { randomNumbers } from '../../test/support/random.ts'
import type { CurveFigures } from './figures.ts'
import { costsBy, type Cost, type Operation } from './operations.ts'

/** What the simulated people do, in the order of the report. */
export const acts = ['request', 'cold', 'sign_in', 'refresh', 'burst'] as const satisfies readonly Operation[]
export type Act = (typeof acts)[number]

/** The cost with one replica, and of each further replica; see {@link Cost} for the units. */
export interface Line {
  readonly base: Cost
  readonly perReplica: Cost
}

export interface Costs {
  readonly acts: Readonly<Record<Act, Line>>
  /** In a second, without any act. */
  readonly idle: Line
}

/** How many nodes were measured, and how many of them have sessions: the others are replicas. */
export const measuredCluster = { nodes: 6, primaries: 3 }

/**
 * These tell all replicas something. Nothing else may cost more with more replicas: what was
 * measured for them would only continue the noise.
 */
const announced: ReadonlySet<Operation> = new Set<Operation>(['refresh', 'burst', 'idle'])

/** Costs of one Redis or of the Cluster, by a straight line through the measured points. */
export function costsOf({ points }: CurveFigures): Costs {
  const lineOf = (operation: Operation): Line => {
    const fits = costsBy((kind) => {
      const measured = points.map(({ x, costs }) => [x - 1, costs[operation]?.[kind].median ?? NaN] as const)
      return fit(measured, announced.has(operation))
    })
    return { base: costsBy((kind) => fits[kind][0]), perReplica: costsBy((kind) => fits[kind][1]) }
  }
  return {
    acts: Object.fromEntries(acts.map((act) => [act, lineOf(act)])) as Record<Act, Line>,
    idle: lineOf('idle'),
  }
}

/** Least squares, or the mean when it may not rise. Noise makes no cost negative. */
function fit(
  points: readonly (readonly [x: number, y: number])[],
  mayRise: boolean,
): readonly [base: number, slope: number] {
  const mean = (of: (point: readonly [number, number]) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length
  const [x, y] = [mean((point) => point[0]), mean((point) => point[1])]
  const slope = mayRise ? mean((p) => (p[0] - x) * (p[1] - y)) / mean((p) => (p[0] - x) ** 2) : 0
  return [Math.max(0, y - slope * x), Math.max(0, slope)]
}

export interface Town {
  readonly people: number
  readonly replicas: number
  /** Of a Cluster, each with a replica. Absent: one Redis. */
  readonly primaries?: number
  /** Everybody signs in within these hours, most in the middle. */
  readonly morningHours: number
  readonly requestsPerMinute: number
  /** How often a session refreshes its tokens. */
  readonly tokenMinutes: number
  /** How long a session lasts on average until a Logout Token ends it. */
  readonly sessionHours: number
  /** The load balancer sends a person to the same replica each time. */
  readonly isSticky: boolean
  readonly seed: number
}

/** The parts that can be exhausted. A gateway and a Redis node have one processor each. */
const parts = ['gateway', 'notices', 'otherNode'] as const
export type Part = (typeof parts)[number]

export interface Outcome {
  /** The highest use in ten seconds, as a share of one processor; and what took most of it. */
  readonly peak: Readonly<Record<Part, { readonly share: number; readonly by: Act | 'idle' }>>
  readonly commandsPerSecond: number
  /** To and from Redis. */
  readonly bytesPerSecond: number
  /** The first part that was exhausted. Absent: none was. */
  readonly first?: { readonly part: Part; readonly by: Act | 'idle'; readonly hour: number }
  /** How often each act happened. */
  readonly counts: Readonly<Record<Act, number>>
  /** The processor time of all gateways together. */
  readonly gatewaySeconds: number
}

/** Sessions that a process keeps in memory: docs/operations.md#memory. */
const keptSessions = 22_000
/** A replica whose beat comes back later serves nothing from memory, in seconds. */
const proofSeconds = 1.5
const tickSeconds = 10
const groups = 2_000

/** People who act together, so that ten million of them are few events. */
interface Group {
  readonly size: number
  readonly endsAt: number
}

type Event = { readonly kind: 'sign_in' | 'page' | 'refresh' | 'end'; readonly group: Group }

/** Simulates a morning and the hours until the last session has ended. */
export function simulate(town: Town, costs: Costs, single: Costs = costs): Outcome {
  const chance = randomNumbers(town.seed)
  const agenda: Event[][] = []
  const plan = (seconds: number, event: Event) => void (agenda[Math.floor(seconds / tickSeconds)] ??= []).push(event)
  for (let n = 0; n < groups; n += 1) {
    // The sum of two numbers has most of its values in the middle.
    const at = ((chance() + chance()) / 2) * town.morningHours * 3600
    const endsAt = at + (0.5 + chance()) * town.sessionHours * 3600
    plan(at, { kind: 'sign_in', group: { size: town.people / groups, endsAt } })
  }
  const tally = new Tally(town, costs, single)
  for (let tick = 0; tick < agenda.length; tick += 1) {
    for (const { kind, group } of agenda[tick] ?? []) {
      const now = (tick + chance()) * tickSeconds
      const again = (event: Event, seconds: number) => {
        const next = Math.max(now + seconds, (tick + 1) * tickSeconds)
        if (next < group.endsAt) plan(next, event)
      }
      if (kind === 'sign_in') {
        tally.add('sign_in', group.size)
        again({ kind: 'page', group }, chance() * 60)
        again({ kind: 'refresh', group }, town.tokenMinutes * 60)
        plan(Math.max(group.endsAt, (tick + 1) * tickSeconds), { kind: 'end', group })
      } else if (kind === 'page') {
        tally.addRequests(group.size * town.requestsPerMinute)
        again({ kind, group }, 60)
      } else if (kind === 'refresh') {
        tally.add('refresh', group.size)
        again({ kind, group }, town.tokenMinutes * 60 * (0.9 + 0.1 * chance()))
      } else tally.add('burst', group.size)
    }
    tally.endTick(tick)
  }
  return tally.outcome()
}

/** Adds up what happens in ten seconds, and what that takes. */
class Tally {
  readonly #town: Town
  readonly #costs: Costs
  readonly #single: Costs
  readonly #missShare: number
  #now = new Map<Act, number>()
  readonly #counts = new Map<Act, number>()
  readonly #peak: Record<Part, { share: number; by: Act | 'idle' }>
  #first: Outcome['first']
  /** Work that waits for the node of the notices, in seconds of its processor. */
  #backlog = 0
  readonly #most = { commands: 0, bytes: 0 }
  #gatewaySeconds = 0

  constructor(town: Town, costs: Costs, single: Costs) {
    this.#town = town
    this.#costs = costs
    this.#single = single
    const here = town.isSticky ? town.people / town.replicas : town.people
    this.#missShare = Math.max(0, 1 - keptSessions / here)
    const none = () => ({ share: 0, by: 'idle' as const })
    this.#peak = { gateway: none(), notices: none(), otherNode: none() }
  }

  add(act: Act, count: number): void {
    this.#now.set(act, (this.#now.get(act) ?? 0) + count)
    this.#counts.set(act, (this.#counts.get(act) ?? 0) + count)
  }

  addRequests(count: number): void {
    // Without proofs, no process serves from memory.
    const missShare = this.#backlog > proofSeconds ? 1 : this.#missShare
    this.add('request', count * (1 - missShare))
    this.add('cold', count * missShare)
  }

  endTick(tick: number): void {
    const used = new Map<Act | 'idle', Usage>([
      ['idle', usageOf(this.#costs.idle, tickSeconds, this.#town, this.#single.idle)],
    ])
    for (const [act, count] of this.#now)
      used.set(act, usageOf(this.#costs.acts[act], count, this.#town, this.#single.acts[act]))
    const sum = (kind: keyof Usage) => [...used.values()].reduce((all, usage) => all + usage[kind], 0)
    for (const part of parts) {
      const share = sum(part) / 1e6 / tickSeconds
      const [by] = [...used].reduce((most, each) => (each[1][part] > most[1][part] ? each : most))
      if (share > this.#peak[part].share) this.#peak[part] = { share, by }
      if (share > 1) this.#first ??= { part, by, hour: (tick * tickSeconds) / 3600 }
    }
    this.#backlog = Math.max(0, this.#backlog + sum('notices') / 1e6 - tickSeconds)
    this.#most.commands = Math.max(this.#most.commands, sum('commands') / tickSeconds)
    this.#most.bytes = Math.max(this.#most.bytes, sum('bytes') / tickSeconds)
    this.#gatewaySeconds += (sum('gateway') / 1e6) * this.#town.replicas
    this.#now = new Map()
  }

  outcome(): Outcome {
    return {
      peak: this.#peak,
      ...{ commandsPerSecond: this.#most.commands, bytesPerSecond: this.#most.bytes },
      ...(this.#first && { first: this.#first }),
      counts: Object.fromEntries(acts.map((act) => [act, this.#counts.get(act) ?? 0])) as Record<Act, number>,
      gatewaySeconds: this.#gatewaySeconds,
    }
  }
}

/** In µs of one gateway, of the node of the notices, of each other node, and of all nodes. */
interface Usage extends Readonly<Record<Part, number>> {
  readonly redis: number
  readonly commands: number
  readonly bytes: number
}

/**
 * What `count` acts take. The part that grows with the replicas is that of notices: one node sends
 * them all, and in a Cluster also to each other node. The rest is shared by the primaries.
 * @param single the same act with one Redis
 */
export function usageOf(line: Line, count: number, town: Pick<Town, 'replicas' | 'primaries'>, single: Line): Usage {
  const { replicas, primaries } = town
  const of = (kind: keyof Cost) => (line.base[kind] + line.perReplica[kind] * (replicas - 1)) * count
  const shared = { gateway: of('gateway') / replicas, commands: of('commands'), bytes: of('bytes') }
  if (primaries === undefined) return { ...shared, notices: of('redis'), otherNode: 0, redis: of('redis') }
  const others = 2 * primaries - 1
  const toEachNode = Math.max(0, line.perReplica.notices - single.perReplica.redis) / (measuredCluster.nodes - 1)
  const atEachOther = Math.max(0, line.perReplica.redis - line.perReplica.notices) / (measuredCluster.nodes - 1)
  const ofSessions = (line.base.redis / 2) * count * (1 / primaries)
  const notices = ofSessions + (single.perReplica.redis + toEachNode * others) * (replicas - 1) * count
  const otherNode = ofSessions + atEachOther * (replicas - 1) * count
  return { ...shared, notices, otherNode, redis: notices + otherNode * others }
}

/**
 * How many of an act can happen in a second until the node of the notices, or a gateway, is busy
 * with it for this share of its time. A gateway has other work besides.
 */
export function mostPerSecond(
  act: Act,
  town: Pick<Town, 'replicas' | 'primaries'>,
  share: number,
  { costs, single = costs }: { readonly costs: Costs; readonly single?: Costs },
): { readonly perSecond: number; readonly part: Part } {
  const usage = usageOf(costs.acts[act], 1, town, single.acts[act])
  const idle = usageOf(costs.idle, 1, town, single.idle)
  return parts
    .map((part) => ({ part, perSecond: Math.max(0, share * 1e6 - idle[part]) / usage[part] }))
    .reduce((least, each) => (each.perSecond < least.perSecond ? each : least))
}
