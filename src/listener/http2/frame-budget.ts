/** How many bytes beside requests a client may send at once, and then in each second. */
const burstBytes = 64 * 1024
const rateBytes = 16 * 1024
/** The share of the bytes of requests and responses that a client may send in other frames. */
const shareOfCarried = 1 / 8

/** The bytes of a connection since it was opened. */
export interface Carried {
  readonly bytesRead: number
  readonly bytesWritten: number
  /** The heads and the content of requests. */
  readonly useful: number
}

/**
 * Limits what a client sends that is no request and no content of one: SETTINGS, PING, PRIORITY,
 * WINDOW_UPDATE, RST_STREAM, frames without content, padding, fields that are dropped, and frames
 * of unknown types. Each kind has been a flood (CVE-2019-9511 to CVE-2019-9518), and nghttp2 bounds
 * some of them only.
 */
export class FrameBudget {
  #left = burstBytes
  #before: Carried = { bytesRead: 0, bytesWritten: 0, useful: 0 }
  #at: number

  /** @param now in ms, monotonic */
  constructor(now: number) {
    this.#at = now
  }

  /** Whether the connection may stay open. */
  allows(carried: Carried, now: number): boolean {
    const read = carried.bytesRead - this.#before.bytesRead
    const written = carried.bytesWritten - this.#before.bytesWritten
    const useful = carried.useful - this.#before.useful
    const earned = ((now - this.#at) / 1000) * rateBytes + (useful + written) * shareOfCarried
    // HPACK makes a head shorter on the connection than `useful` counts.
    const spent = Math.max(0, read - useful)
    this.#left = Math.min(burstBytes, this.#left + earned) - spent
    this.#before = carried
    this.#at = now
    return this.#left >= 0
  }
}
