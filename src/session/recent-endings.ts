import { LRUCache } from 'lru-cache'
import type { SessionKey } from '../core/names.ts'
import { reason } from '../core/errors.ts'
import type { Log } from '../observe/log.ts'

const rememberedFor = 2 * 60 * 1000
const maxRemembered = 10_000

/** How long to wait before endings are repeated once more, in ms. */
const pause = 1_000

/**
 * What was ended lately, by whichever process. A primary that dies may not have sent its last writes on, and what was ended
 * would be there again: so it is ended again, by every process that knows of it, each time that something may have been lost.
 */
export class RecentEndings {
  readonly #keys = new LRUCache<SessionKey, true>({ max: maxRemembered, ttl: rememberedFor })
  readonly #end: (keys: readonly SessionKey[]) => Promise<unknown>
  readonly #log: Log
  #isDue = false
  #isRepeating = false

  constructor(end: (keys: readonly SessionKey[]) => Promise<unknown>, log: Log) {
    this.#end = end
    this.#log = log
  }

  remember(keys: readonly SessionKey[]): void {
    for (const key of keys) this.#keys.set(key, true)
  }

  /** In the background, until it has succeeded. */
  repeat(): void {
    this.#isDue = true
    if (!this.#isRepeating) void this.#repeat()
  }

  async #repeat(): Promise<void> {
    this.#isRepeating = true
    while (this.#isDue) {
      this.#isDue = false
      const keys = [...this.#keys.keys()]
      if (keys.length === 0) break
      try {
        await this.#end(keys)
      } catch (error) {
        this.#isDue = true
        this.#log.debug('store.endings_not_repeated', { reason: reason(error) })
      }
      await new Promise<void>((resolve) => void setTimeout(resolve, pause).unref())
    }
    this.#isRepeating = false
  }

  forget(): void {
    this.#keys.clear()
  }
}
