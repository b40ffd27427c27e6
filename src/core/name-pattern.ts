/** A pattern of names: `*` stands for any characters. Names are compared without case. */
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
  const text = name.toLowerCase()
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
