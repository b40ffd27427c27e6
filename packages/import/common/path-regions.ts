import { parsePathPattern, type PathPattern } from '../../../src/entries/import.ts'

function textOf({ segments, below, suffix = '' }: PathPattern): string {
  return `/${[...segments, ...(below ? [`*${suffix}`] : [])].join('/')}`
}

/** Patterns for the paths that both patterns match. */
function intersection(one: PathPattern, other: PathPattern): readonly PathPattern[] {
  const [long, short] = one.segments.length < other.segments.length ? [other, one] : [one, other]
  if (!short.below && short.segments.length < long.segments.length) return []
  const segments: string[] = []
  for (const [index, name] of long.segments.entries()) {
    const wanted = short.segments[index] ?? name
    if (name !== wanted && ((name !== '*' && wanted !== '*') || name === '' || wanted === '')) return []
    segments.push(name === '*' ? wanted : name)
  }
  const below = one.below && other.below
  const [suffix, ...shorter] = [one.suffix, other.suffix]
    .flatMap((each) => each ?? [])
    .toSorted((a, b) => b.length - a.length)
  if (suffix === undefined) return [{ text: '', segments, below }]
  if (shorter.some((each) => !suffix.endsWith(each))) return []
  const last = segments.at(-1)
  // The text that a last "*" matches may include the ending.
  const folder = last === '*' && below ? segments.slice(0, -1) : segments
  const isPage = last !== undefined && last !== '*' && last.endsWith(suffix)
  return [
    ...(below ? [{ text: '', segments: folder, below, suffix }] : []),
    ...(isPage ? [{ text: '', segments, below: false }] : []),
  ]
}

export const slashNote =
  'people need access to this page with and without the slash at its end, because one rule decides about both'

/** The patterns for a path that ends with a slash: the path, and all paths below it. */
export function folderPatterns(path: string): readonly string[] {
  return path === '/' ? ['/*'] : [path, `${path}*/*`]
}

/** Whether a rule can match paths of an upstream. */
export function canMatchBelow({ path: pattern }: { readonly path: string }, path: string): boolean {
  const prefix = pattern.replace(/\*.*$/, '')
  return prefix.startsWith(path) || path === `${prefix}/` || (prefix !== pattern && path.startsWith(prefix))
}

/** Whether a pattern matches all paths of another one. */
export function covers(pattern: string, other: string): boolean {
  const [wide, narrow] = [parsePathPattern(pattern), parsePathPattern(other)]
  return intersection(wide, narrow).some((both) => textOf(both) === textOf(narrow))
}

/**
 * The patterns and all of their intersections, the narrower ones first. So the first pattern that
 * matches a path is covered by all others that match it.
 */
export function regionsOf(patterns: readonly string[]): readonly string[] {
  const regions = new Set(patterns.map((pattern) => textOf(parsePathPattern(pattern))))
  // A set also visits what is added meanwhile.
  for (const one of regions)
    for (const other of regions)
      for (const both of intersection(parsePathPattern(one), parsePathPattern(other))) regions.add(textOf(both))
  const rank = (region: string) => {
    const { segments, below, suffix } = parsePathPattern(region)
    const stars = segments.filter((name) => name === '*').length
    return [-segments.length, stars, below ? 1 : 0, -(suffix?.length ?? 0)]
  }
  return [...regions].toSorted((one, other) => {
    const others = rank(other)
    return (
      rank(one)
        .map((value, index) => value - (others[index] ?? 0))
        .find((difference) => difference !== 0) ?? 0
    )
  })
}
