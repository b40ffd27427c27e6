import { LRUCache } from 'lru-cache'
import type { SessionKey } from '../core/names.ts'
import type { StoredSession } from './record.ts'

const maxBytes = 128 * 1024 * 1024
const maxEnded = 100_000

/** A live session as this process knows it. */
export interface NearSession {
  readonly stored: StoredSession
  /** When the idle timeout was last moved in the store, in ms since the epoch. */
  touchedAt: number
}

/** A read that is on its way: it must not be kept when the session changed or ended meanwhile. */
export interface PendingRead {
  overtaken: boolean
}

/**
 * The sessions that this process has seen lately, so that a request needs no round trip to the
 * store. Bounded in bytes. What has ended is remembered as such, because an answer that was on its
 * way may arrive after the notice of the end: session ids are chance, so what has ended never comes
 * back.
 */
export class NearCache {
  readonly #live = new LRUCache<SessionKey, NearSession>({
    maxSize: maxBytes,
    sizeCalculation: ({ stored }) => stored.bytes + 512,
  })
  // `max` would reserve memory for all of them at the start, which takes 40 ms.
  readonly #ended = new LRUCache<SessionKey, true>({ maxSize: maxEnded, sizeCalculation: () => 1 })
  readonly #pending = new Map<SessionKey, Set<PendingRead>>()

  get(key: SessionKey): NearSession | undefined {
    return this.#live.get(key)
  }

  /** The live sessions of which this is true. */
  keysOf(isMeant: (session: StoredSession) => boolean): readonly SessionKey[] {
    return [...this.#live.values()].flatMap(({ stored }) => (isMeant(stored) ? stored.key : []))
  }

  hasEnded(key: SessionKey): boolean {
    return this.#ended.has(key)
  }

  /** Keeps a session unless it has ended, or a newer version of it is here. */
  keep(stored: StoredSession, touchedAt: number): void {
    if (this.#ended.has(stored.key)) return
    const known = this.#live.get(stored.key)
    if (known !== undefined && known.stored.version > stored.version) return
    this.#live.set(stored.key, { stored, touchedAt })
  }

  /** Takes over what another one holds. */
  takeOver(other: NearCache): void {
    for (const { stored, touchedAt } of [...other.#live.values()].toReversed()) this.keep(stored, touchedAt)
  }

  /** Announces a read; `settle` has to be called when it is over. */
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

  /** The session changed elsewhere: what we hold, or are about to read, is old. */
  drop(key: SessionKey): void {
    this.#live.delete(key)
    for (const read of this.#pending.get(key) ?? []) read.overtaken = true
  }

  /** The session has ended, for good. */
  end(key: SessionKey): void {
    this.#ended.set(key, true)
    this.drop(key)
  }

  /** Nothing that is known can be relied on. */
  clear(): void {
    this.#live.clear()
    for (const reads of this.#pending.values()) for (const read of reads) read.overtaken = true
  }
}
