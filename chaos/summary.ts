// What a history has shown, as tables in Markdown.
import { Facts } from './facts.ts'
import type { Attempt, Fault, HistoryEvent } from './history.ts'

/** The operations of a history by kind and outcome, and what it took to recover from faults. */
export function summaryOf(history: readonly HistoryEvent[]): string {
  const facts = new Facts(history)
  const { attempts } = facts
  const outcomes = [...new Set(attempts.map(outcomeOf))].toSorted(compareOutcomes)
  const operations = [...Map.groupBy(attempts, kindOf)].map(([kind, those]) => {
    const counts = outcomes.map((outcome) => those.filter((one) => outcomeOf(one) === outcome).length)
    return [kind, those.length, ...counts]
  })
  const recoveries = recoveriesOf(facts)
  const faults = [...Map.groupBy(facts.faults, ({ kind }) => kind)].map(([kind, those]) => {
    const longest = Math.max(...those.map((fault) => recoveries.get(fault) ?? 0))
    return [kind, those.length, `${(longest / 1000).toFixed(1)} s`]
  })
  return [
    table(['operation', 'all', ...outcomes], operations),
    table(['fault', 'times', 'longest recovery'], faults),
  ].join('\n\n')
}

function kindOf(attempt: Attempt): string {
  switch (attempt.type) {
    case 'request':
      return attempt.unproved ? 'page without its key' : attempt.kind
    case 'ending':
      return attempt.by
    case 'proof':
      return `${attempt.purpose} of a key`
    case 'sign-in':
      return attempt.type
  }
}

function outcomeOf(attempt: Attempt): string {
  if (attempt.status === undefined) return 'no response'
  return isServed(attempt) ? 'served' : (attempt.code ?? 'no reason')
}

function isServed(attempt: Attempt): boolean {
  switch (attempt.type) {
    case 'request':
      return attempt.identity !== undefined
    case 'ending':
      return attempt.confirmed
    case 'proof':
      return attempt.proved
    case 'sign-in':
      return attempt.signedIn
  }
}

/** Served first, then the codes by name. */
function compareOutcomes(a: string, b: string): number {
  return Number(b === 'served') - Number(a === 'served') || a.localeCompare(b)
}

/** What fails later has another cause, in ms. */
const longestRecoveryMs = 10_000

/**
 * From the end of each fault until the end of the last operation that failed because of it, in ms.
 * An operation that met several faults counts for the one that began last.
 */
function recoveriesOf(facts: Facts): ReadonlyMap<Fault, number> {
  const recoveries = new Map<Fault, number>()
  for (const one of facts.attempts) {
    if (['served', 'ERR_UNAUTHENTICATED'].includes(outcomeOf(one))) continue
    const fault = facts.faults.findLast(
      ({ begin, end, observed, part, replicas = [one.replica] }) =>
        observed !== true &&
        part !== undefined &&
        begin <= one.end &&
        end + longestRecoveryMs >= one.begin &&
        replicas.some((replica) => replica === one.replica),
    )
    if (fault !== undefined) recoveries.set(fault, Math.max(recoveries.get(fault) ?? 0, one.end - fault.end))
  }
  return recoveries
}

/** A table in Markdown. */
export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}
