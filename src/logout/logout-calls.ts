import { reason } from '../core/errors.ts'
import type { SessionKey } from '../core/names.ts'
import { pauses } from '../core/pauses.ts'
import { Repeating } from '../core/repeating.ts'
import type { Audit, AuditEvents } from '../observe/audit.ts'
import type { Log } from '../observe/log.ts'
import type { LogoutJobs } from '../session/live/logout-jobs.ts'
import type { SessionRecord } from '../session/record/record.ts'
import type { LogoutJobStore, TakenJob } from '../session/store/store.ts'

/** How many jobs this process does at the same time. */
const maxAtOnce = 16
/** How many ended sessions are sent to the store at a time. */
const maxEndedAtOnce = 500
/** How many ended sessions are remembered while the store is unavailable. */
const maxEnded = 50_000
/**
 * The longest time until an entry is looked at again, in ms: the delay when the only process dies
 * while it ends a session.
 */
const longestPauseMs = 10 * 60 * 1_000
/** The pause before a job of a newer version is looked at again, in ms. */
const newerPauseMs = 60_000
/** The pauses between the attempts, in ms. */
const pausesMs = [2_000, 10_000, 30_000, 90_000]
/** A job belongs to the process that does it for the longest call plus this time, in ms. */
const leaseMarginMs = 5_000

/** Calls the logout of an upstream for an ended session. See `callLogout`. */
export type CallUpstream = (
  upstream: string,
  session: SessionKey,
  job: SessionRecord,
) => Promise<number | 'no_cookie' | 'unknown_upstream'>

export interface LogoutCallsParts {
  readonly store: LogoutJobStore
  readonly jobs: LogoutJobs
  readonly call: CallUpstream
  /** The longest time that a call takes, in ms. */
  readonly longestCallMs: number
  readonly log: Log
  readonly audit: Audit
}

/**
 * Tells applications that sessions have ended, by the jobs in the store. Each process looks for
 * jobs that are due; a job belongs to one process at a time. When this process ends a session, it
 * looks at once. The other processes do so a moment later, in case this one dies.
 *
 *     session alive ──ended, expired──► due ──► call ──status below 500──► done
 *                                        ▲        │
 *                                        └─later──┴─5 failed attempts──► dropped
 */
export class LogoutCalls {
  readonly #parts: LogoutCallsParts
  /** Sessions that may have ended, and whose entries in the index are not marked as due yet. */
  readonly #ended = new Set<SessionKey>()
  readonly #running = new Set<Promise<void>>()
  readonly #taking = new Repeating('logout_calls', () => this.#takeDue())
  #isFinishing = false

  constructor(parts: LogoutCallsParts) {
    this.#parts = parts
    this.#taking.wakeIn(pauseMs())
  }

