/**
 * A copy of a text, one byte for each character. V8 represents a part of a string as a reference to
 * the whole string, so a part that is kept would keep a whole message in memory.
 */
export function ownText(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}
