import { LRUCache } from 'lru-cache'
import type { SessionConfig } from '../config/model.ts'
import { isWithin, type Clock } from '../core/clock.ts'
import { GatewayError, reason } from '../core/errors.ts'
import type { SessionId, SessionKey } from '../core/names.ts'
import { sha256 } from '../core/random.ts'
import type { Keyring } from '../core/seal.ts'
import type { Audit, Cause } from '../observe/audit.ts'
import type { Log } from '../observe/log.ts'
import { NearCache, type NearSession } from './near-cache.ts'
import { OutageGrace } from './outage-grace.ts'
import type { OwedEndings, Whom } from './owed-endings.ts'
import { newSessionId, sessionKey, sidTag, subTag, tagOf, type SessionRecord, type StoredSession } from './record.ts'
import { openRecord, sealRecord } from './sealed-record.ts'
import type { EndedSession, LogoutOrder, SessionStore } from './store.ts'

/** Who or what ended a session; the word that stands in the audit event. */
export type EndedBy =
  | 'provider'
  | 'provider_frame'
  | 'person'
  | 'administrator'
  | 'new_sign_in'
  | 'invalid_grant'
  | 'invalid_tokens'
  | 'userinfo_401'

/** How many times within an idle timeout activity is written to the store. */
const touchesPerIdleTimeout = 10
/** How long it is known that the cookie of a session has been expired, in ms. */
const expiredMs = 10_000
/** A sign-in takes no longer than this, so a tombstone has to stand no longer. */
export const signInLifetimeMs = 15 * 60 * 1000

export interface SessionsParts {
  readonly store: SessionStore
  readonly keyring: Keyring
  /** See `audienceOf`. */
  readonly audience: string
  readonly config: Pick<SessionConfig, 'idleTimeoutMs' | 'absoluteTimeoutMs' | 'storeOutageGraceMs'>
  readonly clock: Clock
  readonly log: Log
  readonly audit: Audit
  /** Of the process. */
  readonly owed: OwedEndings
  /**
   * All that answer from this store in this process: what one of them ends or changes the others do
   * not hear of through the store. After a reload there are two for a while. Absent: there is no
   * other.
   */
  readonly inThisProcess?: Set<Sessions>
}

/** An ended session; `record` is absent when it could not be opened. */
export interface Ended {
  readonly key: SessionKey
  readonly record: SessionRecord | undefined
}

/**
 * Who orders an end by Logout Token: the token's `iss`, `jti` and `exp` (seconds since the epoch).
 */
export interface EndOrder {
  readonly iss: string
  readonly jti: string
  readonly exp: number
}

/**
 * Who is signed in. Live sessions are answered from memory; their ends and changes are heard from
 * every other replica.
 */
export class Sessions {
  readonly store: SessionStore
  /** The keys whose cookies have been expired or replaced in the last seconds. */
  readonly #expired = new LRUCache<SessionKey, true>({ max: 10_000, ttl: expiredMs })
  readonly #parts: SessionsParts
  readonly #near = new NearCache()
  readonly #endListeners: ((keys: readonly SessionKey[]) => void)[] = []
  readonly #touchEveryMs: number
  readonly #stopListening: () => void
  readonly #grace: OutageGrace
  /** What was ended because it was owed, for whoever orders it again. */
  readonly #endedLate = new LRUCache<SessionKey, Ended>({ max: 1_000 })
  readonly #inThisProcess: Set<Sessions>

