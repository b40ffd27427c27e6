// Tables in Markdown.
import { counting, isQuiet, spread, type Round } from './measure.ts'
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

/** What rounds gave: requests per second, latency, processor time, memory, and how often the first one's cost each costs. */
export function roundsTable(measured: ReadonlyMap<Stand, readonly Round[]>): string {
  const cpu = (rounds: readonly Round[]) => spread(counting(rounds).map((round) => round.cpu)).median
  const [first = []] = measured.values()
  const rows = [...measured].map(([stand, all]) => {
    const rounds = counting(all)
    const of = (figure: keyof Round, digits = 0) =>
      withSpread(
        rounds.map((round) => round[figure]),
        digits,
      )
    const memory = spread(rounds.map((round) => round.memory)).median / 2 ** 20
    return [
      stand.title,
      of('requestsPerSecond'),
      of('p50', 2),
      of('p99', 2),
      of('cpu', 1),
      memory.toFixed(0),
      (cpu(all) / cpu(first)).toFixed(2),
      `${all.filter(isQuiet).length}/${all.length}`,
    ]
  })
  const head = [
    '',
    'requests/s',
    'p50 ms',
    'p99 ms',
    'CPU µs/request',
    'memory MB',
    'CPU, of the first',
    'quiet rounds',
  ]
  return table(head, rows)
}
