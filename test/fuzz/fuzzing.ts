import type { TestContext } from 'node:test'
import fc from 'fast-check'
import { searchFor } from '../support/searches.ts'

/** The run time of each fuzzer, in ms. `FUZZ_MS` sets a longer time. */
export const fuzzMs = Number(process.env['FUZZ_MS'] ?? searchFor(10_000))

/** How often the search is repeated on a machine that is too busy to finish the first time. */
const mostRounds = 8

const valuesAtOnce = 20

/**
 * Searches for values that violate a property until the time is over and `hasShown` is true. A
 * violating value is shrunk and printed with its seed. `FUZZ_SEED` repeats that search.
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
  // Small batches run to their end, because on a busy machine one value can take longer than the
  // whole time.
  for (let round = 0; round === 0 || isSearching(round); round += 1) {
    const end = performance.now() + ms
    do await fc.assert(property, { ...options, numRuns: valuesAtOnce })
    while (performance.now() < end && seed === undefined)
  }
  t.diagnostic(`values ${runs}`)
}
