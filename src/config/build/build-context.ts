import { parseOrigin } from '../addresses.ts'
import type { Report } from '../document/report.ts'
import { parseDuration, parseSize, parseWithin, type Range } from '../quantities.ts'
import type { List } from '../settings.ts'
import type { Environment } from './secrets.ts'

/** What all parts of a configuration need to be built. */
export interface BuildContext {
  readonly env: Environment
  readonly report: Report
}

/**
 * Replaces an invalid or missing URL while the rest is checked. A configuration with an error is
 * never used.
 */
export const standInUrl = new URL('https://stand-in.invalid')

/** The valid entries of a list, each with its index in the file. */
export function present<T>(list: List<T>): [number, T][] {
  return list.flatMap((entry, index): [number, T][] => (entry === undefined ? [] : [[index, entry]]))
}

export function readDuration(text: string, at: string, from: string, to: string, report: Report): number {
  return readQuantity(text, at, { from, to }, parseDuration, report)
}

export function readSize(text: string, at: string, from: string, to: string, report: Report): number {
  return readQuantity(text, at, { from, to }, parseSize, report)
}

function readQuantity(text: string, at: string, range: Range, parse: (text: string) => number, report: Report): number {
  return report.parse(at, parse(range.from), () => parseWithin(text, range, parse))
}

export function readOrigin(text: string | undefined, at: string, fallback: URL, report: Report): URL {
  if (text === undefined) return fallback
  return report.parse(at, fallback, () => parseOrigin(text))
}
