/**
 * Replaces all characters that a terminal interprets: escape sequences, line breaks, changes of
 * direction. The length stays the same.
 */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, '\ufffd')
}
