import { appendFileSync } from 'node:fs'
import { afterEach, beforeEach, type TestContext } from 'node:test'
import { watchTimers } from './late-timers.ts'

/**
 * A machine is busy when timers of a process were late for so long within the time, in ms. The
 * gateway waits for Redis for 1.5 s only.
 */
const busy = { lateMs: 1_200, withinMs: 10_000 }

/** Whether a test whose hooks run has passed. The types of Node.js do not have it yet. */
export function hasPassed(t: TestContext): boolean {
  return (t as TestContext & { readonly passed: boolean }).passed
}

/**
 * Tests of this file that fail on a busy machine do not say that something is broken, and nothing
 * is fine either: `.ci/verdict.mjs` ends the command with another exit code.
 */
export function judgeOnlyUnlessBusy(): { note(name: string): void } {
  let late: { at: number; ms: number }[] = []
  let worst = 0
  watchTimers(({ end, ms }) => {
    late = [...late.filter(({ at }) => at > end - busy.withinMs), { at: end, ms }]
    worst = Math.max(
      worst,
      late.reduce((sum, one) => sum + one.ms, 0),
    )
  })
  const note = (name: string) => {
    const { VERDICTS: file } = process.env
    const verdict = worst >= busy.lateMs ? 'busy' : 'broken'
    if (file !== undefined) appendFileSync(file, `${verdict} ${Math.round(worst)} ms of 10 s: ${name}\n`)
  }
  beforeEach(() => void (worst = 0))
  afterEach((t) => {
    const test = t as TestContext
    if (!hasPassed(test)) note(test.name)
  })
  return { note }
}
