import { LRUCache } from 'lru-cache'
import { atMost } from '../core/at-most.ts'
import type { SessionKey } from '../core/names.ts'
import type { StoredSession } from './record.ts'

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

export interface PendingRead {
  /** The session was changed or ended during the read, so the result must not be kept. */
  overtaken: boolean
}

/**
 * The sessions that this process has used recently. They save a query to the store for each
 * request. The size is limited in bytes. Ended sessions are remembered, because the result of a
 * read may arrive after the notice of the end. Session ids are random, so an ended session never
 * returns.
 */
export class NearCache {
  readonly #live = new LRUCache<SessionKey, NearSession>({
    maxSize: maxBytes,
    sizeCalculation: ({ stored }) => stored.bytes + entryBytes,
  })
  // `max` would allocate the memory for all entries at the start, which takes 40 ms.
  readonly #ended = new LRUCache<SessionKey, true>(atMost(maxEnded))
  readonly #pending = new Map<SessionKey, Set<PendingRead>>()

  get(key: SessionKey): NearSession | undefined {
    return this.#live.get(key)
  }

  /** The live sessions for which `matches` returns `true`. */
  keysOf(matches: (session: StoredSession) => boolean): readonly SessionKey[] {
    return [...this.#live.values()].flatMap(({ stored }) => (matches(stored) ? stored.key : []))
  }

  hasEnded(key: SessionKey): boolean {
    return this.#ended.has(key)
  }

  /** Keeps a session, unless it has ended or a newer version is in memory. */
  keep(stored: StoredSession, touchedAt: number): void {
    if (this.#ended.has(stored.key)) return
    const present = this.#live.get(stored.key)
    if (present !== undefined && present.stored.version > stored.version) return
    this.#live.set(stored.key, { stored, touchedAt })
  }

  /** Copies the live sessions of another near-cache. */
  takeOver(other: NearCache): void {
    for (const { stored, touchedAt } of [...other.#live.values()].toReversed()) this.keep(stored, touchedAt)
  }

  /** Begins a read. Call `settle` when it is over. */
  reading(key: SessionKey): { readonly read: PendingRead; settle(): void } {
    const read: PendingRead = { overtaken: false }
    const reads = this.#pending.get(key) ?? new Set()
    this.#pending.set(key, reads.add(read))
    return {
      read,
      settle: () => {
        reads.delete(read)
        if (reads.size === 0 && this.#pending.get(key) === reads) this.#pending.delete(key)
      },
    }
  }

  /** The session was changed elsewhere, so the copy and all running reads are out of date. */
  drop(key: SessionKey): void {
    this.#live.delete(key)
    for (const read of this.#pending.get(key) ?? []) read.overtaken = true
  }

  /** The session has ended. */
  end(key: SessionKey): void {
    this.#ended.set(key, true)
    this.drop(key)
  }

  /** Notices may have been missed, so all copies and running reads may be out of date. */
  clear(): void {
    this.#live.clear()
    for (const reads of this.#pending.values()) for (const read of reads) read.overtaken = true
  }
}
