import { createHistogram } from 'node:perf_hooks'

/** How often the delay is measured, in ms. */
const [busyMs, idleMs] = [10, 10_000]
/** An event loop that works for a smaller share of this time, in ms, is idle. */
const [busyShare, windowMs] = [0.02, 1_000]

/**
 * Measures how late timers fire. An idle process measures every ten seconds, because each
 * measurement wakes it up, and a busy one a hundred times a second.
 */
export class EventLoopDelay {
  #delays = createHistogram()
  /** Up to when the work of the event loop was measured, and how often its delay is since then. */
  #measured = performance.eventLoopUtilization()
  #everyMs: number = busyMs
  #timer: NodeJS.Timeout

  constructor() {
    this.#timer = this.#start()
  }

  #start(): NodeJS.Timeout {
    const dueAt = performance.now() + this.#everyMs
    return setTimeout(() => {
      // A histogram takes whole numbers from 1.
      this.#delays.record(Math.max(1, Math.round((performance.now() - dueAt) * 1e6)))
      this.#everyMs = this.#isBusy() ? busyMs : idleMs
      this.#timer = this.#start()
    }, this.#everyMs).unref()
  }

  /** Whether the event loop worked since the last measurement. */
  #isBusy(): boolean {
    const { active, idle, utilization } = performance.eventLoopUtilization(this.#measured)
    if (active + idle < windowMs) return this.#everyMs === busyMs
    this.#measured = performance.eventLoopUtilization()
    return utilization > busyShare
  }

  /** The delays since the last call by quantile, in seconds. */
  take(): readonly (readonly [quantile: string, seconds: number])[] {
    const delays = this.#delays
    this.#delays = createHistogram()
    return [
      ['0.5', delays.percentile(50) / 1e9],
      ['0.99', delays.percentile(99) / 1e9],
      ['1', delays.max / 1e9],
    ]
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
