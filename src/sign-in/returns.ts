import type { Clock } from '../core/clock.ts'
import type { Log } from '../observe/log.ts'

/** Earlier sign-ins may still be under way, in ms. */
const patienceMs = 5_000

/**
 * Whether browsers come back from the provider. If it rejects the redirect URI, its page says so
 * and the browser stays there (RFC 6749 §4.1.2.1), so the gateway learns nothing. The log then has
 * one line, at the second sign-in.
 */
export class Returns {
  readonly #clock: Clock
  readonly #log: Log
  /** When the first sign-in began, in ms since the epoch. */
  #firstAt: number | undefined
  #isDecided = false

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#clock = clock
    this.#log = log
  }

  /** A browser is redirected to the provider. */
  noteBegun(redirect_uri: string): void {
    const now = this.#clock.now()
    this.#firstAt ??= now
    if (this.#isDecided || now - this.#firstAt < patienceMs) return
    this.#isDecided = true
    this.#log.info('sign_in.none_returned', {
      reason: 'no browser has come back from the provider since the start',
      hint: `If its page shows an error, register ${redirect_uri} as a redirect URI of this client at the provider.`,
    })
  }

  /** A browser has come back. */
  noteReturned(): void {
    this.#isDecided = true
  }
}
