import { steadyClock, type Clock } from '../../core/clock.ts'
import type { StoreNotice, StoreTime } from './store.ts'

/** The part of a session store that no other process uses: there are no notices to wait for. */
export abstract class OneProcessStore {
  protected readonly clock: Clock
  /** Does not go back, or else an ending would seem earlier than the sessions that it ends. */
  readonly #steady: Clock
  readonly #openedAt: number

  constructor(clock: Clock) {
    this.clock = clock
    this.#steady = steadyClock(clock)
    this.#openedAt = clock.now()
  }

  onNotice(_listener: (notice: StoreNotice) => void): () => void {
    return () => {}
  }

  receivesNotices(): boolean {
    return true
  }

  staleForMs(): number {
    return -Infinity
  }

  async time(): Promise<StoreTime> {
    const now = this.#openedAt + this.#steady.now()
    return { earliest: now, latest: now }
  }
}
