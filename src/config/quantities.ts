import { ownMember } from '../core/json.ts'

/** The units of durations, in milliseconds. */
export const durations = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const units: Readonly<Record<string, number>> = { ...durations, b: 1, kb: 1024, mb: 1024 * 1024 }

/** `30m` in milliseconds, `16kb` in bytes. The schema has checked the text. */
export function amountOf(text: string): number {
  const [, amount, unit = ''] = /^(\d+)([a-z]+)$/.exec(text) ?? []
  return Number(amount) * (ownMember(units, unit) ?? NaN)
}

/** A duration as a whole number of its largest unit: 5,400,000 → `90m`. */
export function durationText(ms: number): string {
  const [unit, each] = Object.entries(durations).findLast(([, each]) => ms >= each && ms % each === 0) ?? ['ms', 1]
  return `${ms / each}${unit}`
}

/** `count` events in each period of `perMs` milliseconds. */
export interface Rate {
  readonly count: number
  readonly perMs: number
}

/** `600/m` is 600 in 60,000 ms. The schema has checked the text. */
export function rateOf(text: string): Rate {
  const [count, unit = ''] = text.split('/')
  return { count: Number(count), perMs: ownMember(units, unit) ?? NaN }
}
