/**
 * The text of a header's value, of which each character is a byte on the wire: UTF-8 when it can be
 * that, Latin-1 otherwise.
 */
function headerText(value: string): string {
  const bytes = Buffer.from(value, 'latin1')
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return value
  }
}

/** Header lines, name and value in turn, as pairs with the value's text. */
export function headerPairs(lines: readonly string[]): [name: string, text: string][] {
  const pairs: [string, string][] = []
  for (let at = 0; at + 1 < lines.length; at += 2)
    pairs.push([lines[at] as string, headerText(lines[at + 1] as string)])
  return pairs
}
