import { steadyClock, type Clock } from '../core/clock.ts'
import type { Log } from '../observe/log.ts'

const atMostEveryMs = 10_000

/**
 * Tells the log who is turned away by which limit: the first one at once, then a line every ten
 * seconds with how many there were. A flood must not become one of the log.
 */
export class TurnedAway {
  readonly #log: Log
  readonly #clock: Clock
  readonly #limits = new Map<string, { count: number; toldAt: number }>()

  constructor(log: Log, clock: Clock) {
    this.#log = log
    this.#clock = steadyClock(clock)
  }

  /**
   * @param limit the setting, as in `limits.per_client.sign_ins` @param hint what to do about it
   */
  note(
    limit: string,
    client: string,
    hint = 'a proxy of yours that many people come through is named in trusted_proxies',
  ): void {
    const now = this.#clock.now()
    const known = this.#limits.get(limit) ?? { count: 0, toldAt: -Infinity }
    this.#limits.set(limit, known)
    known.count += 1
    if (now < known.toldAt + atMostEveryMs) return
    this.#log.warn('limit.reached', {
      limit,
      client,
      turned_away: known.count,
      hint,
    })
    known.count = 0
    known.toldAt = now
  }
}
