import { BoundedMap } from '../../../core/bounded-map.ts'
import { reason } from '../../../core/errors.ts'
import type { SessionKey, SidTag, SubTag } from '../../../core/names.ts'
import { Repeating } from '../../../core/repeating.ts'
import type { Log } from '../../../observe/log.ts'
import type { Tombstone } from '../store.ts'

/** How long the ending of a session is remembered, in ms. */
const rememberedForMs = 2 * 60 * 1000
const maxRemembered = 10_000

/** The pause between two repetitions, in ms. */
const pauseMs = 1_000

/**
 * The recent endings of all processes. A primary that dies may not have sent its last writes to its
 * replica, so ended sessions may exist again. Each time that writes may be lost, every process
 * repeats the endings that it remembers.
 */
export class RecentEndings {
  readonly #keys = new BoundedMap<SessionKey, true>('recent_endings', maxRemembered, { lifetimeMs: rememberedForMs })
  /** `until` is when Redis would delete the tombstone, on the clock of `performance`. */
  readonly #tombstones = new BoundedMap<SidTag | SubTag, { readonly at: number; readonly until: number }>(
    'recent_tombstones',
    maxRemembered,
    { lifetimeMs: rememberedForMs },
  )
  readonly #end: (keys: readonly SessionKey[], tombstones: readonly Tombstone[]) => Promise<unknown>
  readonly #log: Log
  readonly #repeating = new Repeating('recent_endings', () => this.#repeat())

  constructor(end: (keys: readonly SessionKey[], tombstones: readonly Tombstone[]) => Promise<unknown>, log: Log) {
    this.#end = end
    this.#log = log
  }

  remember(keys: readonly SessionKey[]): void {
    for (const key of keys) this.#keys.set(key, true)
  }

  rememberTombstone({ tag, at, ttl }: Tombstone): void {
    const known = this.#tombstones.get(tag)
    const now = performance.now()
    const until = Math.max(now + ttl, known?.until ?? 0)
    this.#tombstones.set(tag, { at: Math.max(at, known?.at ?? 0), until }, { ttl: until - now })
  }

  /**
   * Whether a sign-in that began at this time of the store must not become a session, also when
   * Redis has lost the tombstone.
   */
  rejects(tag: SidTag | SubTag, begun_at: number): boolean {
    const tombstone = this.#tombstones.get(tag)
    return tombstone !== undefined && begun_at <= tombstone.at
  }

  /** Repeats the endings in the background until Redis has accepted them. */
  repeat(): void {
    this.#repeating.wake()
  }

  /** @returns a pause when Redis has not accepted the endings */
  async #repeat(): Promise<number | undefined> {
    const keys = [...this.#keys.keys()]
    const now = performance.now()
    const tombstones = [...this.#tombstones].map(([tag, { at, until }]) => ({ tag, at, ttl: until - now }))
    if (keys.length === 0 && tombstones.length === 0) return undefined
    try {
      await this.#end(keys, tombstones)
      return undefined
    } catch (error) {
      this.#log.debug('store.endings_not_repeated', { reason: reason(error) })
      return pauseMs
    }
  }

  clear(): void {
    this.#keys.clear()
    this.#tombstones.clear()
  }
}
