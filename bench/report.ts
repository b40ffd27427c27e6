// Tables in Markdown.
import { medianOf, type Measured, type Round } from './measure.ts'
import { isQuiet, spread, type Disturbed, type WarmUp } from './rounds.ts'
import type { Stand } from './stand.ts'

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map((_, column) => (column === 0 ? '---' : '--:'))), ...rows.map(line)].join('\n')
}

/** `12.3 (11.9–13.0)` */
export function withSpread(values: readonly number[], digits = 0): string {
  const { median, min, max } = spread(values)
  return `${median.toFixed(digits)} (${min.toFixed(digits)}–${max.toFixed(digits)})`
}

/** `3 of 3`; with disturbed rounds also how much of a processor other programs used (median). */
export function quietness(rounds: readonly Disturbed[]): string {
  const count = rounds.filter(isQuiet).length
  const foreign = spread(rounds.map((round) => round.foreign)).median
  const others = count === rounds.length ? '' : `, others ${(foreign * 100).toFixed(0)} %`
  return `${count} of ${rounds.length}${others}`
}

/** The seconds, and whether they were enough. */
export function warmedUp({ seconds, isStable }: WarmUp): string {
  return `${seconds.toFixed(1)}${isStable ? '' : ', not stable'}`
}

/**
 * A table of rounds: requests per second, latency, processor time, memory, and the ratio of the
 * processor time to that of the first contender.
 */
export function roundsTable(measured: ReadonlyMap<Stand, Measured>): string {
  const [first] = measured.values()
  const rows = [...measured].map(([stand, each]) => {
    const of = (figure: keyof Round, digits: number) => {
      const values = each.rounds.map((round) => round[figure])
      return withSpread(values, digits)
    }
    return [
      stand.title,
      medianOf(each, 'requestsPerSecond').toFixed(0),
      medianOf(each, 'p50').toFixed(2),
      of('p99', 2),
      of('cpu', 1),
      (medianOf(each, 'cpu') / medianOf(first, 'cpu')).toFixed(2),
      medianOf(each, 'support').toFixed(1),
      (medianOf(each, 'memory') / 2 ** 20).toFixed(0),
      warmedUp(each.warmUp),
      quietness(each.rounds),
    ]
  })
  const head = [
    '',
    'requests/s',
    'p50 ms',
    'p99 ms',
    'CPU µs/request',
    'times the first',
    'other side’s',
    'memory MB',
    'warm-up s',
    'quiet rounds',
  ]
  return table(head, rows)
}
