/**
 * A text of which a terminal obeys nothing: no escape sequence, no line break, no change of
 * direction. As long as it was.
 */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, '\ufffd')
}
