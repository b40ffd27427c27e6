/**
 * The part of a text from `from` to `to`, without the spaces and tabs around it (RFC 9110 §5.6.3).
 * `trim` also removes a no-break space, which may be a byte of a character.
 */
export function withoutSpaceAround(text: string, from = 0, to = text.length): string {
  let start = from
  let end = to
  while (start < end && isSpace(text.charCodeAt(start))) start += 1
  while (end > start && isSpace(text.charCodeAt(end - 1))) end -= 1
  return text.slice(start, end)
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09
}
