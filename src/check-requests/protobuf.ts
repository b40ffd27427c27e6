/**
 * The part of the Protocol Buffers wire format that Envoy's messages need: varints and
 * length-delimited fields. Fields of other wire types are skipped.
 */

/** A field of a message: a number for a varint, bytes for a text, a message or bytes. */
type FieldValue = number | Uint8Array

/** The values of the fields of a message, by field number. */
export type Message = ReadonlyMap<number, readonly FieldValue[]>

const varint = 0
const fixed64 = 1
const delimited = 2
const fixed32 = 5

/**
 * Reads the fields of a message.
 * @throws {RangeError} when the message is malformed
 */
export function readMessage(bytes: Uint8Array): Message {
  const fields = new Map<number, FieldValue[]>()
  const reader = new Reader(bytes)
  while (!reader.isAtEnd) {
    const tag = reader.varint()
    const [number, wireType] = [Math.floor(tag / 8), tag % 8]
    if (number === 0) throw new RangeError('a field has the number 0')
    const value = reader.value(wireType)
    if (value === undefined) continue
    const values = fields.get(number)
    if (values === undefined) fields.set(number, [value])
    else values.push(value)
  }
  return fields
}

/** The last value of a field that is a message; an empty message when it is absent. */
export function messageIn(message: Message, number: number): Message {
  const value = message.get(number)?.at(-1)
  return value instanceof Uint8Array ? readMessage(value) : new Map<number, readonly FieldValue[]>()
}

/** The values of a repeated field whose values are messages. */
export function messagesIn(message: Message, number: number): Message[] {
  return (message.get(number) ?? []).flatMap((value) => (value instanceof Uint8Array ? [readMessage(value)] : []))
}

/** The last value of a text field, one character for each byte; empty when it is absent. */
export function textIn(message: Message, number: number): string {
  const value = message.get(number)?.at(-1)
  return value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : ''
}

/** A field for {@link writeMessage}: a number, a text in UTF-8, or bytes of a text or a message. */
type WrittenField = readonly [number: number, value: number | string | Uint8Array]

/** A message with these fields. A field that occurs several times is a repeated one. */
export function writeMessage(fields: readonly WrittenField[]): Uint8Array {
  return Buffer.concat(
    fields.flatMap(([number, value]) => {
      if (typeof value === 'number') return [writtenVarint(number * 8 + varint), writtenVarint(value)]
      const bytes = typeof value === 'string' ? Buffer.from(value) : value
      return [writtenVarint(number * 8 + delimited), writtenVarint(bytes.length), bytes]
    }),
  )
}

function writtenVarint(value: number): Uint8Array {
  const bytes: number[] = []
  let rest = value
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80)
  return Uint8Array.from([...bytes, rest])
}

class Reader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length
  }

  /** Numbers beyond 2^53 lose digits. No field that the gateway reads has such a number. */
  varint(): number {
    let value = 0
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#bytes[this.#at]
      if (byte === undefined) break
      this.#at += 1
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return value
    }
    throw new RangeError('a number does not end')
  }

  /** @returns `undefined` for a field that is skipped */
  value(wireType: number): FieldValue | undefined {
    if (wireType === varint) return this.varint()
    if (wireType === fixed64) return void this.#take(8)
    if (wireType === fixed32) return void this.#take(4)
    if (wireType === delimited) return this.#take(this.varint())
    throw new RangeError(`the wire type ${wireType} is unknown`)
  }

  #take(length: number): Uint8Array {
    const end = this.#at + length
    if (end > this.#bytes.length) throw new RangeError('a field is longer than the message')
    const taken = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return taken
  }
}
