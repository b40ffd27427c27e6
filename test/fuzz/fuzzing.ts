import type { TestContext } from 'node:test'
import fc from 'fast-check'

/** How long each fuzzer runs, in ms; `FUZZ_MS` gives it more. */
export const fuzzMs = Number(process.env['FUZZ_MS'] ?? 10_000)

/**
 * Looks for values that break a property until the time is over. What breaks it is made as small as possible and printed with
 * its seed; `FUZZ_SEED` repeats that search.
 */
export async function fuzz<T>(
  t: TestContext,
  values: fc.Arbitrary<T>,
  holds: (value: T) => Promise<void>,
  ms = fuzzMs,
): Promise<void> {
  const seed = process.env['FUZZ_SEED']
  let runs = 0
  const property = fc.asyncProperty(values, (value) => {
    runs += 1
    return holds(value)
  })
  await fc.assert(property, {
    numRuns: Number.MAX_SAFE_INTEGER,
    interruptAfterTimeLimit: ms,
    ...(seed === undefined ? {} : { seed: Number(seed) }),
  })
  t.diagnostic(`values ${runs}`)
}
