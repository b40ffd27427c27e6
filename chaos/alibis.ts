// What excuses a failure: what the world itself did to a process, what the proxies saw on a link,
// and how long processes waited for a processor. The word of the gateway does not count.
import { bounds } from './bounds.ts'
import type { Fault, HistoryEvent, Part, Stall, Touch } from './history.ts'
import { applicationOf } from './parties.ts'

export interface Span {
  readonly begin: number
  readonly end: number
}

/** A part of the world: of a replica and an application, or of any where one is not named. */
export interface Place {
  readonly replica?: string | undefined
  readonly application?: string | undefined
  /** The party that connects to the replica; empty for one without a name. */
  readonly client?: string | undefined
}

/** Something that was in the way, at a replica or, without one, everywhere. */
export interface Cause extends Span {
  readonly kind: string
  readonly part: Part
  readonly replica?: string | undefined
  readonly application?: string | undefined
  readonly client?: string | undefined
  /** Whether it takes effect by its length only: bytes were late. */
  readonly isDelay: boolean
  readonly event: Fault | Touch
}

const allParts = Object.keys(bounds.recovery) as readonly Part[]

/** Finds what overlaps with a time. */
class Spans<T extends Span> {
  readonly #sorted: readonly T[]
  readonly #longest: number

  constructor(spans: readonly T[]) {
    this.#sorted = spans.toSorted((a, b) => a.begin - b.begin)
    this.#longest = spans.reduce((longest, { begin, end }) => Math.max(longest, end - begin), 0)
  }

  within({ begin, end }: Span): T[] {
    let [low, high] = [0, this.#sorted.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#sorted[middle] as T).begin < begin - this.#longest) low = middle + 1
      else high = middle
    }
    const found: T[] = []
    for (let at = low; at < this.#sorted.length; at += 1) {
      const span = this.#sorted[at] as T
      if (span.begin > end) break
      if (span.end >= begin) found.push(span)
    }
    return found
  }
}

export class Alibis {
  /** By part, and by replica; those of all replicas have the key of the part only. */
  readonly #causes: ReadonlyMap<string, Spans<Cause>>
  readonly #stalls: ReadonlyMap<string, Spans<Stall>>

  constructor(history: readonly HistoryEvent[], replicas: readonly string[]) {
    const causes = history.flatMap((event) =>
      event.type === 'touch' ? [causeOfTouch(event, replicas)] : event.type === 'fault' ? causesOfFault(event) : [],
    )
    const byPlace = Map.groupBy(causes, ({ part, replica = '' }) => `${part} ${replica}`)
    this.#causes = new Map([...byPlace].map(([key, those]) => [key, new Spans(those)]))
    const stalls = Map.groupBy(
      history.filter((event) => event.type === 'stall'),
      (stall) => stall.of,
    )
    this.#stalls = new Map([...stalls].map(([of, those]) => [of, new Spans(those)]))
  }

  /** What was in the way of an operation, or ended so shortly before that it may still matter. */
  disturbances(parts: readonly Part[], { begin, end }: Span, place: Place = {}): Cause[] {
    return parts.flatMap((part) => {
      const span = { begin: begin - bounds.recovery[part], end }
      return this.#at(part, place.replica).flatMap((causes) => causes.within(span).filter(concerns(place)))
    })
  }

  /**
   * What explains that an operation failed: a process or a connection that was cut, or that was
   * late for as long as the gateway waits. What happened between nodes of the store explains
   * nothing: a replica that meets it gets an error on its own connection.
   */
  causes(parts: readonly Part[], span: Span, place: Place): Cause[] {
    return parts.flatMap((part) => {
      const near = this.disturbances([part], span, place).filter(isOnItsWay)
      const cuts = near.filter(({ isDelay, kind }) => !isDelay && kind !== 'WAIT')
      if (cuts.length > 0) return cuts
      const delays = near.filter(({ isDelay }) => isDelay)
      const long = delays.filter(({ begin, end }) => end - begin >= bounds.patience)
      return length(delays.flatMap(clippedTo(span))) >= bounds.patience ? delays : long
    })
  }

