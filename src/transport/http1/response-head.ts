import { type KnownField, KnownFields, ownText, withoutSpaceAround } from '../../wire/fields.ts'

/** The longest response head, in bytes. */
export const maxHeadBytes = 64 * 1024

/** A response head that has only one possible meaning. */
export interface ResponseHead {
  /** A final status, 100 or 101. */
  readonly status: number
  readonly statusMessage: string
  /** Names and values in turn, in the order and case of the upstream; a character is a byte. */
  readonly fields: readonly string[]
  /** How many bytes of content follow, or that the content comes in chunks. */
  readonly content: number | 'chunked'
  /**
   * How long the upstream keeps the connection without a request, in ms. 0: the connection must not
   * be used again. `Infinity`: the upstream does not say.
   */
  readonly keepAliveMs: number
}

// Final responses of HTTP/1.1, 100 and 101. Field names are tokens, and there is no control
// character.
const statusLine = /^HTTP\/1\.1 (10[01]|[2-5]\d\d)(?: ([\t\x20-\x7e]*))?$/
const fieldName = /^[\w!#$%&'*+.^`|~-]+$/
const contentLength = /^\d{1,15}$/
const keepAliveTimeout = /(?:^|[,\s])timeout\s*=\s*"?(\d{1,6})/i

/**
 * The gateway closes a connection this long before the upstream does, in ms. Otherwise a request
 * could be sent while the upstream closes the connection.
 */
const keepAliveMarginMs = 1_000

/**
 * Reads a response head: the bytes before `headEnd`, which `headEndOf` has found. Returns
 * `undefined` for a head that is not plain, which is not necessarily invalid. A plain head follows
 * the rules of RFC 9112 §4 to §6 for senders, and exactly one field says where the content ends.
 */
export function plainResponseHead(bytes: Buffer, headEnd: number, method: string): ResponseHead | undefined {
  const text = bytes.toString('latin1', 0, headEnd)
  let end = text.indexOf('\r\n')
  if (end === -1) end = text.length
  const line = statusLineIn(text, end)
  if (line === undefined) return undefined
  const { status, statusMessage } = line
  const fields: string[] = []
  let length: string | undefined
  let isChunked = false
  let keepAliveMs = Infinity
  let closes = false
  let field: KnownField<Meaning> | undefined

  while (end < text.length) {
    const start = end + 2
    end = text.indexOf('\r\n', start)
    if (end === -1) end = text.length
    field = knownFields.at(text, start, end, field)
    if (field === undefined) return undefined
    const value = withoutSpaceAround(text, start + field.beginning.length, end)
    fields.push(field.written, value)
    switch (field.facts) {
      case 'none':
        break
      case 'invalid':
        return undefined
      case 'connection':
        closes ||= /(?:^|[,\s])close(?:[,\s]|$)/i.test(value)
        break
      case 'keep-alive':
        keepAliveMs = keepAliveMsOf(value)
        break
      case 'content-length':
        if (length !== undefined || !contentLength.test(value)) return undefined
        length = value
        break
      case 'transfer-encoding':
        if (isChunked || value.toLowerCase() !== 'chunked') return undefined
        isChunked = true
    }
  }

  if (isChunked && length !== undefined) return undefined
  const isWithoutLength = status < 200 || status === 204
  if (isWithoutLength && (isChunked || length !== undefined)) return undefined
  const hasNoContent = isWithoutLength || method === 'HEAD' || status === 304
  const content = hasNoContent ? 0 : isChunked ? 'chunked' : length === undefined ? undefined : Number(length)
  if (content === undefined) return undefined
  // A connection is never used again after HEAD. Some upstreams send the content nevertheless, and
  // the next request would receive it.
  const isReusable = !closes && method !== 'HEAD' && !(hasNoContent && announcesContent(isChunked, length))
  return { status, statusMessage, fields, content, keepAliveMs: isReusable ? keepAliveMs : 0 }
}

interface StatusLine {
  readonly text: string
  readonly status: number
  readonly statusMessage: string
}

/** The last status line, because most responses have the same as the one before. */
let lastLine: StatusLine | undefined

function statusLineIn(head: string, end: number): StatusLine | undefined {
  if (lastLine?.text.length === end && head.startsWith(lastLine.text)) return lastLine
  const [text, code, statusMessage = ''] = statusLine.exec(ownText(head.slice(0, end))) ?? []
  if (text === undefined) return undefined
  lastLine = { text, status: Number(code), statusMessage }
  return lastLine
}

/**
 * Whether a response without content (to HEAD, 1xx, 204 or 304) announces content anyway. An
 * upstream may send that content later, and the next request on the connection would receive it as
 * its response (RFC 9112 §6.3, RFC 9110 §8.6).
 * @param contentLength the value of the field; `undefined` when there is none
 */
export function announcesContent(isChunked: boolean, contentLength: string | undefined): boolean {
  return isChunked || (contentLength !== undefined && !/^0+$/.test(contentLength))
}

const beginning = 'HTTP/1.1 '
/** A head that arrives in parts is read again with each part, so a longer head is not plain. */
const maxHeldBytes = 16 * 1024

/** Whether bytes without an empty line could be the beginning of a plain head. */
export function mayBecomePlain(bytes: Buffer): boolean {
  return bytes.length < maxHeldBytes && beginning.startsWith(bytes.toString('latin1', 0, beginning.length))
}

type Meaning = 'none' | 'invalid' | 'connection' | 'keep-alive' | 'content-length' | 'transfer-encoding'

const framing: ReadonlySet<string> = new Set<Meaning>([
  'connection',
  'keep-alive',
  'content-length',
  'transfer-encoding',
])

/** What a field says about the framing of the response. */
const knownFields = new KnownFields<Meaning>((written) => {
  const name = written.toLowerCase()
  if (framing.has(name)) return name as Meaning
  return fieldName.test(written) ? 'none' : 'invalid'
})

function keepAliveMsOf(keepAlive: string): number {
  const seconds = keepAliveTimeout.exec(keepAlive)?.[1]
  if (seconds === undefined) return Infinity
  return Math.max(Number(seconds) * 1000 - keepAliveMarginMs, 0)
}

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
