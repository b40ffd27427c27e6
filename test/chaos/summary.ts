// What a history has shown, as tables in Markdown.
import { allParts, Facts } from './facts.ts'
import type { Ending, Fault, HistoryEvent, Request, SignIn } from './history.ts'

type Asked = Request | SignIn | Ending

/** The operations of a history by kind and outcome, and what it took to recover from faults. */
export function summaryOf(history: readonly HistoryEvent[]): string {
  const facts = new Facts(history)
  const asked = [...facts.requests, ...facts.signIns.values(), ...facts.endings.filter(({ by }) => by !== 'provider')]
  const outcomes = [...new Set(asked.map(outcomeOf))].toSorted(compareOutcomes)
  const operations = [...Map.groupBy(asked, kindOf)].map(([kind, those]) => {
    const counts = outcomes.map((outcome) => those.filter((one) => outcomeOf(one) === outcome).length)
    return [kind, those.length, ...counts]
  })
  const recoveries = recoveriesOf(facts, asked)
  const faults = [...Map.groupBy(facts.faults, ({ kind }) => kind)].map(([kind, those]) => {
    const longest = Math.max(...those.map((fault) => recoveries.get(fault) ?? 0))
    return [kind, those.length, `${(longest / 1000).toFixed(1)} s`]
  })
  return [
    table(['operation', 'all', ...outcomes], operations),
    table(['fault', 'times', 'longest recovery'], faults),
  ].join('\n\n')
}

function kindOf(asked: Asked): string {
  return asked.type === 'request' ? asked.kind : asked.type === 'ending' ? asked.by : asked.type
}

function outcomeOf(asked: Asked): string {
  if (asked.status === undefined) return 'no response'
  const isDone = asked.type === 'request' ? asked.identity : asked.type === 'ending' ? asked.confirmed : asked.signedIn
  return isDone ? 'served' : (asked.code ?? 'no reason')
}

/** Served first, then the codes by name. */
function compareOutcomes(a: string, b: string): number {
  return Number(b === 'served') - Number(a === 'served') || a.localeCompare(b)
}

/**
 * From the end of each fault until the end of the last operation that failed because of it, in ms.
 * An operation that met several faults counts for the one that began last.
 */
function recoveriesOf(facts: Facts, asked: readonly Asked[]): ReadonlyMap<Fault, number> {
  const recoveries = new Map<Fault, number>()
  for (const one of asked) {
    if (['served', 'ERR_UNAUTHENTICATED'].includes(outcomeOf(one))) continue
    const made = facts.disturbances(allParts, one, one).filter(({ observed }) => observed !== true)
    const [fault] = made.toSorted((a, b) => b.begin - a.begin)
    if (fault !== undefined) recoveries.set(fault, Math.max(recoveries.get(fault) ?? 0, one.end - fault.end))
  }
  return recoveries
}

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}
