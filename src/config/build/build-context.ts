import { parseOrigin } from '../addresses.ts'
import type { Setting } from '../document/report.ts'
import type { List } from '../settings.ts'

/**
 * Replaces an invalid or missing URL while the rest is checked. A configuration with an error is
 * never used.
 */
export const standInUrl = new URL('https://stand-in.invalid')

/** The valid entries of a list. */
export function valuesOf<T>(list: List<T>): T[] {
  return list.filter((entry) => entry !== undefined)
}

/** Reads each valid entry of a list; leaves out those that are reported. */
export function readEach<T, V>(list: List<T>, at: Setting, read: (entry: T, at: Setting) => V | undefined): V[] {
  return list.flatMap((entry, index) => {
    const value = entry === undefined ? undefined : read(entry, at.below(index))
    return value === undefined ? [] : [value]
  })
}

/** Parses each valid entry of a list, and reports those that cannot be parsed. */
export function parseEach<T, V>(
  list: List<T>,
  at: Setting,
  parse: (entry: T) => V,
  hintFor?: (entry: T) => string | undefined,
): V[] {
  return readEach(list, at, (entry, at) => at.parse(entry, parse, hintFor?.(entry)))
}

/** Parses the origins of other pages. */
export function readOrigins(origins: List<string>, at: Setting): readonly string[] {
  return parseEach(origins, at, (origin) => parseOrigin(origin, 'https://portal.example.com').origin)
}
