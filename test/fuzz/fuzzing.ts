import type { TestContext } from 'node:test'
import fc from 'fast-check'
import { searchFor } from '../support/searches.ts'

/** How long each fuzzer runs, in ms; `FUZZ_MS` gives it more. */
export const fuzzMs = Number(process.env['FUZZ_MS'] ?? searchFor(10_000))

/**
 * How often it is looked for as long again, on a machine that is too busy to show everything the
 * first time.
 */
const mostRounds = 8

const valuesAtOnce = 20

/**
 * Looks for values that break a property until the time is over, and `hasShown` what it is to show.
 * What breaks it is made as small as possible and printed with its seed; `FUZZ_SEED` repeats that
 * search.
 */
export async function fuzz<T>(
  t: TestContext,
  values: fc.Arbitrary<T>,
  holds: (value: T) => Promise<void>,
  ms = fuzzMs,
  hasShown: () => boolean = () => true,
): Promise<void> {
  const seed = process.env['FUZZ_SEED']
  let runs = 0
  const property = fc.asyncProperty(values, (value) => {
    runs += 1
    return holds(value)
  })
  const options = { includeErrorInReport: true, ...(seed === undefined ? {} : { seed: Number(seed) }) }
  const isSearching = (round: number) => round < mostRounds && !hasShown()
  // In small batches that run to their end: on a busy machine one value can take longer than all of
  // the time.
  for (let round = 0; round === 0 || isSearching(round); round += 1) {
    const end = performance.now() + ms
    do await fc.assert(property, { ...options, numRuns: valuesAtOnce })
    while (performance.now() < end && seed === undefined)
  }
  t.diagnostic(`values ${runs}`)
}
