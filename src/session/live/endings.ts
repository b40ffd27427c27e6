import { setImmediate as nextTurn } from 'node:timers/promises'
import { BoundedMap } from '../../core/bounded-map.ts'
import type { Clock } from '../../core/clock.ts'
import type { SessionKey, SidTag } from '../../core/names.ts'
import { sha256 } from '../../core/random.ts'
import type { Keyring } from '../../core/seal.ts'
import { signInLifetimeMs } from '../../core/sign-in-lifetime.ts'
import type { Audit, Cause } from '../../observe/audit.ts'
import { type SessionOwner, type SessionRecord, sidTag, subTag, tagOf, tagsOfOrder } from '../record/record.ts'
import { type OpenedRecord, openRecord } from '../record/sealed-record.ts'
import type { EndedLate, EndedSession, LogoutOrder, SessionStore, Tombstone } from '../store/store.ts'
import { Attempt } from './attempt.ts'
import type { NearCache, NearCaches } from './near-cache.ts'
import type { PendingEnding, PendingEndings } from './pending-endings.ts'

/** Who or what ended a session, as the audit event names it. */
export type EndedBy =
  | 'provider'
  | 'provider_frame'
  | 'person'
  | 'administrator'
  | 'new_sign_in'
  | 'max_per_person'
  | 'invalid_grant'
  | 'invalid_tokens'
  | 'userinfo_401'
  | 'session_expiry'
  | 'misuse'
  | 'signal'
  | 'earlier_order'

/** The longest time for which the `jti` of an order is remembered, in ms. */
const longestJtiMs = 8 * 24 * 60 * 60 * 1000

/** How many audit events of ended sessions are written at once: about 5 ms. */
const recordedAtOnce = 100

export interface SessionEndingsParts {
  readonly store: SessionStore
  readonly keyring: Keyring
  /** The audiences of the sessions. See `audienceOf`. */
  readonly audiences: readonly string[]
  readonly clock: Clock
  readonly audit: Audit
  /** One for the whole process. */
  readonly pending: PendingEndings
  readonly near: NearCache
  readonly caches: NearCaches
}

/** An ended session. `record` and `audience` are absent when the record could not be opened. */
export interface Ended {
  readonly key: SessionKey
  readonly audience: string | undefined
  readonly record: SessionRecord | undefined
}

/** A verified Logout Token: its `jti`, and `exp` in seconds since the epoch, for an audience. */
export interface EndOrder {
  readonly audience: string
  readonly jti: string
  readonly exp: number
  /** When the provider issued it, in ms since the epoch by its own clock; absent: unknown. */
  readonly issued_at?: number | undefined
  /** The `sub` beside a `sid`. The sessions of this `sub` that have no `sid` end too. */
  readonly sub?: string | undefined
}

/** `where`: whether this process or another one has ended the sessions. */
export type EndingListener = (keys: readonly SessionKey[], where: 'here' | 'elsewhere') => void

/** `at` is the time of the ending in ms since the epoch. `issued_at`: see `Tombstone`. */
export type OrderListener = (order: Pick<Tombstone, 'tag' | 'at' | 'issued_at'>) => void

/** An order to end sessions. It becomes a pending ending when the store fails. */
interface Order<T> extends Omit<PendingEnding, 'createdUntil'> {
  readonly send: () => Promise<T>
  readonly findInMemory: () => readonly SessionKey[]
}

/**
 * Ends sessions, and tells the listeners in this process about each ending. When the store fails,
 * they end in this process at once, and everywhere when it is available again. The caller must
 * still repeat the order, because this process may stop before: the methods throw
 * `ERR_STORE_UNAVAILABLE`.
 */
export class SessionEndings {
  readonly #parts: SessionEndingsParts
  readonly #listeners: EndingListener[] = []
  readonly #orderListeners: OrderListener[] = []
  /** The results of pending endings, for a caller that repeats its order. */
  readonly #completedLate = new BoundedMap<SessionKey, Ended>('endings_completed_late', 1_000)

  constructor(parts: SessionEndingsParts) {
    this.#parts = parts
  }

  /** Calls `listener` for all sessions that end, in this process or in another one. */
  onEnded(listener: EndingListener): void {
    this.#listeners.push(listener)
  }

  /** Calls `listener` for each Logout Token that any process receives, also without a session. */
  onLogoutOrder(listener: OrderListener): void {
    this.#orderListeners.push(listener)
  }

