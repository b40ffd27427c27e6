import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FrameBudget } from '../../../src/listener/http2/frame-budget.ts'

/** How long a connection stays open, in seconds, of at most 1,000. */
function secondsOpen(bytesEachSecond: { readonly useful: number; readonly other: number }): number {
  const budget = new FrameBudget(0)
  for (let second = 1; second <= 1_000; second += 1) {
    const [useful, other] = [bytesEachSecond.useful * second, bytesEachSecond.other * second]
    if (!budget.allows({ bytesRead: useful + other, bytesWritten: 0, useful }, second * 1_000)) return second
  }
  return 1_000
}

for (const [what, bytes, expected] of [
  ['requests stays open', { useful: 100_000, other: 0 }, 1_000],
  ['16 KiB of other frames a second stays open', { useful: 0, other: 16 * 1024 }, 1_000],
  ['1 KiB more is closed after its 64 KiB', { useful: 0, other: 17 * 1024 }, 49],
  ['more than 64 KiB at once is closed', { useful: 0, other: 64 * 1024 + 1 }, 1],
  ['other frames of an eighth of its requests stays open', { useful: 160_000, other: 20_000 + 16 * 1024 }, 1_000],
] as const)
  test(`A connection of HTTP/2 with ${what}`, () => {
    assert.equal(secondsOpen(bytes), expected)
  })