  constructor(parts: SessionsParts) {
    this.#parts = parts
    this.store = parts.store
    this.#inThisProcess = parts.inThisProcess ?? new Set()
    this.#inThisProcess.add(this)
    this.#touchEveryMs = parts.config.idleTimeoutMs / touchesPerIdleTimeout
    const { log, config } = parts
    this.#grace = new OutageGrace({ graceMs: config.storeOutageGraceMs, silentFor: () => this.store.silentFor(), log })
    this.#stopListening = this.store.onNotice((notice) => {
      if (notice.kind === 'resumed') this.#startAnew()
      else if (notice.kind === 'changed') this.#near.drop(notice.key)
      else this.#hasEnded(notice.keys)
    })
  }

  /** Whom its sessions are made for: see `audienceOf`. */
  get audience(): string {
    return this.#parts.audience
  }

  /** Hears of nothing any more, so nobody may be served by it afterwards. */
  close(): void {
    this.#inThisProcess.delete(this)
    this.#stopListening()
    this.#near.clear()
    this.#grace.end('closed')
  }

  /**
   * Takes over what another one in this process has in memory, so that a reload costs neither a
   * question for each session nor, while the store is away, the grace. Both have to be for the same
   * audience, and this one's keys have to open what the other's sealed.
   */
  takeOver(other: Sessions): void {
    this.#near.takeOver(other.#near)
  }

  /** Calls back, in this process, for every session that was ended, by whichever replica. */
  onEnded(listener: (keys: readonly SessionKey[]) => void): void {
    this.#endListeners.push(listener)
  }

  /** A session in memory that may be served without asking the store. Counts as activity. */
  findInMemory(key: SessionKey): StoredSession | undefined {
    const near = this.#near.get(key)
    if (near === undefined || !this.store.hearsNotices() || this.#isOwed(near.stored)) return undefined
    const now = this.#parts.clock.now()
    if (this.#isOver(near, now)) return undefined
    // A clock that was set back must not keep activity from the store, where the session would
    // expire.
    if (!isWithin(this.#touchEveryMs, near.touchedAt, now)) this.#touch(near, now)
    return near.stored
  }

  /**
   * A session, from memory or the store, or from memory while the grace of an outage lasts. Counts
   * as activity.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   */
  async find(key: SessionKey): Promise<StoredSession | undefined> {
    const inMemory = this.findInMemory(key)
    if (inMemory !== undefined) return inMemory
    return this.#orInGrace(key, async () => {
      const stored = await this.read(key)
      if (stored === undefined) return undefined
      return (await this.#touched(stored)) ? stored : undefined
    })
  }

  /**
   * The same for somebody who looks only: it does not count as activity. @throws {GatewayError}
   * `ERR_STORE_UNAVAILABLE`
   */
  async peek(key: SessionKey): Promise<StoredSession | undefined> {
    return this.#orInGrace(key, () => this.read(key))
  }

  /** Whether sessions in memory are served, or would be if the store did not answer. */
  get mayServeInOutage(): boolean {
    return this.#grace.lasts
  }

  /**
   * A session as the store has it now. Does not count as activity. @throws {GatewayError}
   * `ERR_STORE_UNAVAILABLE`
   */
  async read(key: SessionKey): Promise<StoredSession | undefined> {
    if (this.#near.hasEnded(key) || this.#parts.owed.concern(0, key)) return undefined
    return this.#asking(key, async (keep) => {
      const sealed = await this.store.read(key)
      // The store may be away again before it is heard that it has ended.
      if (sealed === undefined) this.#near.drop(key)
      if (sealed === undefined || this.#near.hasEnded(key)) return undefined
      const opened = openRecord(this.#parts.keyring, this.#place(key), sealed.sealed)
      if (opened === undefined) {
        this.#parts.log.warn('session.unreadable', {
          session: key,
          hint: 'sealed with a key that is not in session.keys, or changed in the store',
        })
        return undefined
      }
      const { record, unpackedBytes: bytes } = opened
      // The store's own expiry is the authority; this one holds when its clock is behind.
      if (this.#parts.clock.now() >= record.absolute_expires_at) return undefined
      const { version, isDoubtful = false } = sealed
      const stored = { key, version, record, bytes, ...(isDoubtful && { isDoubtful }) }
      if (this.#isOwed(stored)) return undefined
      const known = this.#near.get(key)
      if (known !== undefined) keep(stored, known.touchedAt)
      return stored
    })
  }

  /**
   * A new session under a new id, always. `undefined` when a Logout Token for it has arrived since
   * `begun_at`, the time in the store when the browser was sent to the provider. `cause` is for the
   * audit event, here and below.
   */
  async create(
    record: Omit<SessionRecord, 'created_at' | 'absolute_expires_at'>,
    begun_at: number,
    cause?: Cause,
  ): Promise<SessionId | undefined> {
    const { idleTimeoutMs, absoluteTimeoutMs } = this.#parts.config
    const created_at = this.#parts.clock.now()
    const absolute_expires_at = created_at + absoluteTimeoutMs
    const whole: SessionRecord = { ...record, created_at, absolute_expires_at }
    const id = newSessionId(this.#parts.audience, record.sid)
    const key = sessionKey(id)
    const { sealed, unpackedBytes: bytes } = sealRecord(this.#parts.keyring, this.#place(key), whole)
    const created = await this.#asking(key, async (keep) => {
      const outcome = await this.store.create({
        key,
        subTag: subTag(this.#parts.audience, record.sub),
        sealed,
        idle_timeout: idleTimeoutMs,
        absolute_expires_at,
        begun_at,
      })
      if (outcome === 'created') keep({ key, version: 1, record: whole, bytes }, created_at)
      return outcome
    })
    if (created === 'ended') return undefined
    const { iss, sub, sid } = record
    this.#parts.audit.record('session.created', { session: key, iss, sub, sid }, cause)
    return id
  }

  /**
   * Writes a new record over the version that was read; `conflict`: another wrote first, `gone`: it
   * has ended meanwhile.
   */
  async replace(previous: StoredSession, record: SessionRecord): Promise<StoredSession | 'conflict' | 'gone'> {
    const { key, version } = previous
    const { sealed, unpackedBytes: bytes } = sealRecord(this.#parts.keyring, this.#place(key), record)
    return this.#asking(key, async (keep) => {
      const touchedAt = this.#near.get(key)?.touchedAt
      const outcome = await this.store.replace(key, sealed, version)
      if (outcome !== 'replaced') {
        this.#near.drop(key)
        return outcome
      }
      const stored = { key, version: version + 1, record, bytes }
      for (const other of this.#others()) other.#near.drop(key)
      if (touchedAt !== undefined) keep(stored, touchedAt)
      return stored
    })
  }

  /**
   * Ends one session. An order that the store does not take holds here all the same, and everywhere
   * as soon as the store does. As this process may be gone by then, whoever orders is to order
   * again. The same goes for `endSid` and `endSub`.
   * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
   */
  async endOne(key: SessionKey, by: EndedBy, cause?: Cause): Promise<readonly Ended[]> {
    if (by === 'new_sign_in') this.noteExpired(key)
    const found = await this.#given({
      ...{ name: key, whom: key, isProven: this.#near.get(key) !== undefined },
      give: async () => ((await this.#isForeign(key)) ? [] : this.store.endOne(key)),
      here: () => [key],
      again: async () => {
        for (const ended of await this.endOne(key, by, cause)) this.#endedLate.set(key, ended)
      },
    })
    const ended = this.#ended(found, by, cause)
    return ended.length > 0 ? ended : [this.#endedLate.get(key) ?? []].flat()
  }

  /**
   * Whether this process has just expired or replaced the cookie with this key. The browser may
   * have signed in again since then, so the cookie must not be expired once more: the new one has
   * the same name.
   */
  isExpired(key: SessionKey): boolean {
    return this.#expired.has(key)
  }

  noteExpired(key: SessionKey): void {
    this.#expired.set(key, true)
  }

  /**
   * Ends all sessions of one (iss, sid), and no others. `replayed`: this order was carried out
   * before.
   */
  async endSid(sid: string, order: EndOrder, by: EndedBy, cause?: Cause): Promise<readonly Ended[] | 'replayed'> {
    const tag = sidTag(this.#parts.audience, sid)
    const ended = await this.#given({
      ...{ name: jtiOf(order), whom: tag, isProven: true },
      give: async () => this.store.endSid(tag, await this.#logoutOrder(order)),
      here: (near) => near.keysOf(({ key }) => tagOf(key) === tag),
      again: () => this.endSid(sid, order, by, cause),
    })
    return ended === 'replayed' ? ended : this.#ended(ended, by, cause)
  }

  /**
   * Ends the sessions of one (iss, sid) that are there now, for an order that is not signed: a
   * sign-in that is under way goes on, and nothing is left behind in the store.
   */
  async endPresentSid(sid: string, by: EndedBy, cause?: Cause): Promise<readonly Ended[]> {
    const tag = sidTag(this.#parts.audience, sid)
    const keys = await this.store.listSid(tag).catch(async (error: unknown) => {
      const here = this.#near.keysOf(({ key }) => tagOf(key) === tag)
      await Promise.allSettled(here.map((key) => this.endOne(key, by, cause)))
      throw error
    })
    return (await Promise.all(keys.map((key) => this.endOne(key, by, cause)))).flat()
  }

  /** Ends all sessions of one (iss, sub). `replayed`: this order was carried out before. */
  async endSub(sub: string, order: EndOrder, by: EndedBy, cause?: Cause): Promise<readonly Ended[] | 'replayed'> {
    const tag = subTag(this.#parts.audience, sub)
    const ended = await this.#given({
      ...{ name: jtiOf(order), whom: tag, isProven: true },
      give: async () => this.store.endSub(tag, await this.#logoutOrder(order)),
      here: (near) => near.keysOf(({ record }) => record.sub === sub),
      again: () => this.endSub(sub, order, by, cause),
    })
    return ended === 'replayed' ? ended : this.#ended(ended, by, cause)
  }

  async #given<T>(order: {
    readonly name: string
    readonly whom: Whom
    /** See `OwedEnding`. */
    readonly isProven: boolean
    readonly give: () => Promise<T>
    /** Which of the sessions that are known here it is about. */
    readonly here: (near: NearCache) => readonly SessionKey[]
    readonly again: () => Promise<unknown>
  }): Promise<T> {
    try {
      const outcome = await order.give()
      this.#parts.owed.settle(order.name)
      return outcome
    } catch (error) {
      const { name, whom, isProven, here, again } = order
      this.#parts.owed.owe({ name, whom, isProven, until: this.#parts.clock.now(), give: again })
      this.#hasEnded([...this.#inThisProcess].flatMap((each) => here(each.#near)))
      throw error
    }
  }

  async #orInGrace(key: SessionKey, ask: () => Promise<StoredSession | undefined>): Promise<StoredSession | undefined> {
    try {
      return await ask()
    } catch (error) {
      const near = this.#near.get(key)
      const isAway = error instanceof GatewayError && error.code === 'ERR_STORE_UNAVAILABLE'
      if (!isAway || !this.#grace.lasts || near === undefined || this.#isOver(near, this.#parts.clock.now()))
        throw error
      if (this.#isOwed(near.stored)) return undefined
      this.#grace.serve(error.message)
      return near.stored
    }
  }

  #isOver({ stored, touchedAt }: NearSession, now: number): boolean {
    return now >= stored.record.absolute_expires_at || now >= touchedAt + this.#parts.config.idleTimeoutMs
  }

  /** The store answers, and is heard: what may have been missed is asked anew. */
  #startAnew(): void {
    this.#near.clear()
    this.#grace.end('store_answers')
  }

  /**
   * Whether a session was made for another audience: gateways that share a store end no session of
   * each other. One that was sealed with a key that is gone is not told apart, and is served by
   * nobody.
   */
  async #isForeign(key: SessionKey): Promise<boolean> {
    const stored = await this.store.read(key)
    return stored !== undefined && openRecord(this.#parts.keyring, this.#place(key), stored.sealed) === undefined
  }

  #place(key: SessionKey) {
    return { key, audience: this.#parts.audience }
  }

  async #logoutOrder(order: EndOrder): Promise<LogoutOrder> {
    const remaining = order.exp * 1000 - this.#parts.clock.now()
    const { latest } = await this.store.time()
    // A token may be good for a little longer than its `exp`, by the clock tolerance; five minutes
    // are the most that is allowed.
    return {
      jti: jtiOf(order),
      jti_ttl: Math.max(remaining, 0) + 10 * 60 * 1000,
      at: latest,
      tombstone_ttl: 2 * signInLifetimeMs,
    }
  }

  #ended(sessions: readonly EndedSession[], by: EndedBy, cause: Cause | undefined): readonly Ended[] {
    const ended = sessions.map(({ key, sealed }) => ({
      key,
      record: openRecord(this.#parts.keyring, this.#place(key), sealed)?.record,
    }))
    for (const { key, record } of ended)
      this.#parts.audit.record(
        'session.ended',
        { by, session: key, iss: record?.iss, sub: record?.sub, sid: record?.sid },
        cause,
      )
    this.#hasEnded(ended.map(({ key }) => key))
    return ended
  }

  /** Whether it is to be ended, but the store has not taken that yet. */
  #isOwed({ key, record }: StoredSession): boolean {
    const { owed, audience } = this.#parts
    return !owed.isEmpty && owed.concern(record.created_at, key, tagOf(key), subTag(audience, record.sub))
  }

  #others(): readonly Sessions[] {
    return [...this.#inThisProcess].filter((each) => each !== this)
  }

  #hasEnded(keys: readonly SessionKey[]): void {
    for (const key of keys) this.#near.end(key)
    for (const other of this.#others()) for (const key of keys) other.#near.end(key)
    for (const listener of this.#endListeners) listener(keys)
  }

  /** Moves the idle timeout in the store, seldom, and without anybody waiting for it. */
  #touch(near: NearSession, now: number): void {
    const { touchedAt } = near
    near.touchedAt = now
    this.store.touch(near.stored.key, this.#parts.config.idleTimeoutMs).then(
      (isThere) => isThere || this.#hasEnded([near.stored.key]),
      (error: unknown) => {
        near.touchedAt = touchedAt
        this.#parts.log.debug('session.touch_failed', { reason: reason(error) })
      },
    )
  }

  /**
   * For a session that came from the store: its idle timeout starts anew. `false`: it has ended in
   * between.
   */
  async #touched(stored: StoredSession): Promise<boolean> {
    return this.#asking(stored.key, async (keep) => {
      const now = this.#parts.clock.now()
      const isThere = await this.store.touch(stored.key, this.#parts.config.idleTimeoutMs)
      if (isThere) keep(stored, now)
      else this.#hasEnded([stored.key])
      return isThere && !this.#near.hasEnded(stored.key)
    })
  }

  /**
   * Asks the store; `keep` puts the answer into memory, unless the session was changed or ended
   * elsewhere meanwhile.
   */
  async #asking<T>(
    key: SessionKey,
    ask: (keep: (stored: StoredSession, touchedAt: number) => void) => Promise<T>,
  ): Promise<T> {
    const { read, settle } = this.#near.reading(key)
    try {
      return await ask((stored, touchedAt) => {
        if (!read.overtaken) this.#near.keep(stored, touchedAt)
      })
    } finally {
      settle()
    }
  }
}

function jtiOf({ iss, jti }: EndOrder): string {
  return sha256(iss, jti)
}
