import { seeded } from '../test/support/random.ts'
import { type FaultKind, faults } from './faults.ts'

/** A fault as it was planned. */
export interface PlannedFault {
  readonly id: string
  readonly kind: FaultKind
  /** In ms: since the begin of the run, and until it is healed. */
  readonly at: number
  readonly lasts: number
  /** Of its targets. */
  readonly seed: number
}

/** A shorter run has no time for faults. */
export const shortestMinutes = 1.5

/** At the end of a run everything is in order for this time, in ms. */
const quietMs = 60_000
/** Before the first fault, in ms. */
const warmUpMs = 8_000
/**
 * From the beginning of one fault to the next, in ms. Where few faults overlap, more is judged;
 * where many do, more is tried.
 */
const between = { dense: [2_000, 6_000], sparse: [8_000, 16_000] } as const

/**
 * The faults of a run, by its seed. At most two are planned at the same time.
 * @param first the kind of the first fault, which lasts as long as such a fault may
 */
export function planFaults(seed: number, runMs: number, first?: FaultKind): PlannedFault[] {
  const random = seeded(seed)
  const weights = Object.fromEntries(Object.entries(faults).map(([kind, { weight }]) => [kind, weight])) as Record<
    FaultKind,
    number
  >
  const plan: PlannedFault[] = []
  const pause: readonly [number, number] = between[seed % 8 < 4 ? 'dense' : 'sparse']
  for (let at = warmUpMs; at < runMs - quietMs; at += random.between(...pause)) {
    const isFirst = plan.length === 0 && first !== undefined
    const kind = isFirst ? first : random.weighted(weights)
    const [shortest, longest] = faults[kind].lasts
    const lasts = isFirst ? longest : random.between(shortest, longest)
    const fault = { id: `f${plan.length + 1}`, kind, at, lasts, seed: random.below(2 ** 31) }
    const isCrowded = plan.filter((other) => other.at + other.lasts > at).length >= 2
    if (!isCrowded && at + fault.lasts < runMs - quietMs) plan.push(fault)
  }
  return plan
}
