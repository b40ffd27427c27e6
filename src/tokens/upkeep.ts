import { LRUCache } from 'lru-cache'
import { isWithin } from '../core/clock.ts'
import { GatewayError, reason } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import { SingleFlight } from '../core/single-flight.ts'
import { InvalidTokensError } from '../provider/provider-errors.ts'
import type { StoredSession } from '../session/record.ts'
import { whatIsDue, type Due, type FreshnessConfig } from './freshness.ts'
import { pollUserinfo } from './poll-userinfo.ts'
import { refresh, type UpkeepParts } from './refresh.ts'

/**
 * After a failure: at least this long nobody asks the provider about this session again, in ms; who
 * has to wait asks again then.
 */
const firstPauseMs = 1000
/** What can be done beside a request pauses ever longer, up to this, in ms. */
const longestPauseMs = 60_000

/** So many calls to the provider may be under way; the connections to it are more. */
const mostAtOnce = 12

/**
 * After this many refreshes in a row that brought invalid tokens, a session whose access token has
 * expired ends.
 */
const mostInvalid = 3

interface Failure {
  readonly error: unknown
  /** How many refreshes in a row brought tokens that must not be accepted. */
  readonly invalid: number
  readonly pauseMs: number
  readonly at: number
}

/**
 * Keeps the sessions in use fresh: one call to the provider at a time for each, and pauses after
 * failures.
 */
export class Upkeep {
  readonly #config: FreshnessConfig
  readonly #parts: UpkeepParts
  readonly #underWay = new SingleFlight<SessionKey, StoredSession | undefined>()
  readonly #failures = new LRUCache<SessionKey, Failure>({ max: 10_000 })

  constructor(config: FreshnessConfig, parts: UpkeepParts) {
    this.#config = config
    this.#parts = parts
  }

  /**
   * What a request gets to see of a session: the session itself when nothing is due or what is due
   * can be done beside it, a promise when the access token has expired. `undefined`: the session
   * has ended. The promise rejects with a `GatewayError` when the provider or the store does not
   * answer.
   */
  fresh(session: StoredSession): StoredSession | Promise<StoredSession | undefined> {
    const now = this.#parts.clock.now()
    const due = whatIsDue(session, this.#config, now)
    if (due === 'nothing') return session
    const failure = this.#failures.get(session.key)
    const isWaitedFor = due === 'refresh_now' || due === 'confirm'
    const pauseMs = isWaitedFor ? firstPauseMs : failure?.pauseMs
    const pausing = failure !== undefined && isWithin(pauseMs ?? 0, failure.at, now)
    if (isWaitedFor) return pausing ? Promise.reject(failure.error) : this.#run(session, due)
    // What nobody waits for must not stand in the way of sign-ins and of those who wait: the next
    // request asks again.
    if (!pausing && this.#underWay.size < mostAtOnce)
      this.#run(session, due).catch((error: unknown) => {
        // That the store is away is told elsewhere, once.
        const level = error instanceof GatewayError && error.code === 'ERR_STORE_UNAVAILABLE' ? 'debug' : 'warn'
        this.#parts.log[level]('session.upkeep_failed', { session: session.key, due, reason: reason(error) })
      })
    return session
  }

  /**
   * Resolves when what is under way is over: a rotated refresh token that is not stored is lost.
   */
  settled(): Promise<void> {
    return this.#underWay.settled()
  }

  #run(session: StoredSession, due: Exclude<Due, 'nothing'>): Promise<StoredSession | undefined> {
    return this.#underWay.run(session.key, async () => {
      try {
        const fresh = await upkeepOf(session, due)(session, this.#parts)
        this.#failures.delete(session.key)
        return fresh
      } catch (error) {
        const before = this.#failures.get(session.key)
        const invalid = error instanceof InvalidTokensError ? (before?.invalid ?? 0) + 1 : 0
        if (due === 'refresh_now' && invalid >= mostInvalid) {
          await this.#parts.endings.endOne(session.key, 'invalid_tokens')
          this.#failures.delete(session.key)
          return undefined
        }
        const pauseMs = Math.min((before?.pauseMs ?? firstPauseMs / 2) * 2, longestPauseMs)
        this.#failures.set(session.key, { error, invalid, pauseMs, at: this.#parts.clock.now() })
        throw error
      }
    })
  }
}

/**
 * A refresh says more than userinfo, which some providers answer for as long as the access token
 * lasts.
 */
function upkeepOf({ record }: StoredSession, due: Exclude<Due, 'nothing'>): typeof refresh {
  const isByUserinfo = due === 'confirm' ? record.tokens.refresh_token === undefined : due === 'userinfo'
  return isByUserinfo ? pollUserinfo : refresh
}
