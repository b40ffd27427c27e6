import type { Setting } from '../document/report.ts'

/**
 * Replaces an invalid or missing URL while the rest is checked. A configuration with an error is
 * never used.
 */
export const standInUrl = new URL('https://stand-in.invalid')

/**
 * Whether settings are a list. `Array.isArray` does not narrow a type to a list that is read-only.
 */
export function isList<T>(settings: T): settings is Extract<T, readonly unknown[]> {
  return Array.isArray(settings)
}

/** Reads each entry of a list; leaves out what cannot be read. */
export function readEach<T, V>(list: readonly T[], at: Setting, read: (entry: T, at: Setting) => V | undefined): V[] {
  let index = -1
  return list.flatMap((entry) => {
    // An invalid entry has been removed.
    do index += 1
    while (at.report.isInvalid(at.below(index).pointer))
    const value = read(entry, at.below(index))
    return value === undefined ? [] : [value]
  })
}
