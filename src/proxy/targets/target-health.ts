import type { EjectConfig } from '../../config/model/upstream.ts'

/** The share of the requests with which a slow start begins. */
const firstShare = 0.1

/** Whether a target gets requests. */
export type TargetState = 'up' | 'starting' | 'ejected'

/** An ejection that has just begun. */
export interface Ejection {
  /** The last failure. */
  readonly reason: string
  /** How long it lasts, in ms. */
  readonly forMs: number
}

/**
 * What the requests to a target show about it. After several failures in succession the target is
 * ejected for a time. Then it gets requests again: one more failure ejects it for twice the time.
 * All times are in ms, on the clock that is given.
 */
export class TargetHealth {
  readonly #now: () => number
  #failures = 0
  /** How often it was ejected since it last worked for as long as it had been ejected. */
  #ejections = 0
  #ejectedForMs = 0
  #ejectedUntil = -Infinity
  #reason: string | undefined
  /** Since it was ejected, no request has succeeded. */
  #awaitsSuccess = false

  constructor(now: () => number) {
    this.#now = now
  }

  /** Why it failed last; `undefined` when it has not failed since its last success. */
  get reason(): string | undefined {
    return this.#reason
  }

  get isEjected(): boolean {
    return this.#now() < this.#ejectedUntil
  }

  /** @param slowStartMs how long a slow start takes. 0: there is none */
  state(slowStartMs: number): TargetState {
    if (this.isEjected) return 'ejected'
    return this.share(slowStartMs) < 1 ? 'starting' : 'up'
  }

  /** The share of its requests that it gets, from 0.1 to 1. */
  share(slowStartMs: number): number {
    const since = this.#now() - this.#ejectedUntil
    return since >= slowStartMs ? 1 : Math.max(firstShare, since / slowStartMs)
  }

  /**
   * A request has succeeded.
   * @returns whether it is the first one since the target was ejected
   */
  succeed(): boolean {
    this.#failures = 0
    this.#reason = undefined
    if (this.#ejections === 0) return false
    const now = this.#now()
    // A response to a request from before the ejection.
    if (now < this.#ejectedUntil) return false
    if (now - this.#ejectedUntil >= this.#ejectedForMs) this.#ejections = 0
    const isFirst = this.#awaitsSuccess
    this.#awaitsSuccess = false
    return isFirst
  }

  /**
   * A request has failed.
   * @param eject absent: a target is never ejected
   * @returns the ejection, if this failure begins one
   */
  fail(reason: string, eject: EjectConfig | undefined): Ejection | undefined {
    this.#reason = reason
    if (eject === undefined || this.isEjected) return undefined
    this.#failures += 1
    if (!this.#awaitsSuccess && this.#failures < eject.failures) return undefined
    const forMs = Math.min(eject.forMs * 2 ** Math.min(this.#ejections, 30), eject.atMostMs)
    this.#ejections += 1
    this.#failures = 0
    this.#ejectedForMs = forMs
    this.#ejectedUntil = this.#now() + forMs
    this.#awaitsSuccess = true
    return { reason, forMs }
  }
}
