import type { ApiClaimConfig } from '../config/model/provider.ts'
import type { SessionConfig } from '../config/model/session.ts'
import { BoundedMap } from '../core/bounded-map.ts'
import { withWithheld } from '../core/claims.ts'
import { isWithin } from '../core/clock.ts'
import { GatewayError, reason } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import { SingleFlight } from '../core/single-flight.ts'
import { InvalidTokensError } from '../provider/provider-errors.ts'
import { isAnyDue, isAnyUnread, neverRead, overdue } from '../session/record/api-claims.ts'
import type { StoredSession } from '../session/record/record.ts'
import { pollUserinfo, refresh, type UpkeepParts } from './refresh.ts'

/** What the tokens or claims of a session need, before or beside the current request. */
export type Due =
  | 'nothing'
  /** The store may have lost the ending of the session. The request waits for the provider. */
  | 'confirm'
  /** The access token expires soon. The refresh runs beside the request. */
  | 'refresh_soon'
  /** The access token has expired. The request waits for the refresh. */
  | 'refresh_now'
  /** UserInfo is due, or a claim of an API. Both are read beside the request. */
  | 'userinfo'
  /** The same with a claim that is too old. The request waits, and goes on without the claim. */
  | 'userinfo_now'

export type FreshnessConfig = Pick<SessionConfig, 'refreshBeforeMs' | 'pollUserinfoMs'>

/**
 * The largest share of the token's lifetime that is left when a refresh is due. A longer
 * `refresh_before` is reduced to it.
 */
const maxShareLeft = 0.25

/** Returns what is due for a session. `now` is in ms since the epoch. */
export function whatIsDue(
  { key, record, isDoubtful }: StoredSession,
  config: FreshnessConfig,
  now: number,
  claimsFrom: readonly ApiClaimConfig[] = [],
): Due {
  if (isDoubtful === true) return 'confirm'
  const { tokens } = record
  const { access_token_expires_at: expiresAt = Infinity } = tokens
  const readsApis = claimsFrom.length > 0
  if (readsApis && now < expiresAt && overdueClaims({ key, record }, config, now, claimsFrom).length > 0)
    return 'userinfo_now'
  const refreshBeforeMs = Math.min(config.refreshBeforeMs, (expiresAt - tokens.obtained_at) * maxShareLeft)
  // The refresh token comes last, because it may have to be unpacked.
  if (now >= expiresAt - refreshBeforeMs && tokens.refresh_token !== undefined)
    return now >= expiresAt ? 'refresh_now' : 'refresh_soon'
  // Without a refresh token, an expired access token says nothing about the session.
  if (now >= expiresAt) return 'nothing'
  const isPolled = config.pollUserinfoMs !== undefined
  const isDue =
    (isPolled && now >= nextPoll({ key, record }, config)) || (readsApis && isAnyDue(claimsFrom, record, now))
  return isDue ? 'userinfo' : 'nothing'
}

type Polled = Pick<StoredSession, 'key' | 'record'>

/**
 * When `poll_userinfo` reads UserInfo again. The interval is up to 10 % shorter, depending on the
 * session key, so that sessions that began together are not polled together.
 */
function nextPoll({ key, record }: Polled, { pollUserinfoMs = Infinity }: FreshnessConfig): number {
  return record.userinfo_read_at + pollUserinfoMs * (1 - (key.charCodeAt(key.length - 2) % 16) / 160)
}

/**
 * The claims of APIs that are {@link overdue}. A refresh reads them too. After the access token has
 * expired, nothing can be read without a refresh token, so the claims stay.
 */
function overdueClaims(
  session: Polled,
  config: FreshnessConfig,
  now: number,
  claimsFrom: readonly ApiClaimConfig[],
): readonly string[] {
  const { tokens, userinfo_read_at } = session.record
  const { access_token_expires_at = Infinity, obtained_at } = tokens
  // The refresh token comes last, because it may have to be unpacked.
  if (now >= access_token_expires_at && tokens.refresh_token === undefined) return []
  const isRefreshed = obtained_at > userinfo_read_at
  return overdue(claimsFrom, session.record, isRefreshed ? obtained_at : nextPoll(session, config), now)
}

/**
 * The pause after an error, in ms. During the pause the provider is not asked about this session. A
 * request that must wait asks again after it.
 */
const firstPauseMs = 1000
/** The longest pause for work beside requests, in ms. Each error doubles the pause. */
const longestPauseMs = 60_000

/** How long a request waits for a claim that could not be read before, in ms. */
const longestWaitMs = 2_000

function afterWait(session: StoredSession): Promise<StoredSession> {
  return new Promise((resolve) => setTimeout(resolve, longestWaitMs, session).unref())
}

/** How many calls may run beside requests at a time. `createOutbound` has more connections. */
const maxAtOnce = 12

/**
 * A session whose access token has expired ends after this many consecutive refreshes with invalid
 * tokens.
 */
const maxInvalid = 3

interface Failure {
  readonly error: unknown
  /** The number of consecutive refreshes with invalid tokens. */
  readonly invalid: number
  readonly pauseMs: number
  readonly at: number
}

/** Keeps the tokens and claims of sessions in use fresh, with one call at a time for each. */
export class Upkeep {
  readonly #config: FreshnessConfig
  readonly #parts: UpkeepParts
  readonly #claimsFrom: readonly ApiClaimConfig[]
  /** The readings of `reread` that have not begun. */
  readonly #rereads = new Map<SessionKey, Promise<StoredSession | undefined>>()
  readonly #underWay = new SingleFlight<SessionKey, StoredSession | undefined>()
  readonly #failures = new BoundedMap<SessionKey, Failure>('refresh_failures', 10_000)

