/** Time as an argument: decisions take it in, tests move it. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }

/** Whether `now` is less than `ms` after `at`. A clock may be set back: then it is not. */
export function isWithin(ms: number, at: number, now: number): boolean {
  return now >= at && now < at + ms
}
