import type { SessionKey, SidTag, SubTag } from '../core/names.ts'
import type { KeptStore } from './kept-store.ts'

/**
 * Stores sessions. A store sees hashes and sealed bytes, but no cookie value, claim or token. Every
 * implementation passes the contract in test/session/store-contract.ts.
 *
 * All methods reject with a `GatewayError` `ERR_STORE_UNAVAILABLE` when the store cannot be reached
 * or does not reply within its time limit. When an ending covers many sessions, the time limit
 * applies to each 200 of them.
 */
export interface SessionStore {
  /** The requests that wait until their person has signed in again. */
  readonly kept: KeptStore

  /**
   * Stores a new session, and adds it to the (iss, sid) and (iss, sub) indexes.
   * @returns `ended`, and nothing is stored, when a Logout Token for its sid or sub arrived at or
   * after `begun_at`. The sign-in began before that logout.
   */
  create(session: NewSession): Promise<'created' | 'ended'>

  read(key: SessionKey): Promise<SealedSession | undefined>

  /**
   * Replaces the sealed bytes if `version` is still the stored version, and increments the version.
   * The expiry stays as it is.
   */
  replace(key: SessionKey, sealed: Uint8Array, version: number): Promise<'replaced' | 'conflict' | 'gone'>

  /**
   * Moves the idle expiry to `idle_timeout` ms from now, but not past the absolute expiry.
   * @returns `false` when the session is gone
   */
  touch(key: SessionKey, idle_timeout: number): Promise<boolean>

  /**
   * Ends one session.
   * @returns the ended session; empty when it was gone before
   */
  endOne(key: SessionKey): Promise<readonly EndedSession[]>

  /**
   * Ends all sessions of one (iss, sid) and leaves a tombstone. The `jti` of the Logout Token is
   * taken last, after all processes were notified. So the provider can send the token again when a
   * step before that fails.
   * @returns `replayed`, and nothing changes, when the `jti` was taken before
   */
  endSid(tag: SidTag, order: LogoutOrder): Promise<readonly EndedSession[] | 'replayed'>

  /** Like {@link endSid}, for all sessions of one (iss, sub). */
  endSub(tag: SubTag, order: LogoutOrder): Promise<readonly EndedSession[] | 'replayed'>

  /**
   * All sessions, in batches, each session at least once. This reads the whole store, so it is for
   * administration only. Like the two lists below, it may name sessions that have just expired.
   */
  list(): AsyncIterable<readonly SessionKey[]>

  /** The sessions of one (iss, sid), the latest first. */
  listSid(tag: SidTag): Promise<readonly SessionKey[]>

  /** The sessions of one (iss, sub), the latest first. */
  listSub(tag: SubTag): Promise<readonly SessionKey[]>

  /**
   * Lets an operation happen only once.
   * @returns `true` for the first call with this name within `ttl` ms, `false` for all others
   */
  takeOnce(name: string, ttl: number): Promise<boolean>

  /**
   * Takes the refresh lease of a session for `ttl` ms. `owner` is a unique value.
   * @returns `false` when another owner holds the lease
   */
  acquireLease(key: SessionKey, owner: string, ttl: number): Promise<boolean>

  /**
   * Extends a lease that `owner` still holds.
   * @returns `false` when the lease was lost
   */
  renewLease(key: SessionKey, owner: string, ttl: number): Promise<boolean>

  /** Releases the lease if `owner` still holds it. */
  releaseLease(key: SessionKey, owner: string): Promise<void>

  /**
   * Calls `listener` when another process ends or changes sessions. It may also be called when this
   * process does so.
   * @returns a function that removes the listener
   */
  onNotice(listener: (notice: StoreNotice) => void): () => void

  /**
   * Whether notices of other processes are certain to arrive. While it is `false`, no session may
   * be served from memory. Before it becomes `true` again, the listeners get a `resumed` notice,
   * because notices may have been missed.
   */
  receivesNotices(): boolean

  /**
   * How long ago the last proof expired that notices arrive, in ms. Negative while a proof is
   * valid, `Infinity` when there was none. The sessions in memory were up to date at that time.
   */
  staleForMs(): number

  /**
   * The time of the store, which does not depend on the clocks of the processes. Logouts and
   * sign-ins are compared by it: `LogoutOrder.at` is the latest possible time,
   * `NewSession.begun_at` the earliest.
   */
  time(): Promise<StoreTime>

  /** Resolves when the store replies. */
  ping(): Promise<void>

  close(): Promise<void>
}

/**
 * The mark of a logout. Sign-ins of the sid or sub that began at or before `at`, in the store's
 * time, must not become sessions.
 */
export interface Tombstone {
  readonly tag: SidTag | SubTag
  /** In ms since the epoch. */
  readonly at: number
  /** How long it is kept, in ms. */
  readonly ttl: number
}

/**
 * A notice of another process. Listeners drop their copies. For `ended` they close the open streams
 * of the sessions too. For `resumed` they drop all copies, because notices may have been missed.
 */
export type StoreNotice =
  | { readonly kind: 'ended'; readonly keys: readonly SessionKey[] }
  | { readonly kind: 'changed'; readonly key: SessionKey }
  | { readonly kind: 'resumed' }

/**
 * The bounds of the time in the store, in ms since the epoch. They differ by one round trip at
 * most.
 */
export interface StoreTime {
  readonly earliest: number
  readonly latest: number
}

export interface NewSession {
  readonly key: SessionKey
  readonly subTag: SubTag
  readonly sealed: Uint8Array
  /** In ms. */
  readonly idle_timeout: number
  /** In ms since the epoch. */
  readonly absolute_expires_at: number
  /** When the browser was sent to the provider, in the store's time. */
  readonly begun_at: number
}

export interface SealedSession {
  readonly sealed: Uint8Array
  readonly version: number
  /**
   * The store may have been restored from an older copy since the session was written, so the
   * session may have ended.
   */
  readonly isDoubtful?: boolean
}

export interface EndedSession {
  readonly key: SessionKey
  readonly sealed: Uint8Array
}

export interface LogoutOrder {
  /** A hash of the token's `iss` and `jti`. */
  readonly jti: string
  /** How long the `jti` is remembered, in ms; at least until the token expires. */
  readonly jti_ttl: number
  /** When the order arrived, in the store's time. See `Tombstone.at`. */
  readonly at: number
  /** How long the tombstone is kept, in ms. This is longer than a sign-in may take. */
  readonly tombstone_ttl: number
}