  /** Whether too few replicas of Redis acknowledged an ending in time: the ending gets 503. */
  isUnacknowledged({ begin, end }: Span, replica: string | undefined): boolean {
    return this.disturbances(['store'], { begin: begin + bounds.recovery.store, end }, { replica }).some(
      ({ kind }) => kind === 'WAIT',
    )
  }

  /** How long the processes of a replica, and the world, waited for a processor in this time. */
  stalled({ begin, end }: Span, replica: string | undefined): number {
    const stalls = ['world', replica ?? ''].flatMap((of) => this.#stalls.get(of)?.within({ begin, end }) ?? [])
    return stalls.reduce((sum, stall) => {
      const within = Math.min(end, stall.end) - Math.max(begin, stall.begin)
      return sum + stall.ms * Math.min(1, within / Math.max(1, stall.end - stall.begin))
    }, 0)
  }

  /**
   * How much of this time links and processes were late or away, in ms: of a place, and what
   * `others` names.
   */
  late(span: Span, place: Place, others: readonly Cause[] = []): number {
    const inTheWay = [...this.disturbances(allParts, span, place).filter(isOnItsWay), ...others]
    const spans = inTheWay.map((cause) => ({ begin: cause.begin, end: overAt(cause) }))
    return length(spans.flatMap(clippedTo(span))) + this.stalled(span, place.replica)
  }

  #at(part: Part, replica: string | undefined): Spans<Cause>[] {
    const everywhere = this.#causes.get(`${part} `) ?? []
    const keys = [...this.#causes.keys()].filter((key) => key.startsWith(`${part} `) && key !== `${part} `)
    const here = replica === undefined ? keys : [`${part} ${replica}`]
    return [everywhere, ...here.map((key) => this.#causes.get(key) ?? [])].flat()
  }
}

/** The length of all spans together, in which they overlap or not. */
function length(spans: readonly Span[]): number {
  let [sum, until] = [0, -Infinity]
  for (const { begin, end } of spans.toSorted((a, b) => a.begin - b.begin)) {
    sum += Math.max(0, end - Math.max(begin, until))
    until = Math.max(until, end)
  }
  return sum
}

/** Until when it keeps operations from going on. After a short delay, they go on at once. */
export function overAt({ begin, end, part, isDelay }: Cause): number {
  return isDelay && end - begin < bounds.patience ? end : end + bounds.recovery[part]
}

/** Whether an operation meets it: not what happens between nodes of the store. */
function isOnItsWay({ event, replica, client }: Cause): boolean {
  return event.type === 'fault' || replica !== undefined || client !== undefined
}

const clippedTo =
  ({ begin, end }: Span) =>
  (span: Span): Span[] =>
    span.begin < end && span.end > begin ? [{ begin: Math.max(begin, span.begin), end: Math.min(end, span.end) }] : []

const concerns =
  ({ application, client }: Place) =>
  (cause: Cause): boolean =>
    matches(cause.application, application) && matches(cause.client, client)

function matches(concerned: string | undefined, here: string | undefined): boolean {
  return concerned === undefined || here === undefined || concerned === here
}

function causeOfTouch(event: Touch, replicas: readonly string[]): Cause {
  const { part, from, to, how, code, begin, end } = event
  const replica = part === 'clients' ? to : replicas.includes(from) ? from : undefined
  return {
    ...{ kind: code ?? how, part, replica, begin, end, event, isDelay: how === 'held' || how === 'silent' },
    ...(part === 'application' && { application: applicationOf(to) }),
    ...((part === 'clients' || from.startsWith('browser ')) && { client: from }),
  }
}

/** What the world did to processes; other primaries of the store, which lose notices and writes. */
function causesOfFault(event: Fault): Cause[] {
  const { kind, part, replicas = [undefined], begin, end } = event
  if (part !== 'replica' && part !== 'clock' && kind !== 'roles') return []
  return replicas.map((replica) => ({ kind, part: part ?? 'store', replica, begin, end, event, isDelay: false }))
}
