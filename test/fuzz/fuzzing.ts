import type { TestContext } from 'node:test'
import fc from 'fast-check'
import { searchFor } from '../support/searches.ts'

/** How long each fuzzer runs, in ms; `FUZZ_MS` gives it more. */
export const fuzzMs = Number(process.env['FUZZ_MS'] ?? searchFor(10_000))

/** How often it is looked for as long again, on a machine that is too busy to show everything the first time. */
const mostRounds = 8

/**
 * Looks for values that break a property until the time is over, and `hasShown` what it is to show. What breaks it is made as small as possible and printed with
 * its seed; `FUZZ_SEED` repeats that search.
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
  // What starts with the first value is not a part of the time: on a busy machine it takes all of it.
  await fc.assert(property, { numRuns: 1 })
  for (let round = 0; round === 0 || (round < mostRounds && !hasShown()); round += 1)
    await fc.assert(property, {
      numRuns: Number.MAX_SAFE_INTEGER,
      interruptAfterTimeLimit: ms,
      includeErrorInReport: true,
      ...(seed === undefined ? {} : { seed: Number(seed) }),
    })
  t.diagnostic(`values ${runs}`)
}
