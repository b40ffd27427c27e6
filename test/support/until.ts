import { setTimeout as pause } from 'node:timers/promises'

/** Resolves when `holds` answers true; looks often. @throws when it has not come true within `limitMs` */
export async function until(what: string, holds: () => boolean | Promise<boolean>, limitMs = 5000): Promise<void> {
  const end = performance.now() + limitMs
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`not within ${limitMs} ms: ${what}`)
    await pause(5)
  }
}
