import { setTimeout as pause } from 'node:timers/promises'

/** The limit is generous because the machine may be busy. A successful wait ends much earlier. */
const limitMs = 30_000

/**
 * Resolves when `holds` returns true. Checks often.
 *
 * @throws when it is not true within 30 s
 */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + limitMs
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`not within ${limitMs} ms: ${what}`)
    await pause(5)
  }
}
