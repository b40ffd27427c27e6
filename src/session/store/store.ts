import type { RedisStoreConfig } from '../../config/model/session.ts'
import type { KeptKey, SessionKey, SidTag, SubTag } from '../../core/names.ts'

/**
 * Stores sessions, as hashes and sealed bytes, without a cookie value, claim or token. Every
 * implementation passes the contract in test/session/store-contract.ts.
 *
 * All methods reject with a `GatewayError` `ERR_STORE_UNAVAILABLE` when the store cannot be reached
 * or does not reply within its time limit, which is for each 200 sessions of an ending.
 */
export interface SessionStore {
  /** The requests that wait until their person has signed in again. */
  readonly kept: KeptStore

  /**
   * Stores a new session, and adds it to the (iss, sid) and (iss, sub) indexes.
   * @returns `ended`, and nothing is stored, when a Logout Token for its sid or sub arrived at or
   * after `begun_at`
   */
  create(session: NewSession): Promise<'created' | 'ended'>

  read(key: SessionKey): Promise<SealedSession | undefined>

  /**
   * Replaces the sealed bytes and increments the version if it is still the stored one. The expiry
   * stays. In the same step, replaces or removes the job, if given: see {@link LogoutJobStore}.
   * @param isQuiet the other processes may keep their copies, so they are not notified
   * @param staysDoubtful a session that may have ended (see {@link SealedSession}) still may
   */
  replace(
    key: SessionKey,
    sealed: Uint8Array,
    version: number,
    job?: Uint8Array | 'none',
    isQuiet?: boolean,
    staysDoubtful?: boolean,
  ): Promise<'replaced' | 'conflict' | 'gone'>

  /** What is left to do when a session has ended. */
  readonly jobs: LogoutJobStore

  /**
   * Moves the idle expiry to `idle_timeout` ms from now, within the absolute one; `false`: it is
   * gone.
   */
  touch(key: SessionKey, idle_timeout: number): Promise<boolean>

  /** How long the session lives if nothing moves its expiry, in ms; `undefined` when it is gone. */
  expiresIn(key: SessionKey): Promise<number | undefined>

  /** Ends one session; empty when it was gone before. */
  endOne(key: SessionKey): Promise<readonly EndedSession[]>

  /**
   * Ends all sessions of one (iss, sid) and leaves a tombstone. The `jti` is taken last, after all
   * processes were notified, so the provider can send the token again when a step before fails.
   * @returns `replayed`, and nothing changes, when the `jti` was taken before
   */
  endSid(tag: SidTag, order: LogoutOrder): Promise<readonly EndedSession[] | 'replayed'>

  /** Like {@link endSid}, for all sessions of one (iss, sub). */
  endSub(tag: SubTag, order: LogoutOrder): Promise<readonly EndedSession[] | 'replayed'>

  /**
   * All sessions, in batches, each at least once. This reads the whole store, so it is for
   * administration only. Like the two lists below, it may name sessions that have just expired.
   */
  list(): AsyncIterable<readonly SessionKey[]>

  /** The sessions of one (iss, sid), the latest first. */
  listSid(tag: SidTag): Promise<readonly SessionKey[]>

  /** The sessions of one (iss, sub), the latest first. */
  listSub(tag: SubTag): Promise<readonly SessionKey[]>

  /** Lets something happen once: `true` for the first call with this name within `ttl` ms. */
  takeOnce(name: string, ttl: number): Promise<boolean>

  /** Whether {@link takeOnce} was called with this name, within its `ttl`. */
  isMarked(name: string): Promise<boolean>

  /** Takes a lease for `ttl` ms, with a unique `owner`; `false` when another owner holds it. */
  acquireLease(key: SessionKey, owner: string, ttl: number): Promise<boolean>

  /** Extends a lease that `owner` still holds; `false` when it was lost. */
  renewLease(key: SessionKey, owner: string, ttl: number): Promise<boolean>

  /** Releases the lease if `owner` still holds it. */
  releaseLease(key: SessionKey, owner: string): Promise<void>

  /** Reads a document that all processes share; `undefined` when there is none. */
  readDocument(name: string): Promise<SealedDocument | undefined>

