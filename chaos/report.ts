// What a judgement says to its reader.
import type { Finding } from './checker.ts'
import type { HistoryEvent, Run } from './history.ts'
import type { Count, Judgement, Share } from './judge.ts'
import type { LogLine } from './logs.ts'
import { table } from './summary.ts'

/** Findings of one cause follow each other within this time, in ms. */
const oneCauseMs = 10_000
/**
 * What else happened to the person of a finding: so long before and after it, in ms, and so much.
 */
const [aroundMs, aroundCount] = [3_000, 6]
/** Causes beyond these are only counted, for each property. */
const shownCauses = 5

/** The findings that one cause has made: they say the same of other operations, soon after. */
export function causesOf(findings: readonly Finding[]): Finding[][] {
  const causes: Finding[][] = []
  for (const finding of findings.toSorted((a, b) => timeOf(a) - timeOf(b))) {
    const last = causes.findLast(([first]) => first !== undefined && likenessOf(first) === likenessOf(finding))
    const before = last?.at(-1)
    if (before !== undefined && timeOf(finding) - timeOf(before) <= oneCauseMs) last?.push(finding)
    else causes.push([finding])
  }
  return causes
}

const startOf = (event: HistoryEvent) => ('begin' in event ? event.begin : event.at)
const timeOf = ({ events }: Finding) => Math.max(0, ...events.map(startOf))
/** The sentence without its operation and numbers: the page r7, a form, and so on. */
const likenessOf = ({ property, sentence }: Finding) =>
  property + sentence.replace(/^The [\w-]+ (?=[a-z]+\d+)/, '').replace(/\b[a-z]*\d[\d.]*\b/g, '')

/** The findings, what was judged and what was done, as Markdown. */
export function reportOf(
  { verdict, findings, shares, counts, doubts }: Judgement,
  history: readonly HistoryEvent[],
  logs: ReadonlyMap<string, LogLine>,
): string {
  const byProperty = Map.groupBy(causesOf(findings), ([first]) => first?.property)
  const shown = [...byProperty].flatMap(([property, causes]) => [
    ...causes.slice(0, shownCauses).map((cause) => findingText(cause, history, logs)),
    ...(causes.length > shownCauses ? [`✖ ${property}: ${causes.length - shownCauses} causes more`] : []),
  ])
  return [
    table(['had it been a …', 'tried', 'judged', 'excused by'], shares.map(shareRow)),
    table(['what happened', 'times', 'at least'], counts.map(countRow)),
    ...shown,
    ...doubts.map((doubt) => `? ${doubt}`),
    `${{ held: '✔', found: '✖', 'could not judge': '?' }[verdict]} ${verdict}`,
  ].join('\n\n')
}

function shareRow({ kind, tried, judged, excuses }: Share): (string | number)[] {
  const often = [...excuses].toSorted(([, a], [, b]) => b - a).slice(0, 4)
  const percent = (count: number) => `${Math.round((100 * count) / Math.max(1, tried))} %`
  return [kind, tried, percent(judged), often.map(([excuse, count]) => `${excuse} ${percent(count)}`).join(', ')]
}

function countRow({ what, count, least }: Count): (string | number)[] {
  return [what, count, least]
}

function findingText(
  [first, ...more]: readonly Finding[],
  history: readonly HistoryEvent[],
  logs: ReadonlyMap<string, LogLine>,
): string {
  if (first === undefined) return ''
  const run = history.find((event): event is Run => event.type === 'run')
  const wallClock = new Date((run?.wallClock ?? 0) + timeOf(first) - (run?.at ?? 0)).toISOString()
  const lineOf = (event: HistoryEvent) => `    ${JSON.stringify(event)}${logPlace(event, logs)}`
  const others = around(first, history)
  return [
    `✖ ${first.property}: ${first.sentence}${more.length > 0 ? ` (and ${more.length} alike)` : ''}`,
    `  ${wallClock}`,
    ...first.events.map(lineOf),
    ...(others.length > 0 ? ['  Around it, of the same person:', ...others.map(lineOf)] : []),
  ].join('\n')
}

/** The file, the line and the worker of an operation. Its `X-Request-Id` is its name. */
function logPlace(event: HistoryEvent, logs: ReadonlyMap<string, LogLine>): string {
  const line = logs.get('request' in event ? event.request : 'id' in event ? event.id : '')
  return line === undefined ? '' : ` → ${line.file}:${line.line}`
}

function around(finding: Finding, history: readonly HistoryEvent[]): HistoryEvent[] {
  const person = finding.events.map((event) => ('person' in event ? event.person : undefined)).find(Boolean)
  const at = timeOf(finding)
  const near = history.filter(
    (event) =>
      'person' in event &&
      event.person === person &&
      Math.abs(startOf(event) - at) <= aroundMs &&
      !finding.events.includes(event),
  )
  return near.toSorted((a, b) => Math.abs(startOf(a) - at) - Math.abs(startOf(b) - at)).slice(0, aroundCount)
}
