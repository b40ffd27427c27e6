/**
 * What a reader of chunks has found: more data has to come, the content has ended, the chunks are
 * unusual but not necessarily invalid, or a chunk is longer than its size.
 */
export type ChunkEvent = 'more' | 'end' | 'unusual' | 'malformed'

const lineFeed = 0x0a
const carriageReturn = 0x0d
/** The most digits of a plain size: `fffffff` is 256 MiB. */
const maxSizeDigits = 7

/**
 * Removes the chunked transfer coding (RFC 9112 §7.1) if it is plain: hexadecimal sizes without
 * extensions, and no trailer section. It stops before anything else, so that undici can continue
 * there.
 */
export class PlainChunks {
  /**
   * How many bytes of the current chunk are still to come. -1: a size comes next. -2: the line end
   * after the data comes next.
   */
  #left = -1
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
        if (this.#left === 0) this.#left = -2
        continue
      }
      const lineAt = at
      if (this.#left === -2) {
        if (!isLineEnds(input, at, 2)) return { event: 'malformed', rest: nothing }
        if (at + 1 === input.length) break
        at += 2
        this.#left = -1
        continue
      }
      let size = 0
      let digit = hexadecimal(input[at])
      while (digit >= 0 && at - lineAt < maxSizeDigits) {
        size = size * 16 + digit
        at += 1
        digit = hexadecimal(input[at])
      }
      // The end of the line. After the last chunk also the empty line that ends the content.
      const ending = size === 0 ? 4 : 2
      if (at === lineAt || !isLineEnds(input, at, ending)) return { event: 'unusual', rest: input.subarray(lineAt) }
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

/** Whether the bytes that have arrived begin CR LF, or CR LF CR LF. */
function isLineEnds(input: Buffer, from: number, length: number): boolean {
  const end = Math.min(from + length, input.length)
  for (let at = from; at < end; at++)
    if (input[at] !== ((at - from) % 2 === 0 ? carriageReturn : lineFeed)) return false
  return true
}
