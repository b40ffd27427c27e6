import type { SessionKey, SidTag, SubTag } from '../core/names.ts'

/**
 * Where sessions are remembered. A store knows hashes and sealed bytes, never a cookie's value, a
 * claim or a token. Every implementation passes the one contract in test/session/store-contract.ts.
 * All methods reject with a `GatewayError` `ERR_STORE_UNAVAILABLE` when the store cannot be reached
 * or does not answer in time, and never wait longer than that (the ending of hundreds of sessions:
 * than that for each couple of hundred).
 */
export interface SessionStore {
  /**
   * Stores a new session and its places in the (iss, sid) and (iss, sub) indexes. Answers `ended`
   * and stores nothing when a Logout Token for its sid or sub arrived at or after `begun_at`: the
   * sign-in it comes from began before that logout.
   */
  create(session: NewSession): Promise<'created' | 'ended'>

  read(key: SessionKey): Promise<SealedSession | undefined>

  /**
   * Replaces the sealed bytes if `version` is still the stored one; the version then goes up by
   * one. Expiry is left as it is.
   */
  replace(key: SessionKey, sealed: Uint8Array, version: number): Promise<'replaced' | 'conflict' | 'gone'>

  /**
   * Moves the idle expiry to `idle_timeout` ms from now, never past the absolute one. `false` when
   * the session is gone.
   */
  touch(key: SessionKey, idle_timeout: number): Promise<boolean>

  /** Ends one session. Answers what was ended: nothing when it was gone already. */
  endOne(key: SessionKey): Promise<readonly EndedSession[]>

  /**
   * Ends all sessions of one (iss, sid) and leaves a tombstone. The Logout Token's `jti` is taken
   * last, when all who listen have been told: a token that was taken before changes nothing and is
   * answered `replayed`, one that failed half-way may come again.
   */
  endSid(tag: SidTag, order: LogoutOrder): Promise<readonly EndedSession[] | 'replayed'>

  /** The same for all sessions of one (iss, sub). */
  endSub(tag: SubTag, order: LogoutOrder): Promise<readonly EndedSession[] | 'replayed'>

  /**
   * The sessions, some at a time, each at least once. For administration only, never on a serving
   * path: it goes through everything that the store holds. Like the two lists below it may name
   * sessions that have just expired.
   */
  list(): AsyncIterable<readonly SessionKey[]>

  /** The sessions of one (iss, sid), the latest first. */
  listSid(tag: SidTag): Promise<readonly SessionKey[]>

  /** The sessions of one (iss, sub), the latest first. */
  listSub(tag: SubTag): Promise<readonly SessionKey[]>

  /**
   * `true` for the first caller with this name within `ttl` ms, `false` for all others: makes a
   * thing happen once.
   */
  takeOnce(name: string, ttl: number): Promise<boolean>

  /**
   * Takes the refresh lease of a session for `ttl` ms; `false` when another holds it. `owner` is a
   * value nobody else uses.
   */
  acquireLease(key: SessionKey, owner: string, ttl: number): Promise<boolean>

  /** Prolongs a lease that `owner` still holds; `false` when it was lost. */
  renewLease(key: SessionKey, owner: string, ttl: number): Promise<boolean>

  /** Gives the lease back if `owner` still holds it. */
  releaseLease(key: SessionKey, owner: string): Promise<void>

  /**
   * Calls back for what other processes ended or changed (and may for what this one did), until the
   * answer is called.
   */
  onNotice(listener: (notice: StoreNotice) => void): () => void

  /**
   * Whether notices of other processes are certain to arrive: while it is `false`, nothing may be
   * served from memory. When it turns `true` again, a `resumed` notice has been given, because
   * notices may have been missed.
   */
  hearsNotices(): boolean

  /**
   * How long ago the last proof was over that notices arrive, in ms: not over yet, when it is
   * negative; `Infinity`: there was none. What is in memory, of which no notice said that it ended
   * or changed, was right that long ago.
   */
  silentFor(): number

  /**
   * The time of the store, which is the same for all processes whatever their own clocks say.
   * Endings and sign-ins are compared by it: `LogoutOrder.at` is the latest that it may be,
   * `NewSession.begun_at` the earliest.
   */
  time(): Promise<StoreTime>

  /** Resolves when the store answers. */
  ping(): Promise<void>

  close(): Promise<void>
}

/**
 * Sign-ins of a sid or sub that began at or before `at`, in the store's time, must not become
 * sessions.
 */
export interface Tombstone {
  readonly tag: SidTag | SubTag
  /** In ms since the epoch. */
  readonly at: number
  /** How long it stands, in ms. */
  readonly ttl: number
}

/**
 * Something another process did. Listeners drop their copies; for `ended` they close what is open
 * for the session too.
 */
export type StoreNotice =
  | { readonly kind: 'ended'; readonly keys: readonly SessionKey[] }
  | { readonly kind: 'changed'; readonly key: SessionKey }
  | { readonly kind: 'resumed' }

/**
 * Bounds of the time in the store, in ms since the epoch; they are apart by one way there and back.
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
   * The store may have gone back to an older copy since the session was written: it may have ended
   * in between.
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
  /** How long the `jti` is remembered, in ms: until the token has expired. */
  readonly jti_ttl: number
  /**
   * When the order arrived, in the store's time: sign-ins that began at or before it must not
   * become sessions.
   */
  readonly at: number
  /** How long the tombstone stands, in ms: longer than a sign-in may take. */
  readonly tombstone_ttl: number
}
