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

/** The length of the end of a head, in bytes: a line end and an empty line. */
export const headEndBytes = 4
/** The head of a message has not arrived completely. */
export const incomplete = -1
/** The head has a control character other than tabs and whole line ends. */
const hasControl = -2

/**
 * Where the empty line at the end of the head of a message begins; or {@link incomplete}, or
 * {@link hasControl}. One loop takes half of the time of a regular expression.
 */
export function headEndOf(bytes: Uint8Array): number {
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    if ((byte >= 0x20 && byte !== 0x7f) || byte === 0x09) continue
    if (byte !== 0x0d) return hasControl
    if (at + 1 === bytes.length) return incomplete
    if (bytes[at + 1] !== 0x0a) return hasControl
    if (bytes[at + 2] === 0x0d && bytes[at + 3] === 0x0a) return at
    at++
  }
  return incomplete
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09
}
