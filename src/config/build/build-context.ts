import { parseOrigin } from '../addresses.ts'
import type { Setting } from '../document/report.ts'
import type { List } from '../settings.ts'

/**
 * Replaces an invalid or missing URL while the rest is checked. A configuration with an error is
 * never used.
 */
export const standInUrl = new URL('https://stand-in.invalid')

/** The valid entries of a list, each with its index in the file. */
export function present<T>(list: List<T>): [number, T][] {
  return list.flatMap((entry, index): [number, T][] => (entry === undefined ? [] : [[index, entry]]))
}

/** The valid entries of a list. */
export function valuesOf<T>(list: List<T>): T[] {
  return present(list).map(([, value]) => value)
}

/** Parses each valid entry of a list, and reports those that cannot be parsed. */
export function parseEach<T, Value>(
  list: List<T>,
  at: Setting,
  parse: (entry: T) => Value,
  hintFor?: (entry: T) => string | undefined,
): Value[] {
  return present(list).flatMap(([index, entry]) => at.below(index).parse([], () => [parse(entry)], hintFor?.(entry)))
}

export function readOrigin(text: string | undefined, at: Setting, fallback: URL): URL {
  if (text === undefined) return fallback
  return at.parse(fallback, () => parseOrigin(text))
}
