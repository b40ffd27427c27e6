/**
 * The result of a read. `more`: further data must arrive. `end`: the content has ended. `unusual`:
 * the next chunk is not plain, but may be valid. `malformed`: a chunk is longer than its size.
 */
export type ChunkEvent = 'more' | 'end' | 'unusual' | 'malformed'

const lineFeed = 0x0a
const carriageReturn = 0x0d
/** The maximum number of digits in a plain size: `fffffff` is 256 MiB. */
const maxSizeDigits = 7

/** Values of `#left` between the data of two chunks. */
const sizeIsNext = -1
const lineEndIsNext = -2

/**
 * Removes the chunked transfer coding (RFC 9112 §7.1) if it is plain: hexadecimal sizes without
 * extensions, and no trailer section. It stops in front of a chunk that is not plain, so that
 * undici can continue there.
 */
export class PlainChunks {
  /** How many bytes of the current chunk are still to come, or what comes next instead. */
  #left = sizeIsNext
  /** The beginning of a size line that has not arrived completely. */
  #line: Buffer | undefined

  /**
   * Passes each piece of content to `onData`, as a view of `bytes`.
   * @returns `rest`: after `end`, the data after the content; after `unusual`, the unread data from
   * the beginning of a size line on
   */
  read(bytes: Buffer, onData: (part: Buffer) => void): { readonly event: ChunkEvent; readonly rest: Buffer } {
    let input = bytes
    if (this.#line !== undefined) {
      input = Buffer.concat([this.#line, bytes])
      this.#line = undefined
    }
    let at = 0
    while (at < input.length) {
      if (this.#left > 0) {
        const end = Math.min(at + this.#left, input.length)
        this.#left -= end - at
        onData(input.subarray(at, end))
        at = end
        if (this.#left === 0) this.#left = lineEndIsNext
        continue
      }
      const lineAt = at
      if (this.#left === lineEndIsNext) {
        if (!mayBeLineEnds(input, at, 2)) return { event: 'malformed', rest: nothing }
        if (at + 1 === input.length) break
        at += 2
        this.#left = sizeIsNext
        continue
      }
      let size = 0
      let digit = hexadecimal(input[at])
      while (digit >= 0 && at - lineAt < maxSizeDigits) {
        size = size * 16 + digit
        at += 1
        digit = hexadecimal(input[at])
      }
      // A size ends with CR LF. After the size 0, an empty line ends the content.
      const ending = size === 0 ? 4 : 2
      if (at === lineAt || !mayBeLineEnds(input, at, ending)) return { event: 'unusual', rest: input.subarray(lineAt) }
      if (at + ending > input.length) {
        this.#keep(input, lineAt)
        return { event: 'more', rest: nothing }
      }
      at += ending
      if (size === 0) return { event: 'end', rest: input.subarray(at) }
      this.#left = size
    }
    if (at < input.length) this.#keep(input, at)
    return { event: 'more', rest: nothing }
  }

  #keep(input: Buffer, from: number): void {
    this.#line = Buffer.from(input.subarray(from))
  }
}

const nothing = Buffer.alloc(0)

function hexadecimal(byte: number | undefined): number {
  if (byte === undefined) return -1
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lowerCase = byte | 0x20
  return lowerCase >= 0x61 && lowerCase <= 0x66 ? lowerCase - 0x57 : -1
}

/** Whether the next `length` bytes are CR LF pairs, as far as they have arrived. */
function mayBeLineEnds(input: Buffer, from: number, length: number): boolean {
  const end = Math.min(from + length, input.length)
  for (let at = from; at < end; at++)
    if (input[at] !== ((at - from) % 2 === 0 ? carriageReturn : lineFeed)) return false
  return true
}
