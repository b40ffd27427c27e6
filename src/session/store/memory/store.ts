import { steadyClock, type Clock } from '../../../core/clock.ts'
import type { SessionKey, SidTag, SubTag } from '../../../core/names.ts'
import { tagOf } from '../../record/record.ts'
import { OneProcessStore } from '../one-process-store.ts'
import {
  type EndedSession,
  jobOutlivesSessionMs,
  type LogoutOrder,
  type NewSession,
  type SealedDocument,
  type SealedSession,
  type SessionStore,
} from '../store.ts'
import { MemoryKeptStore } from './kept-store.ts'
import { MemoryLogoutJobs } from './logout-jobs.ts'

/** How often expired entries are removed from memory, in ms. Until then, reads ignore them. */
const sweepIntervalMs = 1_000

interface StoredEntry {
  readonly sealed: Uint8Array
  readonly version: number
  readonly subTag: SubTag
  /** On the steady clock. */
  readonly absolute_expires_at: number
}

/**
 * A session store in the memory of this process, for trials, and for a sidecar whose sessions may
 * be lost. When it is full, it drops the least recently used session.
 */
export class MemoryStore extends OneProcessStore implements SessionStore {
  readonly jobs: MemoryLogoutJobs
  readonly kept: MemoryKeptStore
  /** Decides what has expired. */
  readonly #steady: Clock
  readonly #sessions: ExpiringMap<SessionKey, StoredEntry>
  readonly #bySid = new Index<SidTag>()
  readonly #bySub = new Index<SubTag>()
  readonly #tombstones: ExpiringMap<SidTag | SubTag, number>
  readonly #jtis: ExpiringMap<string, true>
  readonly #once: ExpiringMap<string, true>
  readonly #leases: ExpiringMap<SessionKey, string>
  readonly #documents: ExpiringMap<string, SealedDocument>
  readonly #sweeping: NodeJS.Timeout
  #sweptAt: number

