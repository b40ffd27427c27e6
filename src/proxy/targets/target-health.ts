import type { EjectConfig, HealthCheckConfig } from '../../config/model/upstream.ts'

/** The share of the requests with which a slow start begins. */
const firstShare = 0.1

/** Whether a target gets requests. */
export type TargetState = 'up' | 'starting' | 'ejected' | 'unhealthy'

type CheckLimits = Pick<HealthCheckConfig, 'healthyAfter' | 'unhealthyAfter'>

/** An ejection that has just begun. */
export interface Ejection {
  /** The last failure. */
  readonly reason: string
  /** How long it lasts, in ms. */
  readonly forMs: number
}

/**
 * What is known about a target, from requests and from health checks. After several failures in
 * succession the target is ejected for a time. Then it gets requests again: one more failure ejects
 * it for twice the time. A target that health checks find unhealthy gets no requests until they
 * find it healthy. All times are in ms, on the clock that is given.
 */
export class TargetHealth {
  readonly #now: () => number
  #failures = 0
  /** How often it was ejected since it last worked for as long as it had been ejected. */
  #ejections = 0
  #ejectedForMs = 0
  #ejectedUntil = -Infinity
  #reason: string | undefined
  /** No request has succeeded since the target was ejected. */
  #awaitsSuccess = false
  /** Why the last health check failed. */
  #fault: string | undefined
  #isUnhealthy = false
  /** A health check has succeeded at least once. */
  #hasPassed = false
  /** How many health checks in succession have had a result that contradicts the state. */
  #contrary = 0
  /** When it was added, or found healthy again. A slow start begins then. */
  #upSince = -Infinity

  constructor(now: () => number) {
    this.#now = now
  }

  /** Why it failed last; `undefined` when it has not failed since its last success. */
  get reason(): string | undefined {
    return this.#isUnhealthy ? this.#fault : (this.#reason ?? this.#fault)
  }

  /** Whether it should get requests. */
  get isAvailable(): boolean {
    return !this.#isUnhealthy && !this.isEjected
  }

  get isEjected(): boolean {
    return this.#now() < this.#ejectedUntil
  }

  /** @param slowStartMs how long a slow start takes. 0: there is none */
  state(slowStartMs: number): TargetState {
    if (this.#isUnhealthy) return 'unhealthy'
    if (this.isEjected) return 'ejected'
    return this.share(slowStartMs) < 1 ? 'starting' : 'up'
  }

  /** The share of its requests that it gets, from 0.1 to 1. */
  share(slowStartMs: number): number {
    const since = this.#now() - Math.max(this.#ejectedUntil, this.#upSince)
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

  /** The target was added beside others. */
  beginSlowStart(): void {
    this.#upSince = this.#now()
  }

  /**
   * A health check has ended.
   * @param fault absent: the response was good
   * @returns whether the target has become healthy or unhealthy by it
   */
  check(fault: string | undefined, { healthyAfter, unhealthyAfter }: CheckLimits): 'healthy' | 'unhealthy' | undefined {
    this.#fault = fault
    if (fault === undefined) this.#hasPassed = true
    if ((fault === undefined) !== this.#isUnhealthy) {
      this.#contrary = 0
      return undefined
    }
    this.#contrary += 1
    if (this.#contrary < (this.#isUnhealthy ? healthyAfter : this.#hasPassed ? unhealthyAfter : 1)) return undefined
    this.#contrary = 0
    this.#isUnhealthy = !this.#isUnhealthy
    if (!this.#isUnhealthy) this.#upSince = this.#now()
    return this.#isUnhealthy ? 'unhealthy' : 'healthy'
  }

  /** The configuration has no health checks any more. */
  forgetChecks(): void {
    this.#isUnhealthy = false
    this.#fault = undefined
  }
}
