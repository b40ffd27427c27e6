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
    hint = 'If many people share this address through a proxy of yours, add the proxy to trusted_proxies.',
  ): void {
    const now = this.#clock.now()
    const state = this.#limits.get(limit) ?? { count: 0, loggedAt: -Infinity }
    this.#limits.set(limit, state)
    state.count += 1
    if (now < state.loggedAt + atMostEveryMs) return
    this.#log.warn('limit.reached', {
      limit,
      client,
      turned_away: state.count,
      hint,
    })
    state.count = 0
    state.loggedAt = now
  }
}