  constructor({ maxSessions: max, clock }: { readonly maxSessions: number; readonly clock: Clock }) {
    super(clock)
    this.#steady = steadyClock(clock)
    this.kept = new MemoryKeptStore(() => this.#steady.now())
    this.#sessions = new ExpiringMap(max, (key, session) => {
      this.#bySid.remove(tagOf(key), key)
      this.#bySub.remove(session.subTag, key)
      this.#leases.delete(key)
    })
    this.#tombstones = new ExpiringMap(max)
    this.#jtis = new ExpiringMap(max)
    this.#once = new ExpiringMap(max)
    this.#leases = new ExpiringMap(max)
    this.#documents = new ExpiringMap(max)
    this.jobs = new MemoryLogoutJobs(max, this.#steady, (key) => {
      const now = this.#now()
      return Math.max(0, this.#sessions.expiresAt(key) - now)
    })
    this.#sweptAt = this.#steady.now()
    this.#sweeping = setInterval(() => this.#now(), sweepIntervalMs).unref()
  }

  async create(session: NewSession): Promise<'created' | 'ended'> {
    const now = this.#now()
    const tag = tagOf(session.key)
    if (this.#endedSince(tag, session.begun_at, now) || this.#endedSince(session.subTag, session.begun_at, now))
      return 'ended'
    const { sealed, subTag } = session
    const absolute_expires_at = now + session.absolute_expires_at - this.clock.now()
    const entry = { sealed, subTag, absolute_expires_at, version: 1 }
    this.#sessions.set(session.key, entry, Math.min(now + session.idle_timeout, absolute_expires_at))
    this.#bySid.add(tag, session.key)
    this.#bySub.add(subTag, session.key)
    return 'created'
  }

  async read(key: SessionKey): Promise<SealedSession | undefined> {
    const now = this.#now()
    const session = this.#sessions.use(key, now)
    if (session === undefined) return undefined
    const { sealed, version } = session
    return { sealed, version, expiresIn: this.#sessions.expiresAt(key) - now }
  }

  async replace(
    key: SessionKey,
    sealed: Uint8Array,
    version: number,
    job?: Uint8Array | 'none',
  ): Promise<'replaced' | 'conflict' | 'gone'> {
    const session = this.#sessions.use(key, this.#now())
    if (session === undefined) return 'gone'
    if (session.version !== version) return 'conflict'
    this.#sessions.replace(key, { ...session, sealed, version: version + 1 })
    if (job !== undefined) this.jobs.set(key, job, session.absolute_expires_at + jobOutlivesSessionMs)
    return 'replaced'
  }

  async touch(key: SessionKey, idle_timeout: number): Promise<boolean> {
    const now = this.#now()
    const session = this.#sessions.use(key, now)
    if (session === undefined) return false
    this.#sessions.set(key, session, Math.min(now + idle_timeout, session.absolute_expires_at))
    return true
  }

  async expiresIn(key: SessionKey): Promise<number | undefined> {
    const now = this.#now()
    const expiresAt = this.#sessions.expiresAt(key)
    return expiresAt <= now ? undefined : expiresAt - now
  }

  async endOne(key: SessionKey): Promise<readonly EndedSession[]> {
    return this.#end([key], this.#now())
  }

  async endSid(tag: SidTag, order: LogoutOrder): Promise<readonly EndedSession[] | 'replayed'> {
    return this.#endTagged(tag, order, () => this.#bySid.members(tag))
  }

  async endSub(tag: SubTag, order: LogoutOrder): Promise<readonly EndedSession[] | 'replayed'> {
    return this.#endTagged(tag, order, () => this.#bySub.members(tag))
  }

  async *list(): AsyncIterable<readonly SessionKey[]> {
    yield [...this.#sessions.keys()].toReversed()
  }

  async listSid(tag: SidTag): Promise<readonly SessionKey[]> {
    return this.#bySid.members(tag).toReversed()
  }

  async listSub(tag: SubTag): Promise<readonly SessionKey[]> {
    return this.#bySub.members(tag).toReversed()
  }

  async takeOnce(name: string, ttl: number): Promise<boolean> {
    return this.#once.setNew(name, true, ttl, this.#now())
  }

  async mark(name: string, ttl: number): Promise<void> {
    await this.takeOnce(name, ttl)
  }

  async isMarked(name: string): Promise<boolean> {
    return this.#once.use(name, this.#now()) !== undefined
  }

  async acquireLease(key: SessionKey, owner: string, ttl: number): Promise<boolean> {
    return this.#leases.setNew(key, owner, ttl, this.#now())
  }

  async renewLease(key: SessionKey, owner: string, ttl: number): Promise<boolean> {
    const now = this.#now()
    if (this.#leases.use(key, now) !== owner) return false
    this.#leases.set(key, owner, now + ttl)
    return true
  }

  async releaseLease(key: SessionKey, owner: string): Promise<void> {
    if (this.#leases.use(key, this.#now()) === owner) this.#leases.delete(key)
  }

  async readDocument(name: string): Promise<SealedDocument | undefined> {
    return this.#documents.use(name, this.#now())
  }

  async writeDocument(name: string, { sealed, version }: SealedDocument, ttl: number): Promise<boolean> {
    const now = this.#now()
    if ((this.#documents.use(name, now)?.version ?? 0) !== version) return false
    this.#documents.set(name, { sealed, version: version + 1 }, now + ttl)
    return true
  }

  async ping(): Promise<void> {}

  async close(): Promise<void> {
    clearInterval(this.#sweeping)
  }

  /** The number of entries of all kinds, for tests of the limit. */
  size(): number {
    return [...this.#expiring, this.#bySid, this.#bySub].reduce((sum, map) => sum + map.size, 0)
  }

  /** Everything whose entries expire. */
  get #expiring() {
    const tombstones = [this.#tombstones, this.#jtis] as const
    return [this.#sessions, ...tombstones, this.#once, this.#leases, this.#documents, this.jobs, this.kept] as const
  }

  #endedSince(tag: SidTag | SubTag, begun_at: number, now: number): boolean {
    const ended_at = this.#tombstones.use(tag, now)
    return ended_at !== undefined && begun_at <= ended_at
  }

  #endTagged(tag: SidTag | SubTag, order: LogoutOrder, members: () => SessionKey[]): EndedSession[] | 'replayed' {
    const now = this.#now()
    // The `jti` is stored for each tag, as in Redis, where it lies in the slot of the tag.
    if (!this.#jtis.setNew(`${tag}:${order.jti}`, true, order.jti_ttl, now)) return 'replayed'
    const at = Math.max(order.at, this.#tombstones.use(tag, now) ?? 0)
    this.#tombstones.set(tag, at, Math.max(now + order.ttl, this.#tombstones.expiresAt(tag)))
    return this.#end(members(), now)
  }

  #end(keys: readonly SessionKey[], now: number): EndedSession[] {
    const ended: EndedSession[] = []
    for (const key of keys) {
      const session = this.#sessions.use(key, now)
      if (session) ended.push({ key, sealed: session.sealed })
      this.#sessions.delete(key)
    }
    return ended
  }

  #now(): number {
    const now = this.#steady.now()
    if (now - this.#sweptAt < sweepIntervalMs) return now
    this.#sweptAt = now
    for (const map of this.#expiring) map.sweep(now)
    return now
  }
}

/** A bounded map whose entries expire. When it is full, it drops the least recently used entry. */
class ExpiringMap<K, V> {
  readonly #entries = new Map<K, { readonly value: V; readonly expires_at: number }>()
  readonly #max: number
  readonly #onRemoved: (key: K, value: V) => void

  constructor(max: number, onRemoved: (key: K, value: V) => void = () => {}) {
    this.#max = max
    this.#onRemoved = onRemoved
  }

  get size(): number {
    return this.#entries.size
  }

  expiresAt(key: K): number {
    return this.#entries.get(key)?.expires_at ?? 0
  }

  /** Returns the value and makes it the most recently used one. */
  use(key: K, now: number): V | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    if (entry.expires_at <= now) {
      this.delete(key)
      return undefined
    }
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    return entry.value
  }

  set(key: K, value: V, expires_at: number): void {
    this.#entries.delete(key)
    this.#entries.set(key, { value, expires_at })
    if (this.#entries.size <= this.#max) return
    for (const oldest of this.#entries.keys()) return this.delete(oldest)
  }

  setNew(key: K, value: V, ttl: number, now: number): boolean {
    if (this.use(key, now) !== undefined) return false
    this.set(key, value, now + ttl)
    return true
  }

  /** Replaces the value of a key. The expiry stays as it is. */
  replace(key: K, value: V): void {
    this.set(key, value, this.expiresAt(key))
  }

  delete(key: K): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#entries.delete(key)
    this.#onRemoved(key, entry.value)
  }

  keys(): Iterable<K> {
    return this.#entries.keys()
  }

  sweep(now: number): void {
    for (const [key, { expires_at }] of this.#entries) if (expires_at <= now) this.delete(key)
  }
}

class Index<T> {
  readonly #keys = new Map<T, Set<SessionKey>>()

  get size(): number {
    return this.#keys.size
  }

  members(tag: T): SessionKey[] {
    return [...(this.#keys.get(tag) ?? [])]
  }

  add(tag: T, key: SessionKey): void {
    const keys = this.#keys.get(tag)
    if (keys) keys.add(key)
    else this.#keys.set(tag, new Set([key]))
  }

  remove(tag: T, key: SessionKey): void {
    const keys = this.#keys.get(tag)
    if (keys?.delete(key) && keys.size === 0) this.#keys.delete(tag)
  }
}
