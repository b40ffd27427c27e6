import type { Rate } from '../config/quantities.ts'
import { BoundedMap } from '../core/bounded-map.ts'
import { steadyClock, type Clock } from '../core/clock.ts'

/** How many clients each budget remembers. Others start with a full budget. */
const maxClients = 20_000

/**
 * How often each client may do something: `count` times at once, and then `count` times in each
 * `perMs`, evenly (the generic cell rate algorithm). One number is kept for each client: the time
 * when its budget is full again.
 */
export class ClientBudget {
  readonly #fullAt = new BoundedMap<string, number>('client_budgets', maxClients)
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

  /** Uses the budget once and returns 0; or how long the client has to wait for that, in ms. */
  take(client: string): number {
    const { fullAt, waitMs } = this.#stateOf(client)
    if (waitMs > 0) return waitMs
    this.#fullAt.set(client, fullAt + this.#stepMs)
    return 0
  }

  /** Undoes one `take`. */
  giveBack(client: string): void {
    const fullAt = this.#fullAt.peek(client)
    if (fullAt !== undefined) this.#fullAt.set(client, fullAt - this.#stepMs)
  }

  /** How long the client has to wait, in ms. Uses nothing. */
  waitMs(client: string): number {
    return this.#stateOf(client).waitMs
  }

  #stateOf(client: string): { readonly fullAt: number; readonly waitMs: number } {
    const now = this.#clock.now()
    const fullAt = Math.max(now, this.#fullAt.peek(client) ?? now)
    return { fullAt, waitMs: Math.max(0, Math.ceil(fullAt + this.#stepMs - this.#perMs - now)) }
  }
}

/** How many things each client may do at the same time. */
export class ClientCount {
  readonly #running = new Map<string, number>()
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  /** Returns whether one more may begin. It counts until `end`. */
  begin(client: string): boolean {
    const count = this.#running.get(client) ?? 0
    if (count >= this.#max) return false
    this.#running.set(client, count + 1)
    return true
  }

  end(client: string): void {
    const count = this.#running.get(client) ?? 0
    if (count > 1) this.#running.set(client, count - 1)
    else this.#running.delete(client)
  }
}
