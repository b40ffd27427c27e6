// The measured figures as they are kept in `figures.json`, and their table and picture.
import { table } from '../report.ts'
import { shortNumber, type Chart } from './chart.ts'
import { growthOf, type Growth, type Middle, type Point } from './curve.ts'
import type { Cost, Operation } from './operations.ts'

/** By the name of the curve. */
export type Figures = Readonly<Record<string, CurveFigures>>

export interface CurveFigures {
  readonly axis: string
  readonly date: string
  readonly node: string
  readonly processor: string
  readonly rounds: number
  /** How many processors other programs used during a round. */
  readonly foreign: Middle
  readonly points: readonly PointFigures[]
}

export interface PointFigures {
  readonly x: number
  /** The resident memory of a gateway process at the end, and the data in one Redis, in bytes. */
  readonly gatewayBytes: number
  readonly redisBytes: number
  readonly costs: Partial<Record<Operation, Readonly<Record<keyof Cost, Middle>>>>
}

const names: Readonly<Record<Operation, string>> = {
  idle: 'a second without requests',
  request: 'a request, session in memory',
  cold: 'a request, session read from Redis',
  sign_in: 'a sign-in',
  refresh: 'a request that refreshes tokens',
  logout: 'a Logout Token',
  burst: 'a Logout Token, 64 at a time',
  reload: 'a reload',
}

interface Series {
  readonly name: string
  readonly points: readonly Point[]
  readonly growth: Growth
}

/** The operations for which the time of Redis is reported: the others hardly use it. */
const withRedis: ReadonlySet<Operation> = new Set<Operation>(['idle', 'cold', 'sign_in', 'refresh', 'logout', 'burst'])

function seriesOf({ points }: CurveFigures): readonly Series[] {
  const series = (name: string, of: (point: PointFigures) => Middle): Series => {
    const all = points.map((point) => ({ x: point.x, y: of(point) }))
    return { name, points: all, growth: growthOf(all) }
  }
  const operations = Object.keys(points[0]?.costs ?? {}) as Operation[]
  const costs = (operation: Operation, kind: keyof Cost) => (point: PointFigures) =>
    point.costs[operation]?.[kind] ?? { median: NaN, low: NaN, high: NaN }
  const memory = (of: (point: PointFigures) => number) => (point: PointFigures) => {
    const mib = Math.round(of(point) / 2 ** 20)
    return { median: mib, low: mib, high: mib }
  }
  return [
    ...operations.map((operation) => series(names[operation], costs(operation, 'gateway'))),
    ...operations
      .filter((operation) => withRedis.has(operation))
      .map((operation) => series(`${names[operation]}: Redis`, costs(operation, 'redis'))),
    series(
      'memory of a process, MiB',
      memory(({ gatewayBytes }) => gatewayBytes),
    ),
    series(
      'memory of Redis, MiB',
      memory(({ redisBytes }) => redisBytes),
    ),
  ]
}

/**
 * Medians in µs with the ratio to the smallest size, and how far half of the rounds were from it at
 * most. Costs that do not grow have a line of their own.
 */
export function tableOf(figures: CurveFigures): string {
  const { axis, date, node, processor, rounds, foreign, points } = figures
  const series = seriesOf(figures)
  const rows = series
    .filter(({ growth }) => growth.verdict !== 'flat')
    .map(({ name, points: all, growth }) => {
      const first = all[0]?.y.median ?? NaN
      const cells = all.map(({ y: { median } }, n) =>
        n === 0 ? shortNumber(median) : `${shortNumber(median)} (× ${(median / first).toFixed(2)})`,
      )
      const differ = Math.max(...all.map(({ y: { median, low, high } }) => (high - low) / 2 / median))
      return [name, ...cells, `± ${(differ * 100).toFixed(0)} %`, verdictOf(growth)]
    })
  const flat = series
    .filter(({ growth }) => growth.verdict === 'flat')
    .map(
      ({ name, points: all }) =>
        `${name} (${[all[0], all.at(-1)].map((point) => shortNumber(point?.y.median ?? NaN)).join(', ')})`,
    )
  const others = `Other programs used ${foreign.median.toFixed(2)} processors (half of the rounds: ${foreign.low.toFixed(2)} to ${foreign.high.toFixed(2)}).`
  return [
    `${date}, Node.js ${node.slice(1)}, ${processor}, ${rounds} rounds in turn. ${others}`,
    ...(rows.length === 0 ? [] : [table([axis, ...points.map(({ x }) => shortNumber(x)), 'rounds', 'verdict'], rows)]),
    ...(flat.length === 0 ? [] : [`Flat, at the smallest and at the largest size: ${flat.join('; ')}.`]),
  ].join('\n\n')
}

function verdictOf({ verdict, slope }: Growth): string {
  return verdict === 'flat' || verdict === 'unclear' ? verdict : `${verdict}, ${shortNumber(slope)} each`
}

/** Each line begins at 1, so that lines of different costs can be compared. */
export function chartOf(figures: CurveFigures): Chart {
  const lines = seriesOf(figures)
    .filter(({ name }) => !name.endsWith(': Redis') && name !== names.reload)
    .map(({ name, points }) => {
      const [first] = points
      const base = first?.y.median ?? NaN
      return {
        name: name
          .replace(', session', ':')
          .replace(' of a process, MiB', ', gateway')
          .replace(' of Redis, MiB', ', Redis'),
        points: points.map(({ x, y }) => ({ x, y: y.median / base, from: y.low / base, to: y.high / base })),
      }
    })
  return { title: `Cost by ${figures.axis}`, xName: figures.axis, yName: 'times the smallest', lines }
}