  /**
   * Stores a document for `ttl` ms, if `version` is still the stored one (0: none).
   * @returns `false` when another process wrote first
   */
  writeDocument(name: string, document: SealedDocument, ttl: number): Promise<boolean>

  /**
   * Calls `listener` when another process, or perhaps this one, ends or changes sessions.
   * @param isProvenIdle proves that notices arrive also while no request calls
   * {@link receivesNotices}
   * @returns a function that removes the listener
   */
  onNotice(listener: (notice: StoreNotice) => void, isProvenIdle?: boolean): () => void

  /**
   * Whether notices of other processes are certain to arrive. While it is `false`, no session may
   * be served from memory. Before it becomes `true` again, the listeners get a `resumed` notice,
   * because notices may have been missed. Absent: no other process uses the store.
   */
  receivesNotices?: (() => boolean) | undefined

  /**
   * How long ago the last proof expired that notices arrive, in ms. The copies in memory were up to
   * date at that time. Negative while a proof is valid, `Infinity` when there was none.
   */
  staleForMs(): number

  /**
   * The time of the store, apart from the clocks of the processes. Logouts and sign-ins are
   * compared by it: `LogoutOrder.at` is the latest possible time, `NewSession.begun_at` the
   * earliest.
   */
  time(): Promise<StoreTime>

  /** Resolves when the store replies. */
  ping(): Promise<void>

  /**
   * Later connections authenticate with the credentials of this configuration. Absent: there are
   * none.
   */
  renewCredentials?(config: RedisStoreConfig): void

  close(): Promise<void>
}

/** How long a job is kept after the absolute expiry of its session, in ms. */
export const jobOutlivesSessionMs = 60 * 60 * 1000

/**
 * The jobs of sessions: what is left to do when a session has ended. A job outlives its session,
 * whatever ends that: also an expiry, or the death of the process that ended it.
 *
 * For each audience, an index says when to look at which job. Whether a job is due, and who may do
 * it, is decided at the job itself, in one step. All jobs expire by themselves.
 */
export interface LogoutJobStore {
  /**
   * Adds a session to the index for `ttl` ms at least, unless it is there. The first look is after
   * `after` ms.
   */
  watch(audience: string, key: SessionKey, after: number, ttl: number): Promise<void>

  /**
   * Takes up to `limit` due entries of the index, and moves them by `lease` ms, so that other
   * processes do not look at them. Before that, moves the entries of `ended` to now.
   */
  take(
    audience: string,
    options: { readonly ended: readonly SessionKey[]; readonly limit: number; readonly lease: number },
  ): Promise<readonly TakenJob[]>

  /** Looks at a job. A job that is due belongs to the caller for `lease` ms. */
  open(key: SessionKey, lease: number): Promise<OpenedJob>

  /** Moves an entry to `after` ms from now, unless another process has moved it since `taken`. */
  lookAgain(audience: string, taken: TakenJob, after: number): Promise<void>

  /** Makes a job due again after `after` ms. `sealed` is what is left to do. */
  postpone(audience: string, key: SessionKey, after: number, sealed: Uint8Array): Promise<void>

  remove(audience: string, key: SessionKey): Promise<void>
}

export interface TakenJob {
  readonly key: SessionKey
  /** When the index says to look again, in ms since the epoch. */
  readonly until: number
}

export type OpenedJob =
  /** The session has ended, and there is nothing to do. */
  | { readonly kind: 'none' }
  /** Its session is alive for `forMs`, or another process does the job until then. */
  | { readonly kind: 'waiting'; readonly forMs: number }
  /** `attempt`: how often it was due, this time included. */
  | { readonly kind: 'due'; readonly sealed: Uint8Array; readonly attempt: number }

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
  /** When the provider issued the order, by its own clock, in ms since the epoch. */
  readonly issued_at?: number | undefined
}

/**
 * A notice of another process. Listeners drop their copies, and for `ended` close the open streams.
 * For `resumed` they drop all, because notices may have been missed.
 */
export type StoreNotice =
  | { readonly kind: 'ended'; readonly keys: readonly SessionKey[] }
  | { readonly kind: 'changed'; readonly key: SessionKey }
  /** A Logout Token has ended all sessions of a `sid` or `sub`; there may be none. */
  | { readonly kind: 'logout_order'; readonly tombstone: Tombstone }
  | EndedLate
  | { readonly kind: 'resumed' }

