import type { UpstreamConfig } from '../../config/model/upstream.ts'
import type { Target } from './target.ts'

/** A target, as one upstream uses it. */
export interface Candidate {
  readonly target: Target
  readonly weight: number
  readonly backup: boolean
  /** How many connections to it may be open. */
  readonly limit: number
  /** Its hash for sticky sessions. */
  readonly hash: number
  /** Its turn in round robin: the candidate with the most credit gets the next request. */
  credit: number
}

type Settings = Pick<Candidate, 'weight' | 'backup' | 'limit'>

/**
 * A candidate from a target and its settings in the configuration.
 * @param known the former candidate of this target, whose credit the new one keeps
 */
export function candidate(target: Target, { weight, backup, limit }: Settings, known?: Candidate): Candidate {
  return { target, weight, backup, limit, hash: hashOf(target.name), credit: known?.credit ?? 0 }
}

type BalanceConfig = Pick<UpstreamConfig, 'balance' | 'slowStartMs'>

/** Chooses the target of each request. */
export class Balancer {
  readonly #config: BalanceConfig

  constructor(config: BalanceConfig) {
    this.#config = config
  }

  /**
   * @param session of the request; absent: it has none
   * @param except the target that the request was sent to before. With it, only a target that is
   * available is chosen
   * @returns `undefined` when there is no candidate
   */
  choose(candidates: readonly Candidate[], session?: string, except?: Candidate): Candidate | undefined {
    const usable = usableOf(candidates, except)
    if (usable.length < 2) return usable[0]
    const { balance } = this.#config
    if (balance === 'sticky' && session !== undefined) return this.#forSession(usable, hashOf(session))
    // At a target without a free connection, the request would wait.
    const free = usable.filter(({ target, limit }) => target.open < limit)
    const chosen = free.length === 0 ? usable : free
    return balance === 'round_robin' ? this.#nextInTurn(chosen) : this.#leastBusy(chosen)
  }

  /** The weight of a candidate, which is lower during a slow start. */
  #weightOf({ target, weight }: Candidate): number {
    return weight * target.health.share(this.#config.slowStartMs)
  }

  /**
   * Weighted round robin: each candidate gets its weight as credit, and the chosen one pays the sum
   * of all weights. So requests alternate, also with unequal weights.
   */
  #nextInTurn(usable: readonly Candidate[]): Candidate | undefined {
    let sum = 0
    let best: Candidate | undefined
    for (const each of usable) {
      const weight = this.#weightOf(each)
      sum += weight
      each.credit += weight
      if (best === undefined || each.credit > best.credit) best = each
    }
    if (best !== undefined) best.credit -= sum
    return best
  }

  /** Candidates that are equally busy take turns. */
  #leastBusy(usable: readonly Candidate[]): Candidate | undefined {
    const busyness = (each: Candidate) => (each.target.open + 1) / this.#weightOf(each)
    const least = Math.min(...usable.map(busyness))
    return this.#nextInTurn(usable.filter((each) => busyness(each) <= least))
  }

  /**
   * Rendezvous hashing with weights: when a target is added or removed, only the sessions move that
   * it gets or had.
   */
  #forSession(usable: readonly Candidate[], session: number): Candidate | undefined {
    let best: Candidate | undefined
    let highest = -Infinity
    for (const each of usable) {
      // Between 0 and 1, both excluded.
      const fraction = (mixed(session ^ each.hash) + 0.5) / 2 ** 32
      const score = -this.#weightOf(each) / Math.log(fraction)
      if (score <= highest) continue
      highest = score
      best = each
    }
    return best
  }
}

/**
 * The candidates that may get a request: those that are available, or the available backups. When
 * nothing is available, all may get it, because one of them may work again.
 */
function usableOf(candidates: readonly Candidate[], except: Candidate | undefined): readonly Candidate[] {
  const available = candidates.filter((each) => each !== except && each.target.health.isAvailable)
  const first = available.filter(({ backup }) => !backup)
  if (first.length > 0) return first
  if (available.length > 0 || except !== undefined) return available
  const all = candidates.filter(({ backup }) => !backup)
  return all.length > 0 ? all : candidates
}

/** A 32-bit hash of a text: FNV-1a, mixed. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return mixed(hash)
}

/** Spreads the bits of a number over 32 bits: the finalizer of MurmurHash3. */
function mixed(number: number): number {
  let bits = number
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}
