import { announcesContent } from '../undici/responses-without-content.ts'

/** So long may an answer's head be, in bytes. */
export const maxHeadBytes = 64 * 1024

/** The head of an answer that can be read in one way only. */
export interface AnswerHead {
  /** A final one: 200 to 599. */
  readonly status: number
  readonly statusMessage: string
  /** Name and value in turn, in the order and case of the upstream; a character is a byte. */
  readonly lines: readonly string[]
  /** How many bytes of content follow, or that they come in chunks. */
  readonly content: number | 'chunked'
  /**
   * How long the upstream lets the connection be kept without a request, in ms; 0: not at all,
   * `Infinity`: it does not say.
   */
  readonly keepAliveMs: number
}

// Nothing but final answers of HTTP/1.1, fields with a token for a name, and no control character
// anywhere.
const statusLine = /^HTTP\/1\.1 ([2-5]\d\d)(?: ([\t\x20-\x7e]*))?$/
const fieldName = /^[\w!#$%&'*+.^`|~-]+$/
const control = /[^\t\x20-\x7e\x80-\xff]/
const contentLength = /^\d{1,15}$/
const keepAliveTimeout = /(?:^|[,\s])timeout\s*=\s*"?(\d{1,6})/i

/**
 * So much earlier than the upstream we let go, or a request may meet a connection that is being
 * closed.
 */
export const keepAliveMarginMs = 1_000

/**
 * Reads an answer's head, without the empty line at its end. `undefined`: it is none of the plain
 * ones, and somebody else has to read it; it is not necessarily wrong. Plain is what RFC 9112 §4 to
 * §6 asks a sender for, with the length of the content known from exactly one field.
 */
export function plainAnswerHead(text: string, method: string): AnswerHead | undefined {
  const fields = text.split('\r\n')
  const [, code, statusMessage = ''] = statusLine.exec(fields[0] as string) ?? []
  if (code === undefined) return undefined
  const status = Number(code)
  const lines: string[] = []
  let length: string | undefined
  let isChunked = false
  let keepAliveMs = Infinity
  let closes = false

  for (let at = 1; at < fields.length; at++) {
    const field = fields[at] as string
    const colon = field.indexOf(':')
    const name = field.slice(0, Math.max(colon, 0))
    const value = withoutSpaceAround(field, colon + 1)
    if (control.test(value)) return undefined
    lines.push(name, value)
    switch (meaningOf(name)) {
      case 'none':
        break
      case 'no name':
        return undefined
      case 'connection':
        closes ||= /(?:^|[,\s])close(?:[,\s]|$)/i.test(value)
        break
      case 'keep-alive':
        keepAliveMs = keptFor(value)
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
  const hasNone = method === 'HEAD' || status === 204 || status === 304
  if (hasNone && status === 204 && (isChunked || length !== undefined)) return undefined
  const content = hasNone ? 0 : isChunked ? 'chunked' : length === undefined ? undefined : Number(length)
  if (content === undefined) return undefined
  // Not after HEAD at all: some upstreams send content after the response, when the connection
  // serves another request already.
  const isReusable = !closes && method !== 'HEAD' && !(hasNone && announcesContent(isChunked, length))
  return { status, statusMessage, lines, content, keepAliveMs: isReusable ? keepAliveMs : 0 }
}

const beginning = 'HTTP/1.1 '
/** A head that arrives in parts is read again with each. */
const mostHeldBytes = 16 * 1024
const controlButLineEnds = /[^\t\r\n\x20-\x7e\x80-\xff]/

/** Whether what has arrived could be the beginning of a plain head. */
export function mayBecomePlain(text: string): boolean {
  const start = text.slice(0, beginning.length)
  return (
    text.length < mostHeldBytes &&
    beginning.startsWith(start) &&
    !controlButLineEnds.test(text) &&
    !/(?:^|[^\r])\n/.test(text)
  )
}

type Meaning = 'none' | 'no name' | 'connection' | 'keep-alive' | 'content-length' | 'transfer-encoding'

const framing: ReadonlySet<string> = new Set<Meaning>([
  'connection',
  'keep-alive',
  'content-length',
  'transfer-encoding',
])
/** By the name as it was written; upstreams use few of them. */
const meanings = new Map<string, Meaning>()
const mostMeanings = 1024

/** What a field says about the framing of the answer. */
function meaningOf(name: string): Meaning {
  const known = meanings.get(name)
  if (known !== undefined) return known
  const lowerCase = name.toLowerCase()
  const meaning = framing.has(lowerCase) ? (lowerCase as Meaning) : fieldName.test(name) ? 'none' : 'no name'
  if (meanings.size < mostMeanings) meanings.set(name, meaning)
  return meaning
}

function keptFor(keepAlive: string): number {
  const seconds = keepAliveTimeout.exec(keepAlive)?.[1]
  if (seconds === undefined) return Infinity
  return Math.max(Number(seconds) * 1000 - keepAliveMarginMs, 0)
}

/**
 * Spaces and tabs only (RFC 9110 §5.6.3): `trim` takes a no-break space, too, which is a byte of
 * somebody's text.
 */
function withoutSpaceAround(text: string, from: number): string {
  let start = from
  let end = text.length
  while (start < end && isSpace(text.charCodeAt(start))) start += 1
  while (end > start && isSpace(text.charCodeAt(end - 1))) end -= 1
  return text.slice(start, end)
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09
}