  constructor(config: FreshnessConfig, parts: UpkeepParts) {
    this.#config = config
    this.#parts = parts
    this.#claimsFrom = parts.provider.config.claimsFrom
  }

  /**
   * The session for a request: a promise only when the request must wait, for example because the
   * access token has expired. The promise resolves to `undefined` when the session has ended, and
   * rejects with a `GatewayError` when the provider or the store is unavailable.
   */
  fresh(session: StoredSession): StoredSession | Promise<StoredSession | undefined> {
    const found = this.#fresh(session)
    if (this.#claimsFrom.length === 0) return found
    return found instanceof Promise ? found.then((at) => at && this.#withMarks(at)) : this.#withMarks(found)
  }

  /**
   * A session from before `claims_from` was configured so: its claims must not seem absent until
   * the APIs have been read. Claims that could not be read for too long do not count either.
   */
  #withMarks(session: StoredSession): StoredSession {
    const tooOld = overdueClaims(session, this.#config, this.#parts.clock.now(), this.#claimsFrom)
    const names = [...neverRead(this.#claimsFrom, session.record), ...tooOld]
    if (names.length === 0) return session
    return { ...session, record: { ...session.record, claims: withWithheld(session.record.claims, names) } }
  }

  #fresh(session: StoredSession): StoredSession | Promise<StoredSession | undefined> {
    const now = this.#parts.clock.now()
    const due = whatIsDue(session, this.#config, now, this.#claimsFrom)
    if (due === 'nothing') return session
    const failure = this.#failures.get(session.key)
    const isWaitedFor = due === 'refresh_now' || due === 'confirm'
    const pauseMs = isWaitedFor ? firstPauseMs : failure?.pauseMs
    const pausing = failure !== undefined && isWithin(pauseMs ?? 0, failure.at, now)
    if (isWaitedFor) {
      if (pausing) return Promise.reject(failure.error)
      // The work under way may be less than the work that is due: UserInfo is read, but the token
      // has expired.
      const joins = this.#underWay.has(session.key)
      const work = this.#run(session, due)
      return joins ? work.then((found) => found && this.#fresh(found)) : work
    }
    if (pausing) return session
    if (due === 'userinfo_now') {
      const work = this.#runOrLog(session, due)
      // The wait is bounded, because pages that do not need the claim must not wait for its API.
      return isAnyUnread(this.#claimsFrom, session.record, now) ? Promise.race([work, afterWait(session)]) : work
    }
    // Work beside requests must not delay sign-ins and waiting requests. The next request tries
    // again.
    if (this.#underWay.size < maxAtOnce) void this.#runOrLog(session, due)
    return session
  }

  /** The session after the work, or as it is when the work fails. */
  #runOrLog(session: StoredSession, due: Exclude<Due, 'nothing'>): Promise<StoredSession | undefined> {
    return this.#run(session, due).catch((error: unknown) => {
      // An unavailable store is logged once, elsewhere.
      const level = error instanceof GatewayError && error.code === 'ERR_STORE_UNAVAILABLE' ? 'debug' : 'warn'
      this.#parts.log[level]('session.upkeep_failed', { session: session.key, due, reason: reason(error) })
      return session
    })
  }

  /**
   * Reads UserInfo again. A reading that began before does not count, because its claims may be
   * older. Calls that wait for the same reading to begin share it.
   * @returns `undefined` when the session has ended
   * @throws {GatewayError} like {@link refresh}
   */
  reread(session: StoredSession): Promise<StoredSession | undefined> {
    const { key } = session
    const waiting = this.#rereads.get(key)
    if (waiting !== undefined) return waiting
    const forget = () => {
      if (this.#rereads.get(key) === reading) this.#rereads.delete(key)
    }
    const reading = pollUserinfo({ ...session, isDoubtful: true }, this.#parts, forget).finally(forget)
    this.#rereads.set(key, reading)
    return reading
  }

  /** Resolves when all calls have ended, because a rotated refresh token must be stored. */
  settled(): Promise<void> {
    return this.#underWay.settled()
  }

  #run(session: StoredSession, due: Exclude<Due, 'nothing'>): Promise<StoredSession | undefined> {
    return this.#underWay.run(session.key, async () => {
      try {
        const fresh = await upkeepOf(session, due)(session, this.#parts)
        // The store may have been restored from an older copy in the meantime.
        if (fresh?.isDoubtful === true)
          throw new GatewayError('ERR_PROVIDER_UNAVAILABLE', 'the provider has not confirmed this session')
        this.#failures.delete(session.key)
        return fresh
      } catch (error) {
        const before = this.#failures.get(session.key)
        const invalid = error instanceof InvalidTokensError ? (before?.invalid ?? 0) + 1 : 0
        if (due === 'refresh_now' && invalid >= maxInvalid) {
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
 * A refresh shows more than UserInfo, because some providers accept an access token at UserInfo
 * after the session has ended.
 */
function upkeepOf({ record }: StoredSession, due: Exclude<Due, 'nothing'>): typeof refresh {
  // A doubtful session waits for another replica that reads.
  if (due === 'userinfo_now') return (session, parts) => pollUserinfo({ ...session, isDoubtful: true }, parts)
  const isByUserinfo = due === 'confirm' ? record.tokens.refresh_token === undefined : due === 'userinfo'
  return isByUserinfo ? pollUserinfo : refresh
}
