/** Receives the timeout of a {@link ReusedTimer}. */
export interface Waiter {
  onTimeout(): void
}

/** How many timers of each length are kept to be used again. */
const maxFree = 256
/** By their length in ms. The configuration has few different ones. */
const free = new Map<number, ReusedTimer[]>()

/**
 * Limits the time of one wait. Most requests end long before their limit. So the timer keeps
 * running, and another request uses it again, which costs less than `setTimeout` and
 * `clearTimeout`. It does not keep the process running.
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
    this.#timeout = setTimeout(ReusedTimer.#end, ms, this).unref()
  }

  /** The time starts again. */
  refresh(): void {
    this.#timeout.refresh()
  }

  /** Call it once. The timer must not be used afterwards. */
  stop(): void {
    this.#waiter = undefined
    let others = free.get(this.#ms)
    if (others === undefined) free.set(this.#ms, (others = []))
    if (others.length < maxFree) others.push(this)
    else clearTimeout(this.#timeout)
  }

  static #end(timer: ReusedTimer): void {
    timer.#waiter?.onTimeout()
  }
}

/** Functions to call, each followed by its argument. */
let due: unknown[] = []
const settled = Promise.resolve()

/**
 * Calls a function after the current event was handled, and before the next one. Functions are
 * called in their order, as a microtask: after the ticks of an event, and before ticks that another
 * microtask adds. An error is reported as an unhandled rejection. `process.nextTick` costs more,
 * because Node.js creates an asynchronous context for each tick.
 */
export function atEndOfTurn<Subject>(call: (subject: Subject) => void, subject: Subject): void {
  if (due.length === 0) void settled.then(endTurn)
  due.push(call, subject)
}

function endTurn(): void {
  let at = 0
  try {
    // Functions may add others.
    for (; at < due.length; at += 2) (due[at] as (subject: unknown) => void)(due[at + 1])
  } finally {
    due = due.length === at ? [] : due.slice(at + 2)
    if (due.length > 0) void settled.then(endTurn)
  }
}
