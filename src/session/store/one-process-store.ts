import type { Clock } from '../../core/clock.ts'
import type { StoreNotice, StoreTime } from './store.ts'

/** The part of a session store that no other process uses: there are no notices to wait for. */
export abstract class OneProcessStore {
  protected readonly clock: Clock

  constructor(clock: Clock) {
    this.clock = clock
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
    const now = this.clock.now()
    return { earliest: now, latest: now }
  }
}