  /** Removes ended sessions from the memory of this process and tells the listeners. */
  tell(keys: readonly SessionKey[], where: 'here' | 'elsewhere' = 'here'): void {
    this.#parts.caches.end(keys)
    for (const listener of this.#listeners) listener(keys, where)
  }

  /**
   * Tells the listeners about sessions that an earlier order did not find, and records those that
   * have ended. After a reload, each generation tells its listeners, and one of them records.
   */
  tellLate({ keys, sessions }: EndedLate): void {
    this.tell(keys, 'elsewhere')
    this.tell(sessions.map(({ key }) => key))
    for (const session of sessions) {
      const opened = this.#open(session.key, session.sealed)
      if (opened !== undefined && this.#parts.caches.takeRecording(session))
        this.#audit(session.key, opened, 'earlier_order')
    }
  }

  tellOrder(order: Pick<Tombstone, 'tag' | 'at' | 'issued_at'>): void {
    for (const listener of this.#orderListeners) listener(order)
  }

  /** Ends one session. `cause` is for the audit event, here and below. */
  async endOne(key: SessionKey, by: EndedBy, cause?: Cause): Promise<readonly Ended[]> {
    const { near, store } = this.#parts
    const sessions = await this.#endInStore({
      name: key,
      scope: key,
      isTrusted: near.has(key),
      send: async () => ((await this.#isForeign(key)) ? [] : store.endOne(key)),
      findInMemory: () => [key],
      repeat: async () => {
        for (const ended of await this.endOne(key, by, cause)) this.#completedLate.set(key, ended)
      },
    })
    const ended = await this.#record(sessions, by, cause)
    return ended.length > 0 ? ended : [this.#completedLate.get(key) ?? []].flat()
  }

  /**
   * Ends all sessions of one `sid` at an audience, and those of the `sub` of the order that have no
   * `sid`. `replayed`: this Logout Token was used before.
   */
  async endSid(sid: string, order: EndOrder, by: EndedBy, cause?: Cause): Promise<readonly Ended[] | 'replayed'> {
    const tags = tagsOfOrder(order.audience, sid, order.sub)
    // Each tag has its own `jti`. So a token that is repeated ends what its first attempt has left.
    const outcomes = await Promise.all(tags.map((tag) => this.#endTag(tag, order, by, cause)))
    const ended = outcomes.filter((outcome) => outcome !== 'replayed')
    return ended.length === 0 ? 'replayed' : ended.flat()
  }

  async #endTag(tag: SidTag, order: EndOrder, by: EndedBy, cause?: Cause): Promise<readonly Ended[] | 'replayed'> {
    const { caches, clock, pending, store } = this.#parts
    const name = `${tag} ${jtiOf(order)}`
    const attempt = pending.attemptOf(name) ?? new Attempt(clock.now())
    this.tellOrder({ tag, at: attempt.at, issued_at: order.issued_at })
    const ended = await this.#endInStore({
      name,
      scope: tag,
      isTrusted: true,
      attempt,
      send: async () => store.endSid(tag, await this.#logoutOrder(order, attempt)),
      findInMemory: () => caches.keysOf(hasTag(tag)),
      repeat: () => this.#endTag(tag, order, by, cause),
    })
    return ended === 'replayed' ? ended : this.#record(ended, by, cause)
  }

  /** Ends all sessions of one `sub` at an audience. `replayed`: the token was used before. */
  async endSub(sub: string, order: EndOrder, by: EndedBy, cause?: Cause): Promise<readonly Ended[] | 'replayed'> {
    const { audience } = order
    const { caches, clock, pending, store } = this.#parts
    const tag = subTag(audience, sub)
    const name = jtiOf(order)
    const attempt = pending.attemptOf(name) ?? new Attempt(clock.now())
    this.tellOrder({ tag, at: attempt.at, issued_at: order.issued_at })
    const ended = await this.#endInStore({
      name,
      scope: tag,
      isTrusted: true,
      attempt,
      send: async () => store.endSub(tag, await this.#logoutOrder(order, attempt)),
      findInMemory: () => caches.keysOf((session) => session.audience === audience && session.sub === sub),
      repeat: () => this.endSub(sub, order, by, cause),
    })
    return ended === 'replayed' ? ended : this.#record(ended, by, cause)
  }

  /**
   * Ends the present sessions of one `sid` at an audience. The order is not signed, so a sign-in
   * that is under way continues, and the store keeps no tombstone.
   */
  async endPresentSid(audience: string, sid: string, by: EndedBy, cause?: Cause): Promise<readonly Ended[]> {
    const { near, store } = this.#parts
    const tag = sidTag(audience, sid)
    const keys = await store.listSid(tag).catch(async (error: unknown) => {
      await Promise.allSettled(near.keysOf(hasTag(tag)).map((key) => this.endOne(key, by, cause)))
      throw error
    })
    return (await Promise.all(keys.map((key) => this.endOne(key, by, cause)))).flat()
  }

  /**
   * Carries out an order that ends sessions without a `sid` or `sub`, and that only its sender
   * repeats after an error.
   * @param name of this order: a repetition has the same
   */
  async carryOut<T>(name: string, work: (attempt: Attempt) => Promise<T>): Promise<T> {
    const { clock, pending, store } = this.#parts
    const attempt = pending.failedAttempts.get(name) ?? new Attempt(clock.now())
    try {
      await attempt.storeTime(store)
      const result = await work(attempt)
      pending.failedAttempts.delete(name)
      return result
    } catch (error) {
      attempt.hasFailed = true
      pending.failedAttempts.set(name, attempt)
      throw error
    }
  }

  async #endInStore<T>({ name, scope, isTrusted, attempt, send, findInMemory, repeat }: Order<T>): Promise<T> {
    const { clock, pending } = this.#parts
    const isRepeated = attempt?.hasFailed === true
    try {
      const result = await send()
      pending.complete(name)
      return result
    } catch (error) {
      const createdUntil = attempt?.at ?? clock.now()
      pending.add({ name, scope, isTrusted, createdUntil, repeat, ...(attempt && { attempt }) })
      // A repetition would also find the sessions of later sign-ins.
      if (!isRepeated) this.tell(findInMemory())
      if (attempt !== undefined) attempt.hasFailed = true
      throw error
    }
  }

  /**
   * Whether a session is of another audience: gateways that share a store must not end each other's
   * sessions. One that was sealed with a removed key counts too, because no gateway serves it. One
   * that a newer version has sealed does not count: an order ends it too.
   */
  async #isForeign(key: SessionKey): Promise<boolean> {
    const stored = await this.#parts.store.read(key)
    return stored !== undefined && this.#open(key, stored.sealed) === undefined
  }

  async #logoutOrder(order: EndOrder, attempt: Attempt): Promise<LogoutOrder> {
    const { clock, store } = this.#parts
    const at = await attempt.storeTime(store)
    const remaining = order.exp * 1000 - clock.now()
    // The clock tolerance (at most five minutes) makes a token valid a little longer than `exp`.
    return {
      jti: jtiOf(order),
      jti_ttl: Math.min(Math.max(remaining, 0) + 10 * 60 * 1000, longestJtiMs),
      at,
      begun_until: attempt.hasFailed ? at : undefined,
      ttl: 2 * signInLifetimeMs,
      issued_at: order.issued_at,
    }
  }

