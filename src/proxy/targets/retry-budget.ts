/** How many retries an upstream may have at once, whatever its share is. */
const mostAtOnce = 20

/**
 * Limits retries to a share of the requests, so that they do not double the load of targets that
 * fail because they are overloaded.
 */
export class RetryBudget {
  readonly #perRequest: number
  #left: number

  /** @param percent the share of the requests that may be retried, from 0 to 100 */
  constructor(percent: number) {
    this.#perRequest = percent / 100
    this.#left = percent === 0 ? 0 : mostAtOnce
  }

  /** A request is sent. */
  note(): void {
    this.#left = Math.min(this.#left + this.#perRequest, mostAtOnce)
  }

  /** Whether one more retry is allowed. It counts as used then. */
  take(): boolean {
    if (this.#left < 1) return false
    this.#left -= 1
    return true
  }
}
