import type { Clock } from '../core/clock.ts'
import { reason } from '../core/errors.ts'
import { pauses } from '../core/pauses.ts'
import { BackOff, Repeating } from '../core/repeating.ts'
import type { Audit } from '../observe/audit.ts'
import { NotRevokedError } from '../provider/provider-errors.ts'
import type { Provider } from '../provider/provider.ts'

/** How many tokens of a provider are revoked at once: sign-ins need its connections too. */
const mostAtOnce = 8
/** How often the revocation of a token is tried. */
const mostAttempts = 4
/** How many tokens of a provider wait for their revocation. */
const mostWaiting = 10_000
const longestPauseMs = 30_000

/** An access token that came from a token or a session that has ended. */
export interface EndedToken {
  readonly token: string
  /** In ms since the epoch. Absent: the provider did not say it. */
  readonly expiresAt: number | undefined
  /** The upstream that got it. */
  readonly upstream: string
  readonly person: { readonly iss: string; readonly sub: string; readonly sid?: string | undefined }
}

interface Waiting {
  readonly ended: EndedToken
  attempts: number
}

export interface RevocationsParts {
  /** Absent: no provider of the configuration has issued the tokens. */
  readonly provider: () => Pick<Provider, 'revoke'> | undefined
  readonly clock: Clock
  readonly audit: Audit
}

/**
 * Revokes access tokens at a provider (RFC 7009), a few at once. The endings do not wait for it.
 */
export class Revocations {
  readonly #parts: RevocationsParts
  readonly #waiting: Waiting[] = []
  readonly #backOff = new BackOff(pauses.retryRevocationsMs, longestPauseMs)
  readonly #sending = new Repeating('revocations', () => this.#send())
  #isFinishing = false

  constructor(parts: RevocationsParts) {
    this.#parts = parts
  }

  add(tokens: readonly EndedToken[]): void {
    for (const ended of tokens)
      if (this.#isFinishing || this.#waiting.length >= mostWaiting) this.#record(ended, 'not_asked')
      else this.#waiting.push({ ended, attempts: 0 })
    // During a pause after an error, they wait with the others.
    this.#sending.wakeIn(0)
  }

  /** Tries each waiting token once more, and takes no others. Those left at `end` are recorded. */
  async finish(end: Promise<unknown>): Promise<void> {
    this.#isFinishing = true
    this.#sending.wake()
    await Promise.race([this.#sending.stop(), end])
    for (const { ended } of this.#waiting.splice(0)) this.#record(ended, 'not_asked')
  }

  /** @returns the pause before the next attempt, in ms; `undefined`: no token waits */
  async #send(): Promise<number | undefined> {
    while (this.#waiting.length > 0) {
      const some = this.#waiting.splice(0, mostAtOnce)
      const waits = await Promise.all(some.map((each) => this.#revoke(each)))
      const failed = waits.filter((waitMs) => waitMs !== undefined)
      if (failed.length === 0) this.#backOff.reset()
      else if (!this.#isFinishing) return Math.max(this.#backOff.next(), ...failed)
    }
    return undefined
  }

  /** @returns after a failed attempt: how long the provider asks to wait, in ms */
  async #revoke(one: Waiting): Promise<number | undefined> {
    const { ended } = one
    const { provider, clock } = this.#parts
    // One that was under way when the process began to stop is tried once more, as those that wait.
    const isLast = this.#isFinishing
    if (ended.expiresAt !== undefined && clock.now() >= ended.expiresAt) return this.#record(ended, 'expired')
    try {
      return this.#record(ended, (await provider()?.revoke(ended.token, 'access_token')) ?? 'unsupported')
    } catch (error) {
      one.attempts += 1
      const { isFinal, waitMs = 0 } = error instanceof NotRevokedError ? error : { isFinal: false }
      if (isFinal) return this.#record(ended, 'refused', reason(error))
      // RFC 7009 §2.2.1: after a 503, the token still exists.
      if (one.attempts < mostAttempts && !isLast) this.#waiting.push(one)
      else this.#record(ended, 'unreachable', reason(error))
      return waitMs
    }
  }

  #record({ person, upstream }: EndedToken, outcome: string, why?: string): undefined {
    const { iss, sub, sid } = person
    const fields = { iss, sub, sid, upstream, outcome, ...(why !== undefined && { reason: why }) }
    this.#parts.audit.record('provider.revocation', fields)
  }
}