  /**
   * Tells the listeners about ended sessions, and writes their audit events. For many sessions of
   * one person this takes long, so it lets other work pass.
   */
  async #record(sessions: readonly EndedSession[], by: EndedBy, cause: Cause | undefined): Promise<readonly Ended[]> {
    this.tell(sessions.map(({ key }) => key))
    const ended: Ended[] = []
    for (const { key, sealed } of sessions) {
      if (ended.length % recordedAtOnce === recordedAtOnce - 1) await nextTurn()
      ended.push(this.#audit(key, this.#open(key, sealed), by, cause))
    }
    return ended
  }

  #audit(key: SessionKey, opened: OpenedRecord | 'newer' | undefined, by: EndedBy, cause?: Cause): Ended {
    const { audience, record } = opened === undefined || opened === 'newer' ? {} : opened
    const { iss, sub, sid } = record ?? {}
    const about = { by, session: key, iss, sub, sid }
    if (record?.key === undefined) this.#parts.audit.record('session.ended', about, cause)
    else this.#parts.audit.record('key.ended', { ...about, upstream: record.key.upstream }, cause)
    return { key, audience, record }
  }

  #open(key: SessionKey, sealed: Uint8Array): OpenedRecord | 'newer' | undefined {
    const { keyring, audiences } = this.#parts
    return openRecord(keyring, { key, audiences }, sealed)
  }
}

function hasTag(tag: string): (session: SessionOwner) => boolean {
  return ({ key }) => tagOf(key) === tag
}

/** Two clients of one provider may get the same Logout Token. Each obeys it once. */
function jtiOf({ audience, jti }: EndOrder): string {
  return sha256(audience, jti)
}

/** Why a session ends, for those who ask after it has ended. */
const reasons = {
  /** Its person has signed in elsewhere, more often than is allowed. Remembered for a day. */
  elsewhere: { name: 'ended elsewhere: ', lifetimeMs: 24 * 60 * 60 * 1000 },
  /** Its person has signed in again in the same browser, which gets its new cookie meanwhile. */
  renewal: { name: 'renewal of ', lifetimeMs: 60_000 },
} as const

type EndingReason = keyof typeof reasons

/**
 * Marks a session with the reason why it ends, for all processes, so before it ends.
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
 */
export function markEnding(
  key: SessionKey,
  why: EndingReason,
  store: Pick<SessionStore, 'takeOnce'>,
): Promise<unknown> {
  return store.takeOnce(reasons[why].name + key, reasons[why].lifetimeMs)
}

/**
 * Whether a session has ended for this reason.
 * @throws {GatewayError} `ERR_STORE_UNAVAILABLE`
 */
export function hasEndedBy(
  key: SessionKey,
  why: EndingReason,
  store: Pick<SessionStore, 'isMarked'>,
): Promise<boolean> {
  return store.isMarked(reasons[why].name + key)
}
