import type { SessionKey } from '../../core/names.ts'
import type { SessionOwner } from '../record/record.ts'
import type { NearCache } from './near-cache.ts'

/**
 * All near-caches of this process. After a reload there are two for a while. A session that one
 * generation ends or changes must leave all of them, because the store notifies other processes
 * only.
 */
export class NearCaches {
  readonly #caches = new Set<NearCache>()

  add(cache: NearCache): void {
    this.#caches.add(cache)
  }

  delete(cache: NearCache): void {
    this.#caches.delete(cache)
  }

  /** The sessions in any of the caches for which `matches` returns `true`. */
  keysOf(matches: (session: SessionOwner) => boolean): readonly SessionKey[] {
    return [...this.#caches].flatMap((cache) => cache.keysOf(matches))
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
