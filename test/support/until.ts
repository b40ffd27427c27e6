import { setTimeout as pause } from 'node:timers/promises'

/**
 * For a machine that is busy with other things; whoever waits for what comes does not wait for so
 * long.
 */
const limitMs = 30_000

/**
 * Resolves when `holds` answers true; looks often. @throws when it has not come true within 30 s
 */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + limitMs
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`not within ${limitMs} ms: ${what}`)
    await pause(5)
  }
}
