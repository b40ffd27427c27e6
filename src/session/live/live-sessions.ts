import type { SessionConfig } from '../../config/model/session.ts'
import { isWithin } from '../../core/clock.ts'
import { GatewayError, reason } from '../../core/errors.ts'
import type { SessionId, SessionKey } from '../../core/names.ts'
import type { Cause } from '../../observe/audit.ts'
import type { Log } from '../../observe/log.ts'
import {
  type BoundDevice,
  type NewRecord,
  newSessionId,
  personMark,
  sessionKey,
  type SessionRecord,
  type StoredSession,
  subTag,
  tagOf,
  type UnopenedSession,
} from '../record/record.ts'
import { openRecord, sealRecord } from '../record/sealed-record.ts'
import { jobOutlivesSessionMs, type SealedSession, type SessionStore } from '../store/store.ts'
import { SessionEndings, type SessionEndingsParts } from './endings.ts'
import type { LogoutJobs } from './logout-jobs.ts'
import { NearCache, NearCaches, type NearSession } from './near-cache.ts'
import { OutageGrace } from './outage-grace.ts'

/** How often activity is written to the store, in times per idle timeout. */
const touchesPerIdleTimeout = 10
/** How much the clocks of the store and of the gateway may differ in {@link LastUse}, in ms. */
const clockToleranceMs = 1_000

export interface SessionsParts extends Omit<SessionEndingsParts, 'near' | 'caches'> {
  readonly config: Pick<SessionConfig, 'idleTimeoutMs' | 'absoluteTimeoutMs' | 'storeOutageGraceMs'>
  readonly log: Log
  /** One for the whole process and this store. Absent: no other generation uses the store. */
  readonly caches?: NearCaches
  /** By audience. Absent: nothing is left to do when a session has ended. */
  readonly jobs?: ReadonlyMap<string, LogoutJobs> | undefined
}

/** When a session ends, in ms since the epoch, and whose it is. */
export interface SessionExpiry {
  readonly audience: string
  /** When it ends without further activity. */
  readonly expires_at: number
  /** When it ends at the latest. */
  readonly absolute_expires_at: number
  /** See `personMark`. */
  readonly person: string
  /** The key that the session is bound to. */
  readonly device: BoundDevice | undefined
}

export interface LastUse {
  /**
   * In ms since the epoch, to within a tenth of the idle timeout. `undefined`: within the last idle
   * timeout. The store knows no more when the absolute expiry comes first.
   */
  readonly at: number | undefined
}

/** A session that was read from the store: to be used, and to be kept in memory. */
interface OpenedSession {
  readonly stored: StoredSession
  readonly unopened: UnopenedSession
}

interface FoundSession extends OpenedSession {
  /** Whether an activity has to move the idle timeout in the store. */
  readonly isTouchDue: boolean
}

/** Puts a session into memory, unless it was changed or ended during the query. */
type Keep = (session: StoredSession | UnopenedSession, touchedAt: number) => void

/**
 * Finds, creates and replaces sessions. Live ones are served from memory: the store tells this
 * process which sessions other processes have ended or changed. Queries reject with
 * `ERR_STORE_UNAVAILABLE`.
 */
export class Sessions {
  readonly endings: SessionEndings
  readonly #parts: SessionsParts
  readonly #store: SessionStore
  readonly #near: NearCache
  readonly #caches: NearCaches
  readonly #stopListening: () => void
  readonly #grace: OutageGrace

