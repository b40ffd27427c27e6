import { BoundedMap } from '../../core/bounded-map.ts'
import type { SessionKey } from '../../core/names.ts'
import type { Keyring } from '../../core/seal.ts'
import type { Log } from '../../observe/log.ts'
import { type HeldRecord, RecordMemory } from '../record/record-memory.ts'
import type { SessionOwner, StoredSession, UnopenedSession } from '../record/record.ts'
import { openRecord } from '../record/sealed-record.ts'
import type { EndedSession } from '../store/store.ts'

/** The maximum size of the live sessions in a near-cache, in bytes. */
const maxBytes = 128 * 1024 * 1024
/** The memory of a session besides its record, in bytes: its entry, its key and its objects. */
const entryBytes = 768
const maxEnded = 100_000

export interface NearSession {
  readonly stored: StoredSession
  /** When the idle timeout was last moved in the store, in ms since the epoch. */
  touchedAt: number
}

/** Has `stored` or `unopened`. Many sessions are not used again, so they stay sealed at first. */
interface CachedSession {
  readonly key: SessionKey
  stored: StoredSession | undefined
  unopened: HeldSession | undefined
  touchedAt: number
  /** The approximate size in memory, without {@link entryBytes}. */
  bytes: number
}

interface HeldSession extends SessionOwner {
  readonly version: number
  readonly isDoubtful: boolean
  readonly record: HeldRecord
}

export interface NearCacheParts {
  /** Opens the records that are kept. */
  readonly keyring: Keyring
  readonly log: Log
}

/** Reads of one session that run at the same time. */
export interface PendingReads {
  /** The session was changed or ended during the reads, so their results must not be kept. */
  areOvertaken: boolean
  count: number
}

/**
 * The sessions that this process has used recently, limited in bytes, to save queries to the store.
 * Ended ones are remembered, because the result of a read may arrive after the notice of the
 * ending. Ids are random, so an ended session never returns.
 */
