import { setTimeout as pause } from 'node:timers/promises'

/** In ms. Only a failing test waits this long: a busy machine may be ten times slower. */
const limitMs = 120_000

/**
 * Polls a condition every 5 ms, and resolves when it is true.
 * @throws {Error} when it is not true within two minutes
 */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + limitMs
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`not within ${limitMs} ms: ${what}`)
    await pause(5)
  }
}
