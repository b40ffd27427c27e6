/**
 * A copy of a text, one byte for each character. V8 represents a part of a string as a reference to
 * the whole string, so a part that is kept would keep a whole message in memory.
 */
export function ownText(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}

/** How many names are remembered. Peers use few different ones. */
const maxNames = 1024
/** Longer names are not remembered, because peers may invent them. */
const maxNameLength = 64

interface Remembered<Value> {
  readonly name: string
  readonly value: Value
  /** The remembered name that followed the last time. */
  next: Remembered<Value> | undefined
}

/**
 * Remembers something about each name of a header field, in bounded memory. Fields usually have the
 * same order again. So a name is first compared with the one that followed the last time, which
 * takes less time than a search in a map.
 */
export class ByName<Value> {
  readonly #make: (name: string) => Value
  readonly #names = new Map<string, Remembered<Value>>()
  #last: Remembered<Value> | undefined

  /** @param make receives a copy of the name, which does not keep the message in memory */
  constructor(make: (name: string) => Value) {
    this.#make = make
  }

  /** @param name as the peer wrote it */
  of(name: string): Value {
    const last = this.#last
    const expected = last?.next
    if (expected?.name === name) {
      this.#last = expected
      return expected.value
    }
    const known = this.#names.get(name)
    if (known === undefined) return this.#add(name)
    if (last !== undefined) last.next = known
    this.#last = known
    return known.value
  }

  #add(name: string): Value {
    const copy = ownText(name)
    const value = this.#make(copy)
    if (this.#names.size < maxNames && copy.length <= maxNameLength)
      this.#names.set(copy, { name: copy, value, next: undefined })
    return value
  }

  remembers(name: string): boolean {
    return this.#names.has(name)
  }
}

/** A header field, by its name as the peer wrote it. */
export interface KnownField<Facts> {
  readonly written: string
  readonly facts: Facts
  /** The name and its colon. */
  readonly beginning: string
  /** The field that followed the last time. */
  next: KnownField<Facts> | undefined
}

/**
 * Finds header fields in the text of a head, and remembers facts about them. A peer usually writes
 * its fields in the same order again. So most fields are found by comparing the text with the name
 * that followed the last time, which takes less time than a search in a map.
 */
export class KnownFields<Facts> {
  readonly #fields: ByName<KnownField<Facts>>
  #first: KnownField<Facts> | undefined

  /** @param factsOf receives a copy of the name, which does not keep the message in memory */
  constructor(factsOf: (written: string) => Facts) {
    this.#fields = new ByName((written) => ({
      written,
      facts: factsOf(written),
      beginning: `${written}:`,
      next: undefined,
    }))
  }

  /**
   * The field whose line begins at `start` and ends at `end`. `undefined`: the line has no colon.
   * @param before the field of the line before it; `undefined` for the first line
   */
  at(text: string, start: number, end: number, before: KnownField<Facts> | undefined): KnownField<Facts> | undefined {
    const expected = before === undefined ? this.#first : before.next
    if (expected !== undefined && text.startsWith(expected.beginning, start)) return expected
    const colon = text.indexOf(':', start)
    if (colon === -1 || colon >= end) return undefined
    const field = this.#fields.of(text.slice(start, colon))
    // A chain of invented names would stay in memory.
    if (!this.#fields.remembers(field.written)) return field
    if (before === undefined) this.#first = field
    else before.next = field
    return field
  }
}

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

/**
 * Whether each character of a text is a byte, and none is a control character, which could end the
 * field (RFC 9110 §5.5).
 */
export function isFieldValue(text: string): boolean {
  return !notInValue.test(text)
}
