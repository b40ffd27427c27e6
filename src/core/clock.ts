/** A clock. Code takes it as an argument, so that tests can move it. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }

/** Whether `now` is less than `ms` after `at`, and not before it: a clock may be set back. */
export function isWithin(ms: number, at: number, now: number): boolean {
  return now >= at && now < at + ms
}

/** How much the clocks of replicas may differ, in ms. */
const clockSkewMs = 30_000

/** Whether `now` is less than `ms` after `at`, which another replica may have noted. */
export function isSoonAfter(ms: number, at: number, now: number): boolean {
  return now >= at - clockSkewMs && now < at + ms
}

/**
 * A clock for durations and rates: it never goes back, even when `clock` is set back.
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

const latestTime = Date.UTC(9999, 11, 31)

/**
 * A time that another party names in seconds since the epoch, in ms: within the years 1970 to 9999.
 * A store, a timer or a `Date` cannot take every number, such as one of a party that counts in ms.
 */
export function timeOfSeconds(seconds: number): number {
  return Math.min(Math.max(seconds * 1000, 0), latestTime)
}
