// Tables in Markdown.
import { isQuiet, medianOf, spread, type Round } from './measure.ts'
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

/**
 * A table of rounds: requests per second, latency, processor time, memory, and the ratio of the
 * processor time to that of the first contender.
 */
export function roundsTable(measured: ReadonlyMap<Stand, readonly Round[]>): string {
  const [first] = measured.values()
  const rows = [...measured].map(([stand, rounds]) => {
    const of = (figure: keyof Round, digits = 0) => {
      const values = rounds.map((round) => round[figure])
      return withSpread(values, digits)
    }
    return [
      stand.title,
      of('requestsPerSecond'),
      of('p50', 2),
      of('p99', 2),
      of('cpu', 1),
      medianOf(rounds, 'support').toFixed(1),
      (medianOf(rounds, 'memory') / 2 ** 20).toFixed(0),
      (medianOf(rounds, 'cpu') / medianOf(first, 'cpu')).toFixed(2),
      `${rounds.filter(isQuiet).length} of ${rounds.length}`,
    ]
  })
  const head = [
    '',
    'requests/s',
    'p50 ms',
    'p99 ms',
    'CPU µs/request',
    'other side’s',
    'memory MB',
    'CPU, times the first',
    'quiet rounds',
  ]
  return table(head, rows)
}