  constructor(parts: SessionsParts) {
    const { store, log, config, caches = new NearCaches() } = parts
    const near = new NearCache(parts)
    const endings = new SessionEndings({ ...parts, near, caches })
    this.endings = endings
    this.#parts = parts
    this.#store = store
    this.#near = near
    this.#caches = caches
    caches.add(near)
    this.#grace = new OutageGrace({ graceMs: config.storeOutageGraceMs, staleForMs: () => store.staleForMs(), log })
    this.#stopListening = store.onNotice((notice) => {
      if (notice.kind === 'resumed') this.#reset()
      else if (notice.kind === 'changed') near.drop(notice.key)
      else if (notice.kind === 'logout_order') endings.tellOrder(notice.tombstone)
      else if (notice.kind === 'ended_late') endings.tellLate(notice)
      else endings.tell(notice.keys, 'elsewhere')
    }, config.storeOutageGraceMs > 0)
  }

  /** Stops listening for notices. Nothing may be served by this object afterwards. */
  close(): void {
    this.#caches.delete(this.#near)
    this.#stopListening()
    this.#near.clear()
    this.#grace.end('closed')
  }

  /**
   * Copies the sessions in memory of the previous generation, so that a reload costs no queries,
   * and a grace continues. The audiences must be the same, and the keys open what the other can
   * open.
   */
  takeOver(other: Sessions): void {
    this.#near.takeOver(other.#near)
  }

  /** A session in memory that may be served without a query to the store. Counts as activity. */
  findInMemory(key: SessionKey): StoredSession | undefined {
    const near = this.#near.get(key)
    if (near === undefined || this.#store.receivesNotices?.() === false || this.#isEnding(near.stored)) return undefined
    const now = this.#parts.clock.now()
    if (this.#isOver(near, now)) return undefined
    // After the clock was set back, `touchedAt` may be in the future. The activity is still
    // written, or else the session would expire in the store.
    if (!isWithin(this.#touchEveryMs(near.stored.record), near.touchedAt, now)) this.#touch(near, now)
    return near.stored
  }

  /** A session from memory or the store; from memory alone in a grace. Counts as activity. */
  async find(key: SessionKey): Promise<StoredSession | undefined> {
    const inMemory = this.findInMemory(key)
    if (inMemory !== undefined) return inMemory
    try {
      return await this.#query(key, (keep) => this.#findInStore(key, keep))
    } catch (error) {
      return this.#inGrace(key, error)
    }
  }

  async #findInStore(key: SessionKey, keep: Keep): Promise<StoredSession | undefined> {
    const found = await this.#readFrom(key, 'activity', keep)
    if (found === undefined || !found.isTouchDue) return found?.stored
    return (await this.#touched(found.unopened, found.stored, keep)) ? found.stored : undefined
  }

  /** Like {@link find}, but does not count as activity. */
  async peek(key: SessionKey): Promise<StoredSession | undefined> {
    try {
      return await this.read(key)
    } catch (error) {
      return this.#inGrace(key, error)
    }
  }

  /** Whether sessions in memory may be served while the store is unavailable. */
  get mayServeInOutage(): boolean {
    return this.#grace.lasts
  }

  /** Whether this process knows of the end of a session. A request may have waited meanwhile. */
  hasEnded(key: SessionKey): boolean {
    return this.#near.hasEnded(key)
  }

  /** When a session ends; `undefined` when it has ended. Does not count as activity. */
  async expiry(key: SessionKey): Promise<SessionExpiry | undefined> {
    const stored = await this.read(key)
    const expiresIn = stored && (await this.#store.expiresIn(key))
    if (stored === undefined || expiresIn === undefined) return undefined
    const { audience, record } = stored
    const { absolute_expires_at, sub, device } = record
    const expires_at = Math.min(this.#parts.clock.now() + expiresIn, absolute_expires_at)
    return { audience, expires_at, absolute_expires_at, person: personMark(audience, sub), device }
  }

  /**
   * When the last request of a session was, by its expiry in the store; `undefined` when it has
   * ended. Does not count as activity.
   */
  async lastUse({ key, record }: StoredSession): Promise<LastUse | undefined> {
    const expiresIn = await this.#store.expiresIn(key)
    if (expiresIn === undefined) return undefined
    const idleTimeoutMs = this.#idleTimeoutOf(record)
    const now = this.#parts.clock.now()
    if (expiresIn < idleTimeoutMs && now + expiresIn > record.absolute_expires_at - clockToleranceMs)
      return { at: undefined }
    // After a change of the idle timeout, the store has the previous one until the next request.
    return { at: Math.min(Math.max(now + expiresIn - idleTimeoutMs, record.created_at), now) }
  }

  /** A session as the store has it now. Does not count as activity. */
  async read(key: SessionKey): Promise<StoredSession | undefined> {
    return this.#query(key, async (keep) => (await this.#readFrom(key, 'no activity', keep))?.stored)
  }

  /** An activity puts the session into memory, unless the idle timeout has to be moved first. */
  async #readFrom(key: SessionKey, purpose: 'activity' | 'no activity', keep: Keep): Promise<FoundSession | undefined> {
    // A pending ending of this one session applies whenever the session was created: at 0 too.
    if (this.#near.hasEnded(key) || this.#parts.pending.covers(0, key)) return undefined
    const sealed = await this.#store.read(key)
    // An outage may begin before the notice of the ending. Its grace must not serve the copy.
    if (sealed === undefined) this.#near.drop(key)
    if (sealed === undefined || this.#near.hasEnded(key)) return undefined
    const opened = this.#open(key, sealed)
    const now = this.#parts.clock.now()
    // The store decides when a session expires. This is for a store whose clock is behind.
    if (opened === undefined || now >= opened.stored.record.absolute_expires_at || this.#isEnding(opened.stored))
      return undefined
    // Another process, or this one before, may have moved the idle timeout a moment ago.
    const { record } = opened.stored
    const touchedAt = now + sealed.expiresIn - this.#idleTimeoutOf(record)
    const isTouchDue = !isWithin(this.#touchEveryMs(record), touchedAt, now)
    const movedAt = purpose === 'activity' && !isTouchDue ? touchedAt : this.#near.touchedAt(key)
    if (movedAt !== undefined) keep(opened.unopened, movedAt)
    return { ...opened, isTouchDue }
  }

  /**
   * Opens the record of a session. `undefined` when it cannot be opened, which is logged. A record
   * of a newer version stays as it is. Its person signs in again, also after a return
   * to this version.
   */
  #open(key: SessionKey, { sealed, version, isDoubtful = false, begun_at }: SealedSession): OpenedSession | undefined {
    const { keyring, audiences, log } = this.#parts
    const opened = openRecord(keyring, { key, audiences }, sealed)
    if (opened === 'newer') return undefined
    if (opened === undefined) {
      const hint =
        'The issuer or client_id of its provider has changed, its provider was removed, or its key is not in session.keys. People sign in again. Without such a change, check session.keys, and who else writes to the store.'
      log.warn('session.unreadable', { session: key, hint })
      return undefined
    }
    const { record, audience, unpackedBytes: bytes } = opened
    const session = { key, audience, version, ...(isDoubtful && { isDoubtful }) }
    return {
      stored: { ...session, ...(begun_at !== undefined && { begun_at }), record, bytes, isTransient: true },
      unopened: { ...session, sub: record.sub, sealed },
    }
  }

  /**
   * Creates a session for an audience, always with a new id. `begun_at` is when the browser was
   * sent to the provider, in the store's time. `cause` is for the audit event.
   * @returns `undefined` when a Logout Token for this session has arrived since `begun_at`
   */
  async create(audience: string, record: NewRecord, begun_at: number, cause?: Cause): Promise<SessionId | undefined> {
    const created_at = this.#parts.clock.now()
    const absolute_expires_at = created_at + this.#lifetimeOf(record)
    const whole: SessionRecord = this.#bounded({ ...record, created_at, absolute_expires_at })
    const id = newSessionId(audience, record)
    const key = sessionKey(id)
    const { sealed, unpackedBytes: bytes } = sealRecord(this.#parts.keyring, { key, audience }, whole)
    const created = await this.#query(key, async (keep) => {
      const outcome = await this.#store.create({
        key,
        subTag: subTag(audience, record.sub),
        sealed,
        idle_timeout: this.#idleTimeout(whole),
        // A refresh may move the end that the provider says, up to this time.
        absolute_expires_at,
        begun_at,
      })
      if (outcome === 'created') keep({ key, audience, version: 1, record: whole, bytes }, created_at)
      return outcome
    })
    if (created === 'ended') return undefined
    const { iss, sub, sid } = record
    const about = { session: key, iss, sub, sid }
    if (record.key === undefined) this.#parts.audit.record('session.created', about, cause)
    else this.#parts.audit.record('key.created', { ...about, upstream: record.key.upstream }, cause)
    return id
  }

  /**
   * Replaces the record, and with it the job, if the stored version is still that of `previous`.
   * @returns `conflict` when another process wrote first, `gone` when the session has ended
   */
  async replace(previous: StoredSession, next: SessionRecord): Promise<StoredSession | 'conflict' | 'gone'> {
    const { key, audience, version } = previous
    const record = this.#bounded(next)
    const { sealed, unpackedBytes: bytes } = sealRecord(this.#parts.keyring, { key, audience }, record)
    const job = this.#parts.jobs?.get(audience)?.sealedFor(key, record)
    const isDoubtful = previous.isDoubtful === true && !isConfirmed(previous, record)
    return this.#query(key, async (keep) => {
      const touchedAt = this.#near.touchedAt(key)
      // First, because nothing would notice the expiry of a job that is not in the index.
      if (job instanceof Buffer) await this.#watchJob(key, audience, record)
      const isQuiet = isOnlyConfirmed(previous, record)
      const outcome = await this.#store.replace(key, sealed, version, job, isQuiet, isDoubtful)
      if (outcome !== 'replaced') {
        this.#near.drop(key)
        return outcome
      }
      const stored = { key, audience, version: version + 1, record, bytes, ...(isDoubtful && { isDoubtful }) }
      // The store has an idle timeout for the previous end.
      if (record.absolute_expires_at !== previous.record.absolute_expires_at)
        await this.#store
          .touch(key, this.#idleTimeout(record))
          .catch((error: unknown) => this.#parts.log.debug('session.touch_failed', { reason: reason(error) }))
      this.#caches.dropElsewhere(key, this.#near)
      if (touchedAt !== undefined) keep(stored, touchedAt)
      this.#near.dropOlder(stored)
      return stored
    })
  }

  /** The record, with the end that its provider says, if that is earlier than our own. */
  #bounded(record: SessionRecord): SessionRecord {
    const { created_at, session_expires_at } = record
    if (session_expires_at === undefined) return record
    return {
      ...record,
      absolute_expires_at: Math.min(created_at + this.#parts.config.absoluteTimeoutMs, session_expires_at),
    }
  }

  /** The idle timeout for the store, which the end of the session may shorten, in ms. */
  #idleTimeout(record: SessionRecord): number {
    const left = record.absolute_expires_at - this.#parts.clock.now()
    return Math.max(1, Math.min(this.#idleTimeoutOf(record), left))
  }

  /** The idle timeout of a session far from its end, in ms. That of an access key is its own. */
  #idleTimeoutOf({ key }: SessionRecord): number {
    return key?.idle_timeout ?? this.#parts.config.idleTimeoutMs
  }

  /**
   * How long a session lasts at most, in ms. Without a refresh token, nothing tells the gateway
   * that the account of an access key is gone, so the key lasts no longer than a session.
   */
  #lifetimeOf({ key, tokens }: Pick<SessionRecord, 'key' | 'tokens'>): number {
    const { absoluteTimeoutMs } = this.#parts.config
    if (key === undefined) return absoluteTimeoutMs
    return tokens.refresh_token === undefined ? Math.min(key.lifetime, absoluteTimeoutMs) : key.lifetime
  }

  /** How often activity is written to the store, in ms. */
  #touchEveryMs(record: SessionRecord): number {
    return this.#idleTimeoutOf(record) / touchesPerIdleTimeout
  }

  /** Puts the job into the index: the session may expire after the idle timeout. */
  #watchJob(key: SessionKey, audience: string, record: SessionRecord): Promise<void> {
    const lifetimeMs = this.#lifetimeOf(record)
    const after = Math.min(this.#idleTimeoutOf(record), lifetimeMs)
    return this.#store.jobs.watch(audience, key, after, lifetimeMs + jobOutlivesSessionMs)
  }

  /** The session in memory after a query has failed; throws its error when there is no grace. */
  #inGrace(key: SessionKey, error: unknown): StoredSession | undefined {
    const near = this.#near.get(key)
    const isUnavailable = error instanceof GatewayError && error.code === 'ERR_STORE_UNAVAILABLE'
    if (!isUnavailable || !this.#grace.lasts || near === undefined || this.#isOver(near, this.#parts.clock.now()))
      throw error
    if (this.#isEnding(near.stored)) return undefined
    this.#grace.serve(error.message)
    return near.stored
  }

  #isOver({ stored, touchedAt }: NearSession, now: number): boolean {
    return now >= stored.record.absolute_expires_at || now >= touchedAt + this.#idleTimeoutOf(stored.record)
  }

  /** The store is available again. Notices may have been missed, so memory is emptied. */
  #reset(): void {
    this.#near.clear()
    this.#grace.end('store_responds')
  }

  /** Whether an order to end the session exists that the store has not accepted yet. */
  #isEnding({ key, audience, record }: StoredSession): boolean {
    const { pending } = this.#parts
    return !pending.isEmpty && pending.covers(record.created_at, key, tagOf(key), subTag(audience, record.sub))
  }

  /** Moves the idle timeout in the store. The request does not wait for it. */
  #touch(near: NearSession, now: number): void {
    const { touchedAt } = near
    near.touchedAt = now
    this.#store.touch(near.stored.key, this.#idleTimeout(near.stored.record)).then(
      (exists) => exists || this.endings.tell([near.stored.key]),
      (error: unknown) => {
        near.touchedAt = touchedAt
        this.#parts.log.debug('session.touch_failed', { reason: reason(error) })
      },
    )
  }

  /** Restarts the idle timeout of a session from the store; `false` when it has ended meanwhile. */
  async #touched(session: UnopenedSession, { record }: StoredSession, keep: Keep): Promise<boolean> {
    const { key } = session
    const now = this.#parts.clock.now()
    const exists = await this.#store.touch(key, this.#idleTimeout(record))
    if (exists) keep(session, now)
    else this.endings.tell([key])
    return exists && !this.#near.hasEnded(key)
  }

  /**
   * All steps of a query whose result is kept are in one `run`, so no change between them is
   * missed.
   */
  async #query<T>(key: SessionKey, run: (keep: Keep) => Promise<T>): Promise<T> {
    const reads = this.#near.reading(key)
    try {
      return await run((session, touchedAt) => {
        if (!reads.areOvertaken) this.#near.keep(session, touchedAt)
      })
    } finally {
      this.#near.settle(key, reads)
    }
  }
}

