import { AssertionError } from 'node:assert'
import { afterRunning } from './running-time.ts'

/**
 * Resolves to the result of the promise. The time in which the machine stalls does not count.
 *
 * @throws when the promise takes longer than the limit, in ms
 */
export async function inTime<T>(limitMs: number, work: () => Promise<T>): Promise<T> {
  let stop = () => {}
  const late = new Promise<never>((_, reject) => {
    stop = afterRunning(limitMs, () => reject(new AssertionError({ message: `not within ${limitMs} ms` })))
  })
  return Promise.race([work(), late]).finally(stop)
}
