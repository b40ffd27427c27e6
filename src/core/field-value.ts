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

/**
 * Whether the head of a message, the bytes before `end`, has a control character other than tabs
 * and whole line ends. A loop takes half of the time of a regular expression.
 */
export function hasControl(bytes: Uint8Array, end: number): boolean {
  for (let at = 0; at < end; at++) {
    const byte = bytes[at] as number
    if ((byte >= 0x20 && byte !== 0x7f) || byte === 0x09) continue
    if (byte !== 0x0d || bytes[at + 1] !== 0x0a) return true
    at++
  }
  return false
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09
}