/**
 * Replaces the record of a session by what `change` makes of it, again when another process wrote.
 * @returns `false` when the session has ended
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
 */
export async function changeSession(
  key: SessionKey,
  sessions: Pick<Sessions, 'read' | 'replace'>,
  change: (record: SessionRecord) => SessionRecord,
): Promise<boolean> {
  for (let stored = await sessions.read(key); stored !== undefined; stored = await sessions.read(key)) {
    const outcome = await sessions.replace(stored, change(stored.record))
    if (outcome !== 'conflict') return outcome !== 'gone'
  }
  return false
}

/**
 * The sessions of one audience (see `audienceOf`); those of others do not exist here, even if a
 * cookie names them. Each method is that of {@link Sessions}.
 */
export class SessionsOfAudience {
  readonly audience: string
  readonly #sessions: Sessions

  constructor(audience: string, sessions: Sessions) {
    this.audience = audience
    this.#sessions = sessions
  }

  findInMemory(key: SessionKey): StoredSession | undefined {
    return this.#own(this.#sessions.findInMemory(key))
  }

  async find(key: SessionKey): Promise<StoredSession | undefined> {
    return this.#own(await this.#sessions.find(key))
  }

  async peek(key: SessionKey): Promise<StoredSession | undefined> {
    return this.#own(await this.#sessions.peek(key))
  }

