import type { Log } from '../../observe/log.ts'

export interface OutageGraceParts {
  /** In ms; 0: there is no grace. */
  readonly graceMs: number
  /** See `SessionStore.staleForMs`. */
  readonly staleForMs: () => number
  readonly log: Log
}

/**
 * The grace during an outage: sessions in memory are served although the store is unavailable. It
 * begins when notices may not arrive. The log has a line for the first session, and for the end.
 */
export class OutageGrace {
  readonly #parts: OutageGraceParts
  #timer: NodeJS.Timeout | undefined
  #served = 0

  constructor(parts: OutageGraceParts) {
    this.#parts = parts
  }

  /** Whether sessions may be served from memory if the store is unavailable now. */
  get lasts(): boolean {
    const { graceMs, staleForMs } = this.#parts
    return graceMs > 0 && staleForMs() < graceMs
  }

  /** A session is served from memory. `reason` is the error of the store. */
  serve(reason: string): void {
    this.#served += 1
    if (this.#timer !== undefined) return
    const { graceMs, staleForMs, log } = this.#parts
    // One more millisecond, because a timer may fire a little early.
    const at_most_ms = Math.ceil(graceMs - staleForMs()) + 1
    this.#timer = setTimeout(() => this.end('time_is_over'), at_most_ms).unref()
    log.warn('session.grace_began', { reason, at_most_ms })
  }

  end(why: 'store_responds' | 'time_is_over' | 'closed'): void {
    if (this.#timer === undefined) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#parts.log.warn('session.grace_ended', { why, served: this.#served })
    this.#served = 0
  }
}