/** An earlier order should have ended these sessions, but did not find them. */
export interface EndedLate {
  readonly kind: 'ended_late'
  /** This process is ending them. They must not be served. */
  readonly keys: readonly SessionKey[]
  /** This process has ended them, and has to record that. */
  readonly sessions: readonly EndedSession[]
}

/** The bounds of the time in the store, in ms since the epoch: one round trip apart at most. */
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

/** Sealed bytes with the number of times that they were written. */
export interface SealedDocument {
  readonly sealed: Uint8Array
  readonly version: number
}

export interface SealedSession extends SealedDocument {
  /** How long the session lives if nothing moves its expiry, in ms. */
  readonly expiresIn: number
  /** The store may have been restored from an older copy since, so the session may have ended. */
  readonly isDoubtful?: boolean
  /** See {@link NewSession}. Absent: an earlier version has stored the session. */
  readonly begun_at?: number | undefined
}

export interface EndedSession {
  readonly key: SessionKey
  readonly sealed: Uint8Array
}

/**
 * An order arrived at `at`, in the store's time. It leaves a tombstone for longer than a sign-in
 * may take.
 */
export interface LogoutOrder extends Omit<Tombstone, 'tag'> {
  /** A hash of the token's `iss` and `jti`. */
  readonly jti: string
  /** How long the `jti` is remembered, in ms; at least until the token expires. */
  readonly jti_ttl: number
  /**
   * For an order that is repeated: sessions whose sign-in began later go on, in the store's time.
   * Absent: all sessions end. Clocks may differ, so the first attempt compares no times.
   */
  readonly begun_until?: number | undefined
}

/**
 * Where a store keeps the content of requests until their person has signed in again. It sees
 * sealed bytes only. A {@link SessionStore} implements this too, and has the same errors.
 *
 *     arriving ──► kept ◄──► sending ──► sent
 *         └─────────┴──► dropped
 */
export interface KeptStore {
  /**
   * Begins a request that arrives. Without further calls it is dropped after `ttl` ms.
   * @returns `too_many` when its person has `max` kept requests already; `full` when the store has
   * no room
   */
  begin(key: KeptKey, max: number, ttl: number): Promise<'begun' | 'too_many' | 'full'>

  /**
   * Adds a part of the content, and keeps the request for `ttl` ms from now.
   * @returns `false`, and nothing is stored, when there is no room or the request is gone
   */
  append(key: KeptKey, part: Uint8Array, ttl: number): Promise<boolean>

  /**
   * The content is complete: the request is kept for `ttl` ms from now; `false` when it is gone.
   * @param head the description of the request
   */
  complete(key: KeptKey, head: Uint8Array, ttl: number): Promise<boolean>

  /** The description of a complete request, and its state. */
  read(key: KeptKey): Promise<KeptHead | undefined>

  /**
   * Takes the content in its parts, for one caller only. The request is `sending` from then on,
   * also when the reply is lost. `undefined` when it is gone, or was taken before.
   */
  take(key: KeptKey): Promise<readonly Uint8Array[] | undefined>

  /** Records that the content was not sent. It can be taken again. */
  giveBack(key: KeptKey): Promise<void>

  /** Records that the content was sent, and deletes it. The description stays until it expires. */
  finish(key: KeptKey): Promise<void>

  /** Deletes a request whose content was not taken; `false` when there was none. */
  drop(key: KeptKey): Promise<boolean>
}

/** The bounds of a store without limits of its own, in bytes. */
export const keptBounds = {
  /** The content of all kept requests. */
  maxBytes: 64 * 1024 * 1024,
  /** The content of one person's. A request of the largest `max_size` fits. */
  personBytes: 32 * 1024 * 1024,
  /** The approximate size of an entry without its content. */
  entryBytes: 1024,
} as const

export interface KeptHead {
  readonly head: Uint8Array
  readonly state: 'kept' | 'sending' | 'sent'
}

/** The person of a kept request: the first part of its key. */
export function personOf(key: KeptKey): SubTag {
  return key.slice(0, key.indexOf(':')) as SubTag
}
