import type { Log } from '../observe/log.ts'

export interface OutageGraceParts {
  /** In ms; 0: there is none. */
  readonly graceMs: number
  /** See `SessionStore.silentFor`. */
  readonly silentFor: () => number
  readonly log: Log
}

/**
 * For how long sessions in memory are served although the store does not answer: from when what
 * others end was last certain to be heard of. Told once when somebody is first served so, and once
 * when it is over.
 */
export class OutageGrace {
  readonly #parts: OutageGraceParts
  #ending: NodeJS.Timeout | undefined
  #served = 0

  constructor(parts: OutageGraceParts) {
    this.#parts = parts
  }

  /** Whether it would last, if the store did not answer. */
  get lasts(): boolean {
    const { graceMs, silentFor } = this.#parts
    return graceMs > 0 && silentFor() < graceMs
  }

  /** Somebody is served from memory; `reason` is what the store said. */
  serve(reason: string): void {
    this.#served += 1
    if (this.#ending !== undefined) return
    const { graceMs, silentFor, log } = this.#parts
    // A timer may go off a little early.
    const at_most_ms = Math.ceil(graceMs - silentFor()) + 1
    this.#ending = setTimeout(() => this.end('time_is_over'), at_most_ms).unref()
    log.warn('session.grace_began', { reason, at_most_ms })
  }

  end(why: 'store_answers' | 'time_is_over' | 'closed'): void {
    if (this.#ending === undefined) return
    clearTimeout(this.#ending)
    this.#ending = undefined
    this.#parts.log.warn('session.grace_ended', { why, served: this.#served })
    this.#served = 0
  }
}
