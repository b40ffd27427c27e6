import { ByName } from './by-name.ts'

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
 * {@link hasControl}. Four bytes without a control character are skipped at once, which takes a
 * third of the time of a loop over single bytes.
 */
export function headEndOf(bytes: Uint8Array): number {
  const words = wordsOf(bytes.buffer)
  const { byteOffset, length } = bytes
  for (let at = 0; at < length; at++) {
    if (((byteOffset + at) & 3) === 0) {
      while (at + 4 <= length && !mayHaveControl(words[(byteOffset + at) >> 2] as number)) at += 4
      if (at === length) return incomplete
    }
    const byte = bytes[at] as number
    if ((byte >= 0x20 && byte !== 0x7f) || byte === 0x09) continue
    if (byte !== 0x0d) return hasControl
    if (at + 1 === length) return incomplete
    if (bytes[at + 1] !== 0x0a) return hasControl
    if (bytes[at + 2] === 0x0d && bytes[at + 3] === 0x0a) return at
    at++
  }
  return incomplete
}

/**
 * Whether one of the four bytes is below 0x20, or 0x7f. Where one is, the result may be due to
 * another byte, so the bytes have to be examined one by one. A subtraction sets the highest bit of
 * a byte that is too small. `~` excludes bytes that had this bit before.
 */
function mayHaveControl(word: number): boolean {
  const isBelow20 = (word - 0x20202020) & ~word
  const difference = word ^ 0x7f7f7f7f
  const is7f = (difference - 0x01010101) & ~difference
  return ((isBelow20 | is7f) & 0x80808080) !== 0
}

/** The memory that heads are read into, as whole words. It is used again and again. */
const words = new WeakMap<ArrayBufferLike, Int32Array>()

function wordsOf(memory: ArrayBufferLike): Int32Array {
  const known = words.get(memory)
  if (known !== undefined) return known
  const made = new Int32Array(memory, 0, memory.byteLength >> 2)
  words.set(memory, made)
  return made
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09
}

const notInToken = /[^\w!#$%&'*+.^`|~-]/
const notInValue = /[^\t\x20-\x7e\x80-\xff]/

/** `null` for a name that is not a token (RFC 9110 §5.1). */
const beginnings = new ByName((name) => (name === '' || notInToken.test(name) ? null : `\r\n${name}: `))

/**
 * A field of a head. It begins with the CRLF that ends the line before it: `\r\nName: value`.
 * `undefined` when the name is not a token, or the value is invalid.
 */
export function fieldLine(name: string, value: string): string | undefined {
  const beginning = beginnings.of(name)
  return beginning === null || !isFieldValue(value) ? undefined : beginning + value
}

/** Whether a text has bytes and no control character, which could end the field (RFC 9110 §5.5). */
export function isFieldValue(text: string): boolean {
  return !notInValue.test(text)
}
