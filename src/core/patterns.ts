/**
 * A path pattern of a rule. `*` matches one segment. At the end, it matches everything below:
 * `/public/*` matches `/public` and `/public/a/b`. With an ending, it matches what is below and has
 * that ending: `/public/*.css` matches `/public/a.css` and `/public/a/b.css`.
 */
export interface PathPattern {
  readonly text: string
  readonly segments: readonly string[]
  /** Ends in `*`, possibly with a suffix: matches what is below. */
  readonly below: boolean
  /** How the last segment of a path ends: `.css`. */
  readonly suffix?: string
}

/** @throws {SyntaxError} names what is wrong */
export function parsePathPattern(text: string): PathPattern {
  const rooted = text.startsWith('*.') ? `/${text}` : text
  if (!rooted.startsWith('/')) throw new SyntaxError(`a path starts with "/": "${text}"`)
  if (/[?#\\%;\s]|[^\x21-\x7e]/.test(text))
    throw new SyntaxError(`a path has no query, no percent-encoding, no ";" and no space: "${text}"`)
  // Taken literally, such a pattern would match no path, so the paths that it should protect would
  // be unprotected.
  if (/[|[\]{}<>^"`]|\(\?|\.[*+]|\$$|\/:\w/.test(text))
    throw new SyntaxError(`a path is not a regular expression: its only placeholder is "*": "${text}"`)
  const segments = rooted.slice(1).split('/')
  const suffix = /^\*(\.[\w.-]*\w)$/.exec(segments.at(-1) ?? '')?.[1]
  if (suffix !== undefined) segments.splice(-1, 1, '*')
  if (segments.some((segment) => segment === '.' || segment === '..'))
    throw new SyntaxError(`a path has no "." or ".." segment: "${text}"`)
  if (segments.slice(0, -1).includes('')) throw new SyntaxError(`a path has no "//": "${text}"`)
  const partial = segments.find((segment) => segment.includes('*') && segment !== '*' && segment !== '**')
  if (partial !== undefined)
    throw new SyntaxError(
      `"*" stands for a whole segment, or precedes an ending such as *.css at the end: "${partial}" in "${text}"`,
    )
  const last = segments.at(-1)
  const below = last === '*' || last === '**'
  if (segments.slice(0, -1).includes('**')) throw new SyntaxError(`"**" may only stand at the end: "${text}"`)
  return { text, segments: below ? segments.slice(0, -1) : segments, below, ...(suffix !== undefined && { suffix }) }
}

/**
 * Whether a method is one of these, or they are absent. The response to HEAD reveals the header
 * fields of the response to GET (RFC 9110 §9.3.2), so what is for GET is for HEAD too.
 */
export function matchesMethod(methods: readonly string[] | undefined, method: string): boolean {
  return methods === undefined || methods.includes(method) || (method === 'HEAD' && methods.includes('GET'))
}

/**
 * Whether a pattern matches the segments of a canonical path (`/a/b` → `['a', 'b']`, `/` → `['']`).
 */
export function matchesPath(pattern: PathPattern, segments: readonly string[]): boolean {
  const { segments: wanted, suffix } = pattern
  if (pattern.below ? segments.length < wanted.length : segments.length !== wanted.length) return false
  for (let index = 0; index < wanted.length; index++) {
    const segment = segments[index]
    if (wanted[index] !== segment && (wanted[index] !== '*' || segment === '')) return false
  }
  if (suffix === undefined) return true
  const last = segments[segments.length - 1] ?? ''
  return segments.length > wanted.length && last.length > suffix.length && last.endsWith(suffix)
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

/** A pattern of names: `*` matches any characters. Names are compared without case. */
export interface NamePattern {
  readonly text: string
  /** What stands between the `*`, in lower case. */
  readonly parts: readonly string[]
}

export function parseNamePattern(text: string): NamePattern {
  return { text, parts: text.toLowerCase().split('*') }
}

export function matchesAny(patterns: readonly NamePattern[], name: string): boolean {
  return patterns.some((pattern) => matchesName(pattern, name))
}

/** Whether a name matches a pattern, in time proportional to the length of the name. */
export function matchesName({ parts }: NamePattern, name: string): boolean {
  return matchesParts(parts, name.toLowerCase())
}

/** The same, where letter case counts. */
export function matchesExactly({ text }: NamePattern, name: string): boolean {
  return matchesParts(text.split('*'), name)
}

function matchesParts(parts: readonly string[], text: string): boolean {
  const [first = '', ...middle] = parts
  const last = middle.pop()
  if (last === undefined) return text === first
  if (!text.startsWith(first) || text.length < first.length + last.length || !text.endsWith(last)) return false
  let from = first.length
  for (const part of middle) {
    const at = text.indexOf(part, from)
    if (at < 0) return false
    from = at + part.length
  }
  return from <= text.length - last.length
}
