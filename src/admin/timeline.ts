import type { SessionKey } from '../core/names.ts'
import type { Audit, AuditEvents, Cause } from '../observe/audit.ts'
import type { EndingReach } from '../observe/processes.ts'

/**
 * The end of a session, or an order to end some, and its result. It contains only what audit events
 * contain, and how the end reached the processes.
 */
export interface TimelineEvent {
  /** In ms since the epoch. */
  readonly at: number
  /** `end`: sessions ended for another reason, which is in `by`. */
  readonly kind: 'logout_token' | 'frame' | 'signal' | 'end'
  readonly outcome: 'obeyed' | 'replayed' | 'refused' | 'ignored' | 'not_now'
  /** See `by` in the audit event `session.ended`. */
  readonly by?: string
  /** What a signal says, and what the gateway did. */
  readonly signal?: string
  readonly iss?: string | undefined
  readonly sid?: string | undefined
  readonly sub?: string | undefined
  /** How many sessions it matched. */
  readonly matched?: number
  /** Why it was refused, had no effect, or could not be carried out. */
  readonly reason?: string
  /** The ID of its request. */
  readonly request?: string | undefined
  /** Absent: no session ended, or no other process shares the store. */
  readonly reach?: EndingReach
}

type Group = 'provider' | 'people' | 'without_effect'

/**
 * How many events are kept of each group. Separate lists prevent refused tokens and sign-outs of
 * people from displacing the orders of the provider.
 */
const maxEvents = 30
/** The longest text that is kept, in characters, because clients choose these texts. */
const longestText = 200
/** How many notices of one event are kept. A Logout Token ends 200 sessions with each. */
const maxReaches = 50
/** How many sessions may wait for their audit event. */
const maxReachedSessions = 2_000
/** How long the ends of one person without a request count as one event, in ms. */
const sameEventMs = 10_000

/** Who ended sessions because of an order of the provider, which has its own audit event. */
const byOrder = new Set(['provider', 'provider_frame', 'signal'])

interface Kept {
  event: Omit<TimelineEvent, 'reach'>
  readonly reaches: Set<EndingReach>
}

/** The latest ends of sessions, and the latest orders to end some. */
export class Timeline {
  readonly #lists: Readonly<Record<Group, Kept[]>> = { provider: [], people: [], without_effect: [] }
  readonly #reachOf = new Map<SessionKey, EndingReach>()

  /** In reverse chronological order. */
  get latest(): readonly TimelineEvent[] {
    const all = Object.values(this.#lists).flat()
    return latestOf([
      all.map(({ event, reaches }) => ({ ...event, ...(reaches.size > 0 && { reach: mergedReach([...reaches]) }) })),
    ])
  }

  /** Sessions ended in the store, and this is how the notice reached the processes. */
  reached(keys: readonly SessionKey[], reach: EndingReach): void {
    for (const key of keys) {
      this.#reachOf.delete(key)
      this.#reachOf.set(key, reach)
    }
    for (const oldest of this.#reachOf.keys()) {
      if (this.#reachOf.size <= maxReachedSessions) break
      this.#reachOf.delete(oldest)
    }
  }

  /**
   * Wraps an audit and keeps its events about ends of sessions.
   * @param now in ms since the epoch
   */
  watching(audit: Audit, now: () => number): Audit {
    return {
      record: (event, fields, cause) => {
        if (event === 'session.ended' || event === 'key.ended')
          this.#end(fields as AuditEvents['session.ended'], now(), cause)
        const order = orderOf(event, fields)
        if (order !== undefined) this.#order({ at: now(), ...order, ...requestOf(cause) })
        audit.record(event, fields, cause)
      },
    }
  }

  #end({ session, by, iss, sub, sid }: AuditEvents['session.ended'], at: number, cause: Cause | undefined): void {
    const list = this.#lists[byOrder.has(by) ? 'provider' : 'people']
    const event = { at, kind: 'end', outcome: 'obeyed', by, ...named({ iss, sub, sid }), ...requestOf(cause) } as const
    const known = list.find((kept) => isSameEnd(kept.event, event))
    if (known !== undefined) known.event = { ...known.event, at, matched: (known.event.matched ?? 0) + 1 }
    const kept = known ?? add(list, { ...event, matched: 1 })
    const reach = this.#reachOf.get(session)
    this.#reachOf.delete(session)
    if (reach !== undefined && kept.reaches.size < maxReaches) kept.reaches.add(reach)
  }

  /**
   * The event of an order comes after the events of the sessions that it ended, and replaces them.
   */
  #order(event: Omit<TimelineEvent, 'reach'>): void {
    const { provider, without_effect } = this.#lists
    const ends = event.outcome === 'obeyed' ? provider.filter((kept) => isCausedBy(kept.event, event)) : []
    const kept = add(event.outcome === 'obeyed' ? provider : without_effect, event)
    for (const end of ends) {
      provider.splice(provider.indexOf(end), 1)
      for (const reach of end.reaches) kept.reaches.add(reach)
    }
  }
}

