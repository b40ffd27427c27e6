// What the simulation says: tables and a picture.
import { table } from '../report.ts'
import { shortNumber, type Chart } from './chart.ts'
import type { Figures } from './figures.ts'
import { costsOf, mostPerSecond, simulate, type Act, type Costs, type Outcome, type Town } from './simulation.ts'

const usual = { morningHours: 3, requestsPerMinute: 20, sessionHours: 4, isSticky: true, seed: 1 } as const

interface Morning {
  readonly name: string
  readonly town: Town
}

const small = { ...usual, people: 1e6, replicas: 64, tokenMinutes: 60 }
const large = { ...usual, people: 1e7, replicas: 1_000, tokenMinutes: 60 }
const mornings: readonly Morning[] = [
  {
    name: '10⁵ people, 8 replicas, tokens of 5 minutes',
    town: { ...small, people: 1e5, replicas: 8, tokenMinutes: 5 },
  },
  { name: '10⁶ people, 64 replicas, tokens of 5 minutes', town: { ...small, tokenMinutes: 5 } },
  { name: '… tokens of an hour', town: small },
  { name: '… and a Cluster of 6 nodes', town: { ...small, primaries: 3 } },
  { name: '10⁷ people, 1,000 replicas, tokens of 5 minutes', town: { ...large, tokenMinutes: 5 } },
  { name: '… tokens of an hour', town: large },
  { name: '… and a Cluster of 6 nodes', town: { ...large, primaries: 3 } },
  { name: '… and a Cluster of 12 nodes', town: { ...large, primaries: 6 } },
]

const actNames: Readonly<Record<Act | 'idle', string>> = {
  request: 'requests',
  cold: 'sessions read from Redis',
  sign_in: 'sign-ins',
  refresh: 'refreshes',
  burst: 'Logout Tokens',
  idle: 'beats',
}
const partNames = { gateway: 'gateways', notices: 'node of the notices', otherNode: 'other nodes' } as const

/** The costs with one Redis, and in the Cluster. */
function costsIn(figures: Figures): { readonly single: Costs; readonly cluster: Costs } {
  const of = (name: string) => {
    const curve = figures[name]
    if (curve === undefined) throw new Error(`the simulation needs the curve ${name}: measure it first, with --write`)
    return costsOf(curve)
  }
  return { single: of('replicas'), cluster: of('cluster') }
}

/** How many processors each part needs at the busiest time, and what is exhausted first. */
export function morningsTable(figures: Figures): string {
  const { single, cluster } = costsIn(figures)
  const rows = mornings.map(({ name, town }) => {
    const outcome = simulate(town, town.primaries === undefined ? single : cluster, single)
    const { peak, commandsPerSecond, bytesPerSecond } = outcome
    const processors = (['gateway', 'notices', 'otherNode'] as const).map((part) =>
      peak[part].share === 0 ? '—' : shortNumber(peak[part].share),
    )
    return [name, ...processors, shortNumber(commandsPerSecond), shortNumber(bytesPerSecond / 1e6), firstText(outcome)]
  })
  const head = ['', 'gateway', 'notices', 'other node', 'commands/s', 'MB/s', 'exhausted first']
  return table(head, rows)
}

function firstText({ first }: Outcome): string {
  if (first === undefined) return 'nothing'
  return `${partNames[first.part]}, by ${actNames[first.by]}`
}

const replicaCounts = [1, 4, 16, 64, 256, 1_000]
/** The share of a processor that announcements may take. The rest is for everything else. */
const share = 0.5

const announcements = [
  { name: 'Logout Tokens/s, one Redis', act: 'burst', primaries: undefined },
  { name: 'Logout Tokens/s, Cluster of 6', act: 'burst', primaries: 3 },
  { name: 'Logout Tokens/s, Cluster of 12', act: 'burst', primaries: 6 },
  { name: 'refreshes/s, one Redis', act: 'refresh', primaries: undefined },
  { name: 'refreshes/s, Cluster of 6', act: 'refresh', primaries: 3 },
] as const

function mostOf(figures: Figures, { act, primaries }: (typeof announcements)[number], replicas: number) {
  const { single, cluster } = costsIn(figures)
  const costs = primaries === undefined ? single : cluster
  return mostPerSecond(act, { replicas, ...(primaries && { primaries }) }, share, { costs, single })
}

/** How many announcements a second keep a processor half busy, and which one. */
export function announcementsTable(figures: Figures): string {
  const rows = announcements.map((kind) => [
    kind.name,
    ...replicaCounts.map((replicas) => {
      const { perSecond, part } = mostOf(figures, kind, replicas)
      return `${shortNumber(perSecond)}${part === 'gateway' ? ' (g)' : ''}`
    }),
  ])
  return table(['replicas', ...replicaCounts.map(shortNumber)], rows)
}

export function announcementsChart(figures: Figures): Chart {
  const lines = announcements.map((kind) => ({
    name: kind.name,
    points: replicaCounts
      .map((replicas) => ({ x: replicas, y: mostOf(figures, kind, replicas).perSecond }))
      .filter(({ y }) => y > 0),
  }))
  return {
    title: 'Announcements that keep a processor half busy (simulated)',
    xName: 'replicas',
    yName: 'in a second',
    lines,
  }
}