  async read(key: SessionKey): Promise<StoredSession | undefined> {
    return this.#own(await this.#sessions.read(key))
  }

  async expiry(key: SessionKey): Promise<SessionExpiry | undefined> {
    return this.#own(await this.#sessions.expiry(key))
  }

  lastUse(session: StoredSession): Promise<LastUse | undefined> {
    return this.#sessions.lastUse(session)
  }

  create(record: NewRecord, begun_at: number, cause?: Cause): Promise<SessionId | undefined> {
    return this.#sessions.create(this.audience, record, begun_at, cause)
  }

  replace(previous: StoredSession, record: SessionRecord): Promise<StoredSession | 'conflict' | 'gone'> {
    return this.#sessions.replace(previous, record)
  }

  #own<T extends { readonly audience: string }>(session: T | undefined): T | undefined {
    return session?.audience === this.audience ? session : undefined
  }
}

/** Whether the provider has just confirmed a session: with tokens, or with a UserInfo response. */
function isConfirmed({ record }: StoredSession, next: SessionRecord): boolean {
  return next.tokens !== record.tokens || next.userinfo_read_at !== record.userinfo_read_at
}

/**
 * Whether nothing but the time of the last UserInfo response has changed. A process with an older
 * copy serves the same then. Before it asks the provider itself, it reads the record from the
 * store.
 */
function isOnlyConfirmed({ record, isDoubtful }: StoredSession, next: SessionRecord): boolean {
  if (isDoubtful === true) return false
  const { userinfo_read_at } = record
  return JSON.stringify(record) === JSON.stringify({ ...next, userinfo_read_at })
}