export class NearCache {
  readonly #live = new BoundedMap<SessionKey, CachedSession>('sessions', maxBytes, {
    sizeOf: ({ bytes }) => bytes + entryBytes,
    dispose: ({ unopened }) => unopened?.record.release(),
  })
  #memory = new RecordMemory()
  readonly #parts: NearCacheParts
  readonly #ended = new BoundedMap<SessionKey, true>('ended_sessions', maxEnded)
  /** Reads that are not overtaken. */
  readonly #pending = new Map<SessionKey, PendingReads>()
  readonly #self = new WeakRef(this)

  constructor(parts: NearCacheParts) {
    this.#parts = parts
  }

  /** A live session, to be used: its record is opened, and stays so. */
  get(key: SessionKey): NearSession | undefined {
    const entry = this.#live.get(key)
    if (entry?.unopened !== undefined) this.#openRecord(entry, entry.unopened)
    return entry?.stored === undefined ? undefined : (entry as NearSession)
  }

  /** Whether the session is live here. Its record stays sealed. */
  has(key: SessionKey): boolean {
    return this.#live.has(key)
  }

  /** {@link NearSession.touchedAt} of a live session, which stays sealed. */
  touchedAt(key: SessionKey): number | undefined {
    return this.#live.peek(key)?.touchedAt
  }

  /** The live sessions for which `matches` returns `true`. No record is opened for it. */
  keysOf(matches: (session: SessionOwner) => boolean): readonly SessionKey[] {
    const all = [...this.#live.values()]
    return all.flatMap((entry) => (matches(ownerOf(entry)) ? entry.key : []))
  }

  hasEnded(key: SessionKey): boolean {
    return this.#ended.has(key)
  }

  /** Keeps a session, unless it has ended or a newer version is in memory. */
  keep(session: StoredSession | UnopenedSession, touchedAt: number): void {
    if (!this.#mayKeep(session)) return
    if ('sealed' in session) {
      const { key, audience, sub, version, isDoubtful = false } = session
      this.#keepUnopened(
        { key, audience, sub, version, isDoubtful, record: this.#memory.put(session.sealed) },
        touchedAt,
      )
    } else {
      const { key, bytes } = session
      this.#live.set(key, { key, stored: session, unopened: undefined, touchedAt, bytes })
    }
  }

  #mayKeep({ key, version }: Pick<StoredSession, 'key' | 'version'>): boolean {
    const present = this.#live.peek(key)
    return !this.#ended.has(key) && (present === undefined || versionOf(present) <= version)
  }

  #keepUnopened(unopened: HeldSession, touchedAt: number): void {
    const { key, record } = unopened
    this.#live.set(key, { key, stored: undefined, unopened, touchedAt, bytes: record.length })
  }

  /** Adds the live sessions of another near-cache. The keys of this one must open their records. */
  takeOver(other: NearCache): void {
    // If each had memory of its own, each reload could leave some MiB that hold few records.
    this.#memory = other.#memory
    for (const { stored, unopened, touchedAt } of [...other.#live.values()].toReversed()) {
      if (stored !== undefined) this.keep(stored, touchedAt)
      else if (unopened !== undefined && this.#mayKeep(unopened)) {
        unopened.record.hold()
        this.#keepUnopened(unopened, touchedAt)
      }
    }
  }

  /** Begins a read. Call {@link settle} when it is over. */
  reading(key: SessionKey): PendingReads {
    let reads = this.#pending.get(key)
    if (reads === undefined) this.#pending.set(key, (reads = { areOvertaken: false, count: 0 }))
    reads.count += 1
    return reads
  }

  settle(key: SessionKey, reads: PendingReads): void {
    reads.count -= 1
    if (reads.count === 0 && !reads.areOvertaken) this.#pending.delete(key)
  }

  /** The session was changed elsewhere, so the copy and all running reads are out of date. */
  drop(key: SessionKey): void {
    this.#live.delete(key)
    this.#overtakeReads(key)
  }

  /** The session was changed here and has this version: older copies and reads are out of date. */
  dropOlder({ key, version }: Pick<StoredSession, 'key' | 'version'>): void {
    const present = this.#live.peek(key)
    if (present !== undefined && versionOf(present) < version) this.#live.delete(key)
    this.#overtakeReads(key)
  }

  end(key: SessionKey): void {
    this.#ended.set(key, true)
    this.drop(key)
  }

  /** Notices may have been missed, so all copies and running reads may be out of date. */
  clear(): void {
    this.#live.clear()
    for (const key of this.#pending.keys()) this.#overtakeReads(key)
  }

  #overtakeReads(key: SessionKey): void {
    const reads = this.#pending.get(key)
    if (reads === undefined) return
    reads.areOvertaken = true
    // A read that begins later gets the new state.
    this.#pending.delete(key)
  }

  #openRecord(entry: CachedSession, { key, audience, version, isDoubtful, record: held }: HeldSession): void {
    const { keyring, log } = this.#parts
    const onTokens = growing(entry, this.#self)
    const opened = openRecord(keyring, { key, audiences: [audience] }, held.bytes, onTokens)
    if (opened === undefined || opened === 'newer') {
      const hint =
        'The record of a session has changed in memory. The session is read from the store again. Report this error.'
      log.error('session.memory_unreadable', { session: key, hint })
      this.#live.delete(key)
      return
    }
    const { record, unpackedBytes: bytes } = opened
    entry.unopened = undefined
    held.release()
    entry.stored = { key, audience, version, record, bytes, ...(isDoubtful && { isDoubtful }) }
    this.resize(entry, bytes)
  }

  /** @internal */
  resize(entry: CachedSession, bytes: number): void {
    entry.bytes = bytes
    if (this.#live.peek(entry.key) !== entry) return
    // The cache takes the size of an entry when it is set, unless the same entry is there already.
    this.#live.delete(entry.key)
    this.#live.set(entry.key, entry)
  }
}

/**
 * Counts what an entry takes in addition. Its record may outlive this near-cache, which it must not
 * keep in memory.
 */
function growing(entry: CachedSession, near: WeakRef<NearCache>): (bytes: number) => void {
  return (bytes) => near.deref()?.resize(entry, entry.bytes + bytes)
}

function ownerOf({ stored, unopened }: CachedSession): SessionOwner {
  if (stored === undefined) return unopened as HeldSession
  const { key, audience, record } = stored
  return { key, audience, sub: record.sub }
}

function versionOf({ stored, unopened }: CachedSession): number {
  return (stored ?? unopened)?.version ?? 0
}

/**
 * All near-caches of this process, two for a while after a reload. An ending or a change in one
 * generation concerns all of them, because the store notifies other processes only.
 */
export class NearCaches {
  readonly #caches = new Set<NearCache>()
  /** What one of the generations has recorded. */
  readonly #recorded = new WeakSet<EndedSession>()

  add(cache: NearCache): void {
    this.#caches.add(cache)
  }

  delete(cache: NearCache): void {
    this.#caches.delete(cache)
  }

  keysOf(matches: (session: SessionOwner) => boolean): readonly SessionKey[] {
    return [...this.#caches].flatMap((cache) => cache.keysOf(matches))
  }

  /** Whether the caller has to record this ending: no generation has taken that over. */
  takeRecording(session: EndedSession): boolean {
    if (this.#recorded.has(session)) return false
    this.#recorded.add(session)
    return true
  }

  /** Sessions have ended: no cache may serve them again. */
  end(keys: readonly SessionKey[]): void {
    for (const cache of this.#caches) for (const key of keys) cache.end(key)
  }

  /** A session was changed through `origin`: the copies of all other caches are out of date. */
  dropElsewhere(key: SessionKey, origin: NearCache): void {
    for (const cache of this.#caches) if (cache !== origin) cache.drop(key)
  }
}
