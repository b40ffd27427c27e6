/**
 * A path pattern of a rule. `*` matches one segment. At the end, it matches everything below:
 * `/public/*` matches `/public` and `/public/a/b`.
 */
export interface PathPattern {
  readonly text: string
  readonly segments: readonly string[]
  /** Ends in `*`: matches everything below. */
  readonly below: boolean
}

/** @throws {SyntaxError} names what is wrong */
export function parsePathPattern(text: string): PathPattern {
  if (!text.startsWith('/')) throw new SyntaxError(`a path starts with "/": "${text}"`)
  if (/[?#\\%;\s]|[^\x21-\x7e]/.test(text))
    throw new SyntaxError(`a path has no query, no percent-encoding, no ";" and no space: "${text}"`)
  // Taken literally, such a pattern would match no path, so the paths that it should protect would
  // be unprotected.
  if (/[|[\]{}<>^"`]|\(\?|\.[*+]|\$$|\/:\w/.test(text))
    throw new SyntaxError(`a path is not a regular expression: its only placeholder is "*": "${text}"`)
  const segments = text.slice(1).split('/')
  if (segments.some((segment) => segment === '.' || segment === '..'))
    throw new SyntaxError(`a path has no "." or ".." segment: "${text}"`)
  if (segments.slice(0, -1).includes('')) throw new SyntaxError(`a path has no "//": "${text}"`)
  const partial = segments.find((segment) => segment.includes('*') && segment !== '*' && segment !== '**')
  if (partial !== undefined)
    throw new SyntaxError(`"*" stands for a whole segment, not for a part of one: "${partial}" in "${text}"`)
  const last = segments.at(-1)
  const below = last === '*' || last === '**'
  if (segments.slice(0, -1).includes('**')) throw new SyntaxError(`"**" may only stand at the end: "${text}"`)
  return { text, segments: below ? segments.slice(0, -1) : segments, below }
}

/**
 * Whether a pattern matches the segments of a canonical path (`/a/b` → `['a', 'b']`, `/` → `['']`).
 */
export function matchesPath(pattern: PathPattern, segments: readonly string[]): boolean {
  const wanted = pattern.segments
  if (pattern.below ? segments.length < wanted.length : segments.length !== wanted.length) return false
  for (let index = 0; index < wanted.length; index++) {
    const segment = segments[index]
    if (wanted[index] !== segment && (wanted[index] !== '*' || segment === '')) return false
  }
  return true
}

/**
 * A decoded segment as an upstream that ignores case compares it: `ADMIN`, `adm\u0131n`, `\u017f`
 * and full-width letters become plain lower case.
 */
export function foldCase(segment: string): string {
  if (/^[\0-\x7f]*$/.test(segment)) return segment.toLowerCase()
  // Upper case first, because U+017F and U+0131 have the upper case of "s" and of "i". The lower
  // case of U+0130 is "i" with a combining dot.
  return segment.normalize('NFKC').toUpperCase().toLowerCase().replaceAll('i\u0307', 'i')
}
