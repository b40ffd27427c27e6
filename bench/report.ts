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

/** `all`, or `2 of 3` and how much of a processor other programs used (median). */
export function quietness(rounds: readonly Disturbed[]): string {
  const count = rounds.filter(isQuiet).length
  if (count === rounds.length) return 'all'
  const foreign = spread(rounds.map((round) => round.foreign)).median
  return `${count} of ${rounds.length}, others ${(foreign * 100).toFixed(0)} %`
}

/** Whether the rounds were quiet, and the warm-up before them was long enough. */
export function conditions(rounds: readonly Disturbed[], { isStable }: Pick<WarmUp, 'isStable'>): string {
  return `${quietness(rounds)}${isStable ? '' : '; not stable'}`
}

/**
 * A table of rounds: requests per second, latency, processor time, memory, and the ratio of the
 * processor time to that of the first contender. It has a column for the conditions unless all
 * rounds were quiet and all warm-ups long enough.
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
      (medianOf(each, 'memory') / 2 ** 20).toFixed(0),
      conditions(each.rounds, each.warmUp),
    ]
  })
  const head = ['', 'requests/s', 'p50 ms', 'p99 ms', 'CPU µs/request', 'times the first', 'memory MB', 'quiet rounds']
  const columns = rows.every((row) => row.at(-1) === 'all') ? -1 : head.length
  return table(
    head.slice(0, columns),
    rows.map((row) => row.slice(0, columns)),
  )
}

/** The processor time of the first contender: `Gatehouse, sessions in Redis: 33.9` */
export function firstProcessorTime(measured: ReadonlyMap<Stand, Measured>): string {
  return [...measured]
    .slice(0, 1)
    .map(([{ title }, each]) => `${title}: ${medianOf(each, 'cpu').toFixed(1)}`)
    .join()
}
