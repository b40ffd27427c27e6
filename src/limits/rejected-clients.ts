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
    const turned_away = this.#count(limit)
    if (turned_away > 0) this.#log.warn('limit.reached', { limit, client, turned_away, hint })
  }

  /**
   * @param reason why no request could be read
   * @param why the words of the parser
   */
  noteUnreadable(reason: string, client: string, why: string, hint: string): void {
    const count = this.#count(`unreadable ${reason}`)
    if (count > 0) this.#log.warn('request.unreadable', { reason, why, client, count, hint })
  }

  /** How many are to be logged; 0 until the next line is due. */
  #count(what: string): number {
    const now = this.#clock.now()
    const state = this.#limits.get(what) ?? { count: 0, loggedAt: -Infinity }
    this.#limits.set(what, state)
    state.count += 1
    if (now < state.loggedAt + atMostEveryMs) return 0
    const { count } = state
    state.count = 0
    state.loggedAt = now
    return count
  }
}