  /** Sessions have ended, in this process or in another one. */
  noteEnded(keys: readonly SessionKey[], where: 'here' | 'elsewhere'): void {
    for (const key of keys) if (this.#ended.size < maxEnded) this.#ended.add(key)
    if (this.#isFinishing) void this.#handOver()
    else if (where === 'here') this.#taking.wake()
  }

  /**
   * Takes no further jobs, and resolves when those under way have ended. Ended sessions become due
   * for other processes, and for the next start.
   */
  async finish(): Promise<void> {
    this.#isFinishing = true
    await this.#taking.stop()
    await this.#handOver()
    await Promise.all(this.#running)
  }

  /** @returns the pause until jobs may be due again, in ms */
  async #takeDue(): Promise<number> {
    while (this.#running.size >= maxAtOnce) await Promise.race(this.#running)
    if (this.#isFinishing) return 0
    const limit = maxAtOnce - this.#running.size
    const taken = await this.#take(limit)
    for (const job of taken) this.#start(job)
    // While the store is unavailable, the next attempt is at the next poll.
    const hasMore = taken !== nothing && (taken.length === limit || this.#ended.size > 0)
    return hasMore ? 0 : pauseMs()
  }

  async #handOver(): Promise<void> {
    while (this.#ended.size > 0) if ((await this.#take(0)) === nothing) return
  }

  /** @returns {@link nothing} when the store is unavailable */
  async #take(limit: number): Promise<readonly TakenJob[]> {
    const { store, jobs, log } = this.#parts
    const ended = [...this.#ended].slice(0, maxEndedAtOnce)
    for (const key of ended) this.#ended.delete(key)
    try {
      return await store.take(jobs.audience, { ended, limit, lease: this.#leaseMs })
    } catch (error) {
      for (const key of ended) this.#ended.add(key)
      log.debug('application_logout.not_looked_up', { reason: reason(error) })
      return nothing
    }
  }

  get #leaseMs(): number {
    return this.#parts.longestCallMs + leaseMarginMs
  }

  #start(taken: TakenJob): void {
    const running = this.#runJob(taken)
      // The store is unavailable. The job is due again when the lease is over.
      .catch((error: unknown) =>
        this.#parts.log.debug('application_logout.not_stored', { session: taken.key, reason: reason(error) }),
      )
      .finally(() => this.#running.delete(running))
    this.#running.add(running)
  }

  async #runJob(taken: TakenJob): Promise<void> {
    const { store, jobs } = this.#parts
    const { key } = taken
    const opened = await store.open(key, this.#leaseMs)
    if (opened.kind === 'none') return store.remove(jobs.audience, key)
    if (opened.kind === 'waiting') return store.lookAgain(jobs.audience, taken, Math.min(opened.forMs, longestPauseMs))
    const { sealed, attempt } = opened
    const pauseMs = pausesMs[attempt - 1]
    const rest = await this.#do(key, sealed, { attempt, isLast: pauseMs === undefined })
    // A gateway of that version carries it out.
    if (rest === 'newer') return store.postpone(jobs.audience, key, newerPauseMs, sealed)
    if (rest === undefined || pauseMs === undefined) await store.remove(jobs.audience, key)
    else await store.postpone(jobs.audience, key, pauseMs, rest)
  }

  /** @returns what is left to do, sealed */
  async #do(
    key: SessionKey,
    sealed: Uint8Array,
    about: { readonly attempt: number; readonly isLast: boolean },
  ): Promise<Uint8Array | 'newer' | undefined> {
    const { jobs, log } = this.#parts
    const job = jobs.open(key, sealed)
    if (job === 'newer') return job
    if (job === undefined) {
      const hint =
        'The job is sealed with a key that is not in session.keys. If the key was removed, the application gets no logout call for this session.'
      log.warn('application_logout.unreadable', { session: key, hint })
      return sealed
    }
    const outcomes = await Promise.all(
      Object.entries(job.cookies ?? {}).map(async ([upstream, cookies]) => {
        const isDone = await this.#call(upstream, key, job, about)
        return isDone ? [] : [[upstream, cookies] as const]
      }),
    )
    const left = outcomes.flat()
    return left.length === 0 ? undefined : jobs.seal(key, { ...job, cookies: Object.fromEntries(left) })
  }

  /** @returns whether nothing is left to do at this upstream */
  async #call(
    upstream: string,
    session: SessionKey,
    job: SessionRecord,
    { attempt, isLast }: { readonly attempt: number; readonly isLast: boolean },
  ): Promise<boolean> {
    const { call, log, audit } = this.#parts
    const { iss, sub, sid } = job
    const where = { session, upstream }
    const about = { session, iss, sub, sid, upstream }
    try {
      const result = await call(upstream, session, job)
      if (result === 'unknown_upstream') return this.#failed(about, unknownUpstream, { attempt, isLast, level: 'warn' })
      if (result === 'no_cookie') {
        const hint = `No kept cookie belongs to the path of upstreams.${upstream}.logout.call. Compare the path with the Path of the session cookie.`
        log.warn('application_logout.no_cookie', { ...where, hint })
        audit.record('application.logout', { ...about, outcome: 'no_cookie' })
        return true
      }
      const isRejected = result >= 400
      if (isRejected)
        log.warn('application_logout.rejected', {
          ...where,
          status: result,
          hint: `Check method and path of upstreams.${upstream}.logout.call, and whether the application accepts this request without a page of its own.`,
        })
      audit.record('application.logout', { ...about, outcome: isRejected ? 'rejected' : 'done', status: result })
      return true
    } catch (error) {
      return this.#failed(about, reason(error), { attempt, isLast, level: 'debug' })
    }
  }

  /**
   * Reports a failed call. Returns `false`, because the call is left to do.
   * @param level how a call that is repeated is logged
   */
  #failed(
    about: Pick<AuditEvents['application.logout'], 'iss' | 'sub' | 'sid' | 'session' | 'upstream'>,
    why: string,
    {
      attempt,
      isLast,
      level,
    }: { readonly attempt: number; readonly isLast: boolean; readonly level: 'warn' | 'debug' },
  ): false {
    const { log, audit } = this.#parts
    const { session, upstream } = about
    if (!isLast) {
      log[level]('application_logout.postponed', { session, upstream, attempt, reason: why })
      return false
    }
    const hint = 'The session of this person at the application has not ended.'
    log.warn('application_logout.failed', { session, upstream, attempts: attempt, reason: why, hint })
    audit.record('application.logout', { ...about, outcome: 'failed', reason: why })
    return false
  }
}

const nothing: readonly TakenJob[] = []

const unknownUpstream = 'the configuration has no such upstream with a logout call'

/** A random time, so that processes do not look at the same moment. */
function pauseMs(): number {
  return pauses.lookForLogoutCallsMs * (1 + Math.random())
}
