// How the Go runtime runs a contender.
import type { Setting } from './contender.ts'

/**
 * As many threads that run Go code as processors. The Go runtime would choose the same number
 * itself, because it counts the processors that the process may use.
 */
export function goEnvironment({ cpus }: Pick<Setting, 'cpus'>): Readonly<Record<string, string>> {
  return { GOMAXPROCS: String(cpus.split(',').length) }
}

/** The same for a report. */
export function goRunsWith(setting: Pick<Setting, 'cpus'>): string {
  return `\`GOMAXPROCS=${goEnvironment(setting)['GOMAXPROCS']}\`, \`GOGC\` unset; one process`
}
