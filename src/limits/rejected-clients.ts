import { steadyClock, type Clock } from '../core/clock.ts'
import type { Log } from '../observe/log.ts'

const atMostEveryMs = 10_000

/**
 * Logs which limit has rejected clients: the first rejection at once, then their number at most
 * once in ten seconds, so that a flood of requests does not become a flood of log lines.
 */
export class RejectedClients {
  readonly #log: Log
  readonly #clock: Clock
  readonly #limits = new Map<string, { count: number; loggedAt: number }>()

  constructor(log: Log, clock: Clock) {
    this.#log = log
    this.#clock = steadyClock(clock)
  }

  /**
   * @param limit the setting, as in `limits.per_client.sign_ins`
   * @param hint what the operator can do
   */
  note(
    limit: string,
    client: string,
    hint = 'a proxy of yours that many people come through is named in trusted_proxies',
  ): void {
    const now = this.#clock.now()
    const known = this.#limits.get(limit) ?? { count: 0, loggedAt: -Infinity }
    this.#limits.set(limit, known)
    known.count += 1
    if (now < known.loggedAt + atMostEveryMs) return
    this.#log.warn('limit.reached', {
      limit,
      client,
      turned_away: known.count,
      hint,
    })
    known.count = 0
    known.loggedAt = now
  }
}
