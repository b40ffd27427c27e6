import { Session } from 'node:inspector/promises'

const session = new Session()
session.connect()
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

/**
 * How often each function is called during `work`, also those of packages. Unlike a time, a count
 * does not depend on the machine or on other processes.
 */
export async function countedCalls(work: () => unknown): Promise<ReadonlyMap<string, number>> {
  await session.post('Profiler.takePreciseCoverage')
  work()
  const { result } = await session.post('Profiler.takePreciseCoverage')
  return new Map(
    result.flatMap(({ url, functions }) =>
      functions.flatMap(({ functionName, ranges }) =>
        ranges.map(({ startOffset, count }) => [`${functionName} at ${startOffset} of ${url}`, count] as const),
      ),
    ),
  )
}
