/** Gets told when its time is over. */
export interface Waiter {
  onTimeout(): void
}

/** How many timers of each length wait to be used again. */
const maxFree = 256
const free = new Map<number, ReusedTimer[]>()

/**
 * The time limit of one wait. Most requests end long before their limit. So their timers are kept
 * running and used again, which costs a quarter of `setTimeout` and `clearTimeout`. They do not
 * keep the process running.
 */
export class ReusedTimer {
  readonly #ms: number
  readonly #timeout: NodeJS.Timeout
  #waiter: Waiter | undefined

  /** @param ms more than 0 */
  static start(ms: number, waiter: Waiter): ReusedTimer {
    const timer = free.get(ms)?.pop() ?? new ReusedTimer(ms)
    timer.#waiter = waiter
    timer.#timeout.refresh()
    return timer
  }

  private constructor(ms: number) {
    this.#ms = ms
    this.#timeout = setTimeout(end, ms, this).unref()
  }

  /** The time starts again. */
  refresh(): void {
    this.#timeout.refresh()
  }

  /** Must be called once, and nothing afterwards. */
  stop(): void {
    this.#waiter = undefined
    let others = free.get(this.#ms)
    if (others === undefined) free.set(this.#ms, (others = []))
    if (others.length < maxFree) others.push(this)
    else clearTimeout(this.#timeout)
  }

  /** @internal */
  end(): void {
    this.#waiter?.onTimeout()
  }
}

function end(timer: ReusedTimer): void {
  timer.end()
}
