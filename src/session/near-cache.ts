import { LRUCache } from 'lru-cache'
import { atMost } from '../core/at-most.ts'
import type { SessionKey } from '../core/names.ts'
import { unpackRecord, type UnpackedRecord } from './packed-record.ts'
import type { PackedSession, SessionOwner, StoredSession } from './record.ts'

/** The maximum size of the live sessions in a near-cache, in bytes. */
const maxBytes = 128 * 1024 * 1024
/**
 * The memory of a session besides its record, in bytes: its entry here, its key and its objects.
 */
const entryBytes = 768
/** How many ended sessions are remembered. */
const maxEnded = 100_000

/** A live session in the memory of this process. */
export interface NearSession {
  readonly stored: StoredSession
  /** When the idle timeout was last moved in the store, in ms since the epoch. */
  touchedAt: number
}

/**
 * Has either `stored` or `packed`. A session that was read from the store stays packed until it is
 * used again, because many are not.
 */
interface Entry {
  readonly key: SessionKey
  stored: StoredSession | undefined
  packed: PackedSession | undefined
  touchedAt: number
  /** The approximate size in memory, without {@link entryBytes}. */
  bytes: number
}

/** Reads of one session that run at the same time. */
export interface PendingReads {
  /** The session was changed or ended during the reads, so their results must not be kept. */
  areOvertaken: boolean
  count: number
}

/**
 * The sessions that this process has used recently. They save a query to the store for each
 * request. The size is limited in bytes. Ended sessions are remembered, because the result of a
 * read may arrive after the notice of the end. Session ids are random, so an ended session never
 * returns.
 */
export class NearCache {
  readonly #live = new LRUCache<SessionKey, Entry>({
    maxSize: maxBytes,
    sizeCalculation: ({ bytes }) => bytes + entryBytes,
  })
  // `max` would allocate the memory for all entries at the start, which takes 40 ms.
  readonly #ended = new LRUCache<SessionKey, true>(atMost(maxEnded))
  /** Reads that are not overtaken. */
  readonly #pending = new Map<SessionKey, PendingReads>()

  /** A live session, to be used: its record is unpacked, and stays so. */
  get(key: SessionKey): NearSession | undefined {
    const entry = this.#live.get(key)
    if (entry?.packed !== undefined) this.#unpack(entry, entry.packed)
    return entry as NearSession | undefined
  }

  /** Whether the session is live here. Its record stays packed. */
  has(key: SessionKey): boolean {
    return this.#live.has(key)
  }

  /** {@link NearSession.touchedAt} of a live session, which stays packed. */
  touchedAt(key: SessionKey): number | undefined {
    return this.#live.peek(key)?.touchedAt
  }

  /** The live sessions for which `matches` returns `true`. No record is unpacked for it. */
  keysOf(matches: (session: SessionOwner) => boolean): readonly SessionKey[] {
    const all = [...this.#live.values()]
    return all.flatMap((entry) => (matches(ownerOf(entry)) ? entry.key : []))
  }

  hasEnded(key: SessionKey): boolean {
    return this.#ended.has(key)
  }

  /** Keeps a session, unless it has ended or a newer version is in memory. */
  keep(session: StoredSession | PackedSession, touchedAt: number): void {
    const { key, version } = session
    if (this.#ended.has(key)) return
    const present = this.#live.peek(key)
    if (present !== undefined && versionOf(present) > version) return
    const entry =
      'packed' in session
        ? { key, stored: undefined, packed: session, touchedAt, bytes: session.packed.length }
        : { key, stored: session, packed: undefined, touchedAt, bytes: session.bytes }
    this.#live.set(key, entry)
  }

  /** Copies the live sessions of another near-cache. */
  takeOver(other: NearCache): void {
    for (const { stored, packed, touchedAt } of [...other.#live.values()].toReversed())
      this.keep(stored ?? (packed as PackedSession), touchedAt)
  }

  /** Begins a read. Call {@link settle} when it is over. */
  reading(key: SessionKey): PendingReads {
    let reads = this.#pending.get(key)
    if (reads === undefined) this.#pending.set(key, (reads = { areOvertaken: false, count: 0 }))
    reads.count += 1
    return reads
  }

  /** Ends a read. */
  settle(key: SessionKey, reads: PendingReads): void {
    reads.count -= 1
    if (reads.count === 0 && !reads.areOvertaken) this.#pending.delete(key)
  }

  /** The session was changed elsewhere, so the copy and all running reads are out of date. */
  drop(key: SessionKey): void {
    this.#live.delete(key)
    this.#overtakeReads(key)
  }

  /**
   * The session was changed through this process and has this version now. An older copy and all
   * running reads are out of date.
   */
  dropOlder({ key, version }: Pick<StoredSession, 'key' | 'version'>): void {
    const present = this.#live.peek(key)
    if (present !== undefined && versionOf(present) < version) this.#live.delete(key)
    this.#overtakeReads(key)
  }

  /** The session has ended. */
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

  #unpack(entry: Entry, packed: PackedSession): void {
    entry.stored = unpacked(packed, (bytes) => this.#resize(entry, entry.bytes + bytes))
    entry.packed = undefined
    this.#resize(entry, entry.stored.bytes)
  }

  #resize(entry: Entry, bytes: number): void {
    entry.bytes = bytes
    if (this.#live.peek(entry.key) !== entry) return
    // The cache takes the size of an entry when it is set, unless the same entry is there already.
    this.#live.delete(entry.key)
    this.#live.set(entry.key, entry)
  }
}

/** @param onGrown called with the bytes that its tokens take, when they are unpacked too */
function unpacked({ packed, sub: _, ...session }: PackedSession, onGrown?: (bytes: number) => void): StoredSession {
  const { record, unpackedBytes: bytes } = unpackRecord(packed, onGrown) as UnpackedRecord
  return { ...session, record, bytes }
}

function ownerOf({ stored, packed }: Entry): SessionOwner {
  if (stored === undefined) return packed as PackedSession
  const { key, audience, record } = stored
  return { key, audience, sub: record.sub }
}

function versionOf({ stored, packed }: Entry): number {
  return (stored ?? packed)?.version ?? 0
}
