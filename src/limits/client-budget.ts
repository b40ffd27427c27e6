import type { Rate } from '../config/quantities.ts'
import { steadyClock, type Clock } from '../core/clock.ts'

/**
 * So many clients are remembered for each budget; the one that was seen least recently starts anew.
 */
const mostClients = 20_000

/**
 * How often each client may do something: `count` times at once if need be, and as many again,
 * evenly, in each `perMs`. One number a client (the generic cell rate algorithm): the time when all
 * of its budget is there again.
 */
export class ClientBudget {
  readonly #fullAt = new Map<string, number>()
  readonly #perMs: number
  readonly #stepMs: number
  readonly #clock: Clock

  constructor({ count, perMs }: Rate, clock: Clock) {
    this.#perMs = perMs
    this.#stepMs = perMs / count
    this.#clock = steadyClock(clock)
  }

  /** How many clients are remembered. */
  get size(): number {
    return this.#fullAt.size
  }

  /**
   * Uses it once. Answers 0, or how many milliseconds there are to wait, and then nothing is used.
   */
  take(client: string): number {
    const fullAt = this.#fullAtOf(client)
    const waitMs = this.#waitUntil(fullAt)
    if (waitMs > 0) return waitMs
    this.#fullAt.delete(client)
    this.#fullAt.set(client, fullAt + this.#stepMs)
    if (this.#fullAt.size > mostClients) for (const oldest of this.#fullAt.keys()) return this.#forget(oldest)
    return 0
  }

  /** How many milliseconds there are to wait; 0: none. Nothing is used. */
  waitMs(client: string): number {
    return this.#waitUntil(this.#fullAtOf(client))
  }

  #fullAtOf(client: string): number {
    const now = this.#clock.now()
    return Math.max(now, this.#fullAt.get(client) ?? now)
  }

  #waitUntil(fullAt: number): number {
    return Math.max(0, Math.ceil(fullAt + this.#stepMs - this.#perMs - this.#clock.now()))
  }

  #forget(client: string): 0 {
    this.#fullAt.delete(client)
    return 0
  }
}

/** How much each client may have under way at the same time. */
export class ClientCount {
  readonly #underWay = new Map<string, number>()
  readonly #most: number

  constructor(most: number) {
    this.#most = most
  }

  /** Whether one more may begin; it then counts until `end`. */
  begin(client: string): boolean {
    const count = this.#underWay.get(client) ?? 0
    if (count >= this.#most) return false
    this.#underWay.set(client, count + 1)
    return true
  }

  end(client: string): void {
    const count = this.#underWay.get(client) ?? 0
    if (count > 1) this.#underWay.set(client, count - 1)
    else this.#underWay.delete(client)
  }
}
