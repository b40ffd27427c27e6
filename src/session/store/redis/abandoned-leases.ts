import { pauses } from '../../../core/pauses.ts'
import { Repeating } from '../../../core/repeating.ts'

/** More are left until they expire. */
const maxAbandoned = 1_000

/**
 * Leases that this process may hold without knowing it. A server that hung carries out the commands
 * that it received, even if nobody waits for the reply. No process can do the work until the lease
 * expires. So this process releases the lease as soon as the server responds.
 */
export class AbandonedLeases {
  /** By place. The server gives the lease to the first owner. */
  readonly #owners = new Map<string, string>()
  readonly #release: (place: string, owner: string) => Promise<unknown>
  readonly #releasing = new Repeating('abandoned_leases', () => this.#releaseAll())

  /** @param release rejects while the server does not respond */
  constructor(release: (place: string, owner: string) => Promise<unknown>) {
    this.#release = release
  }

  add(place: string, owner: string): void {
    if (this.#owners.size < maxAbandoned && !this.#owners.has(place)) this.#owners.set(place, owner)
    this.#releasing.wakeIn(pauses.releaseLeasesMs)
  }

  stop(): Promise<void> {
    return this.#releasing.stop()
  }

  /** Tries one until the server responds, the next time another: other servers may respond. */
  async #releaseAll(): Promise<number | undefined> {
    for (const [place, owner] of [...this.#owners]) {
      this.#owners.delete(place)
      try {
        await this.#release(place, owner)
      } catch {
        this.#owners.set(place, owner)
        break
      }
    }
    return this.#owners.size > 0 ? pauses.releaseLeasesMs : undefined
  }
}
