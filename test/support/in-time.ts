import { AssertionError } from 'node:assert'
import { afterRunning } from './running-time.ts'

/**
 * What this resolves to. @throws when it takes longer, in ms; that the machine stalls does not
 * count
 */
export async function inTime<T>(limitMs: number, work: () => Promise<T>): Promise<T> {
  let stop = () => {}
  const late = new Promise<never>((_, reject) => {
    stop = afterRunning(limitMs, () => reject(new AssertionError({ message: `not within ${limitMs} ms` })))
  })
  return Promise.race([work(), late]).finally(stop)
}