/** Joins lists, the latest events first. */
export function latestOf(lists: readonly (readonly TimelineEvent[])[]): readonly TimelineEvent[] {
  return lists.flat().toSorted((a, b) => b.at - a.at)
}

function add(list: Kept[], event: Kept['event']): Kept {
  const kept: Kept = { event, reaches: new Set() }
  list.unshift(kept)
  if (list.length > maxEvents) list.pop()
  return kept
}

function isSameEnd(known: TimelineEvent, event: TimelineEvent): boolean {
  if (known.kind !== 'end' || known.by !== event.by || known.request !== event.request) return false
  return event.request !== undefined || (known.sub === event.sub && event.at - known.at < sameEventMs)
}

/** Whether an end belongs to an order. Orders of a poll have no request. */
function isCausedBy(end: TimelineEvent, { at, request, sid, sub }: TimelineEvent): boolean {
  if (end.kind !== 'end' || end.request !== request) return false
  const isNamed = (sid !== undefined && end.sid === sid) || (sub !== undefined && end.sub === sub)
  return request !== undefined || (isNamed && at - end.at < sameEventMs)
}

function requestOf(cause: Cause | undefined): { readonly request?: string } {
  return cause === undefined ? {} : { request: cause.request }
}

/** The slowest confirmation of each process, over all notices of an ending. */
function mergedReach(reaches: readonly EndingReach[]): EndingReach {
  const slowest = new Map<string, number>()
  for (const { process, ms } of reaches.flatMap(({ confirmed }) => confirmed))
    slowest.set(process, Math.max(ms, slowest.get(process) ?? 0))
  return {
    confirmed: [...slowest].map(([process, ms]) => ({ process, ms })).toSorted((a, b) => a.ms - b.ms),
    missing: Math.max(...reaches.map(({ missing }) => missing)),
    absent: [...new Set(reaches.flatMap(({ absent }) => absent))],
  }
}

type Order = Omit<TimelineEvent, 'at' | 'request' | 'reach' | 'by'>

function orderOf<E extends keyof AuditEvents>(event: E, fields: AuditEvents[E]): Order | undefined
function orderOf(event: keyof AuditEvents, fields: object): Order | undefined {
  const [subject = '', result = ''] = event.split('.')
  const kind = ({ logout_token: 'logout_token', frontchannel_logout: 'frame', signal: 'signal' } as const)[subject]
  if (kind === undefined) return undefined
  if (result === 'refused') return { kind, ...refused(fields as AuditEvents['logout_token.refused']) }
  const outcome = result as 'obeyed' | 'replayed' | 'ignored'
  return { kind, outcome, ...named(fields), ...(kind === 'signal' && signalOf(fields)) }
}

type Named = Pick<Order, 'iss' | 'sid' | 'sub' | 'matched'>

function named({ iss, sid, sub, ended, matched = ended }: Named & { readonly ended?: number }): Named {
  return { iss: cut(iss), sid: cut(sid), sub: cut(sub), ...(matched === undefined ? {} : { matched }) }
}

function signalOf(fields: object): Pick<Order, 'signal' | 'reason'> {
  const { event, action, reason } = fields as Partial<AuditEvents['signal.obeyed'] & AuditEvents['signal.ignored']>
  return {
    signal: cut([event, action].filter((text) => text !== undefined).join(': ')),
    ...(reason === undefined ? {} : { reason: cut(reason) }),
  }
}

function refused({ code, reason }: AuditEvents['logout_token.refused']): Pick<Order, 'outcome' | 'reason'> {
  return { outcome: code.endsWith('_UNAVAILABLE') ? 'not_now' : 'refused', reason: cut(reason) ?? code }
}

function cut<T extends string | undefined>(text: T): string | T {
  return text !== undefined && text.length > longestText ? `${text.slice(0, longestText)}…` : text
}
