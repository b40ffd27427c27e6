/** A clock. Code takes it as an argument, so that tests can move it. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }

/** Whether `now` is at most `ms` after `at`. It is not when the clock was set back before `at`. */
export function isWithin(ms: number, at: number, now: number): boolean {
  return now >= at && now < at + ms
}

/**
 * A clock for durations and rates: when `clock` is set back, this one goes on from where it was.
 * Its milliseconds count from an arbitrary time, and must not be compared with another clock.
 */
export function steadyClock(clock: Clock): Clock {
  let [last, elapsed] = [clock.now(), 0]
  return {
    now: () => {
      const now = clock.now()
      elapsed += Math.max(0, now - last)
      last = now
      return elapsed
    },
  }
}
