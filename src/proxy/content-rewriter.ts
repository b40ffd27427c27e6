import { Transform, type TransformCallback } from 'node:stream'
import zlib from 'node:zlib'
import { GatewayError } from '../core/errors.ts'
import { AddressStream, type AddressText, type TextStream } from '../http/address-text.ts'
import type { SwitchedConnection, ExchangeControl, RawFields, ResponseHandler } from '../transport/transport.ts'
import type { GiveBack } from '../wire/read-buffers.ts'
import { type Compression, isCompressed, varyingByCoding } from './compression.ts'
import { allowsNotice, fieldValue, isHtmlPage, LineInHead, type SessionNotice } from './session-notice.ts'

/** Why the content of a response is passed on unchanged, although its type is rewritten. */
export type SkipReason = 'range' | 'no_transform' | 'charset' | 'coding' | 'policy'

export interface ContentRewriterParts {
  /** The addresses that are replaced in HTML, CSS and JSON. */
  readonly addresses: AddressText | undefined
  /** What is added to HTML pages. */
  readonly notice: SessionNotice | undefined
  /** Absent: content keeps its coding. */
  readonly compression?: Compression | undefined
  /** The response has no content, because the method is HEAD. */
  readonly isHead: boolean
  readonly onSkip: (reason: SkipReason) => void
}

interface Rewritten {
  readonly fields: RawFields
  /** The content coding of the upstream. */
  readonly decoding?: Coding | undefined
  /** The content coding for the client. */
  readonly encoding?: Coding | undefined
  readonly changes: readonly TextStream[]
}

/** A content coding (RFC 9110 §8.4.1). */
interface Coding {
  readonly decodeAll: (bytes: Buffer, options: { readonly maxOutputLength: number }) => Buffer
  readonly decoder: () => Transform
  readonly encoder: () => Transform
}

const { constants } = zlib
/** The window bounds the memory of an encoder. In powers of two bytes. */
const windowBits = 18

// Encoders pass on each part as it arrives, because an application may send a page in parts.
const gzip: Coding = {
  decodeAll: zlib.gunzipSync,
  decoder: () => zlib.createGunzip(),
  encoder: () => zlib.createGzip({ flush: constants.Z_SYNC_FLUSH }),
}

const codings: ReadonlyMap<string, Coding> = new Map([
  ['gzip', gzip],
  ['x-gzip', gzip],
  [
    'deflate',
    {
      decodeAll: zlib.inflateSync,
      decoder: () => zlib.createInflate(),
      encoder: () => zlib.createDeflate({ flush: constants.Z_SYNC_FLUSH }),
    },
  ],
  [
    'br',
    {
      decodeAll: zlib.brotliDecompressSync,
      decoder: () => zlib.createBrotliDecompress(),
      encoder: () =>
        zlib.createBrotliCompress({
          flush: constants.BROTLI_OPERATION_FLUSH,
          // The default quality, 11, is for files that are compressed once.
          params: { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_LGWIN]: windowBits },
        }),
    },
  ],
  // Node.js has Zstandard from version 22.15 on.
  ...(typeof zlib.createZstdDecompress === 'function'
    ? ([
        [
          'zstd',
          {
            decodeAll: zlib.zstdDecompressSync,
            decoder: () => zlib.createZstdDecompress(),
            encoder: () =>
              zlib.createZstdCompress({
                flush: constants.ZSTD_e_flush,
                params: { [constants.ZSTD_c_windowLog]: windowBits },
              }),
          },
        ],
      ] as const)
    : []),
])

/**
 * Removes from `Accept-Encoding` the codings that the gateway cannot decode.
 * @param fields names and values in turn
 */
export function withKnownCodings(fields: readonly string[]): string[] {
  return fields.map((value, at) => {
    if (at % 2 === 0 || fields[at - 1]?.toLowerCase() !== 'accept-encoding') return value
    const known = value.split(',').filter((part) => {
      const coding = part.split(';')[0]?.trim().toLowerCase() ?? ''
      return coding === 'identity' || codings.has(coding)
    })
    return known.length === 0 ? 'identity' : known.map((part) => part.trim()).join(', ')
  })
}

/**
 * Content without its coding; `undefined` when it cannot be decoded, or is longer than `maxBytes`.
 */
export function decodedContent(fields: RawFields, content: Buffer, maxBytes: number): Buffer | undefined {
  const coding = fieldValue(fields, 'content-encoding').trim().toLowerCase()
  if (coding === '' || coding === 'identity' || content.length === 0) return content
  try {
    return codings.get(coding)?.decodeAll(content, { maxOutputLength: maxBytes })
  } catch {
    return undefined
  }
}

/**
 * Rewrites the content of a response: decodes it, replaces addresses, adds the line of the notice,
 * and encodes it again. Compresses content without a coding. Holds a part of the content at a time,
 * and reads no faster than the client. A response with a content coding begins when the first part
 * is decoded, so that content that cannot be decoded becomes a 502.
 */
export class ContentRewriter implements ResponseHandler, ExchangeControl {
  readonly #handler: ResponseHandler
  readonly #parts: ContentRewriterParts
  #control: ExchangeControl | undefined
  /** From the content of the upstream to that for the client; empty before there is content. */
  #streams: readonly Transform[] = []
  #rewritten: Rewritten | undefined
  /** Passes on the head of the response, which waits for the first part. */
  #begin: (() => void) | undefined
  #trailers: RawFields = []
  #isOver = false

  constructor(handler: ResponseHandler, parts: ContentRewriterParts) {
    this.#handler = handler
    this.#parts = parts
  }

  onSend(control: ExchangeControl): boolean {
    this.#control = control
    return this.#handler.onSend(this)
  }

  pause(): void {
    if (this.#last === undefined) this.#control?.pause()
    else this.#last.pause()
  }

  resume(): void {
    if (this.#last === undefined) this.#control?.resume()
    else this.#last.resume()
  }

  abort(reason: Error): void {
    this.#destroy()
    this.#control?.abort(reason)
  }

  onResponse(status: number, statusMessage: string, fields: RawFields): void {
    const response = status < 200 ? undefined : this.#read(status, fields)
    if (response === undefined) {
      this.#handler.onResponse(status, statusMessage, fields)
      return
    }
    const begin = () => this.#handler.onResponse(status, statusMessage, response.fields)
    const isSame = response.changes.length === 0 && response.encoding === undefined
    if (isSame || this.#parts.isHead || status === 304 || status === 204) {
      begin()
      return
    }
    this.#rewritten = response
    if (response.decoding === undefined) begin()
    else this.#begin = begin
  }

  onShortPart(part: Buffer): void {
    if (this.#rewritten === undefined) this.#handler.onShortPart(part)
    else this.#write(Buffer.from(part))
  }

  onContent(part: Buffer, giveBack: GiveBack): void {
    if (this.#rewritten === undefined) this.#handler.onContent(part, giveBack)
    else this.#write(part, giveBack)
  }

  onEnd(trailers: RawFields): void {
    this.#trailers = trailers
    // The field says that the content has a coding, and in each coding there is something.
    const { decoding, encoding } = this.#rewritten ?? {}
    if (this.#first === undefined && decoding === undefined && encoding !== undefined)
      this.#start(this.#rewritten as Rewritten)
    // A response with a content coding may be empty, such as a redirect. No decoder accepts that.
    if (this.#first === undefined) this.#pass(() => this.#handler.onEnd(trailers))
    else this.#first.end()
  }

  onSwitch(connection: SwitchedConnection, fields: RawFields): void {
    this.#handler.onSwitch(connection, fields)
  }

  onError(error: GatewayError): void {
    if (this.#isOver) return
    this.#destroy()
    this.#handler.onError(error)
  }

  onDone(): void {
    this.#handler.onDone()
  }

  get #first(): Transform | undefined {
    return this.#streams[0]
  }

  get #last(): Transform | undefined {
    return this.#streams.at(-1)
  }

  /** How a response is rewritten or compressed; `undefined` if it is neither. */
  #read(status: number, fields: RawFields): Rewritten | undefined {
    const changed = this.#readChanges(status, fields)
    const { compression, isHead } = this.#parts
    if (compression === undefined || changed?.decoding !== undefined) return changed
    if (!isCompressed(compression, status, fields)) return changed
    const coding = isHead ? undefined : compression.accepted.find((each) => codings.has(each))
    const changes = changed?.changes ?? []
    if (coding === undefined) return { fields: varyingByCoding(changed?.fields ?? fields), changes }
    const compressed = [...fieldsOfRewritten(fields), 'Content-Encoding', coding]
    return { fields: varyingByCoding(compressed), encoding: codings.get(coding), changes }
  }

  #readChanges(status: number, fields: RawFields): Rewritten | undefined {
    const { addresses, notice, onSkip } = this.#parts
    const type = fieldValue(fields, 'content-type')
    const isPage = notice !== undefined && isHtmlPage(fields)
    const hasNotice = isPage && allowsNotice(fields, notice)
    if (isPage && !hasNotice) onSkip('policy')
    const changes = [
      ...(addresses !== undefined && isRewritten(type) ? [new AddressStream(addresses)] : []),
      ...(hasNotice ? [new LineInHead(notice.line)] : []),
    ]
    if (changes.length === 0) return undefined
    const coding = fieldValue(fields, 'content-encoding').trim().toLowerCase()
    const isPlain = coding === '' || coding === 'identity'
    const skip = skipReason(status, fields, type) ?? (isPlain || codings.has(coding) ? undefined : 'coding')
    if (skip !== undefined) {
      onSkip(skip)
      return undefined
    }
    const known = codings.get(coding)
    return { fields: fieldsOfRewritten(fields), decoding: known, encoding: known, changes }
  }

  #start({ decoding, encoding, changes }: Rewritten): void {
    const streams = [
      ...(decoding === undefined ? [] : [decoding.decoder()]),
      ...(changes.length === 0 ? [] : [new Rewriting(changes)]),
      ...(encoding === undefined ? [] : [encoding.encoder()]),
    ]
    this.#streams = streams
    for (const [at, stream] of streams.entries()) {
      stream.on('error', (error) => this.#fail(error))
      const next = streams[at + 1]
      if (next !== undefined) stream.pipe(next)
    }
    // `#write` has paused the upstream while this stream was full.
    streams[0]?.on('drain', () => this.#control?.resume())
    const last = streams.at(-1)
    last?.on('data', (part: Buffer) => this.#pass(() => this.#handler.onContent(part, ignore)))
    last?.on('end', () => this.#pass(() => this.#handler.onEnd(this.#trailers)))
  }

  #write(part: Buffer, giveBack?: GiveBack): void {
    if (this.#isOver) return giveBack?.()
    if (this.#first === undefined && this.#rewritten !== undefined) this.#start(this.#rewritten)
    const isTaken = this.#first?.write(part, giveBack)
    if (isTaken === false) this.#control?.pause()
  }

  /** Passes on output of the streams. The head of the response comes first. */
  #pass(pass: () => void): void {
    if (this.#isOver) return
    try {
      this.#begin?.()
      this.#begin = undefined
      pass()
    } catch (error) {
      this.#fail(error)
    }
  }

  #fail(error: unknown): void {
    if (this.#isOver) return
    this.#destroy()
    const failure =
      error instanceof GatewayError
        ? error
        : new GatewayError('ERR_UPSTREAM_RESPONSE', `the content of the response cannot be decoded: ${String(error)}`)
    this.#handler.onError(failure)
    this.#control?.abort(failure)
  }

  #destroy(): void {
    this.#isOver = this.#rewritten !== undefined
    for (const stream of this.#streams) stream.destroy()
  }
}

/** Changes a stream of content without a content coding. */
class Rewriting extends Transform {
  readonly #changes: readonly TextStream[]
  /** What has arrived, until it is long enough to show whether the content can be read. */
  #beginning = ''
  #isUnreadable: boolean | undefined

  constructor(changes: readonly TextStream[]) {
    super()
    this.#changes = changes
  }

  override _transform(part: Buffer, _: BufferEncoding, done: TransformCallback): void {
    // The memory of the part is used again after `done`, and the copy may wait for the client.
    if (this.#isUnreadable === true) return done(null, Buffer.from(part))
    let text = part.toString('latin1')
    if (this.#isUnreadable === undefined) {
      this.#beginning += text
      if (this.#beginning.length < utf16MarkBytes) return done()
      text = this.#beginning
      this.#isUnreadable = isUtf16(text)
    }
    const changed = this.#isUnreadable ? text : this.#changes.reduce((whole, change) => change.next(whole), text)
    done(null, Buffer.from(changed, 'latin1'))
  }

  override _flush(done: TransformCallback): void {
    if (this.#isUnreadable === true) return done()
    const beginning = this.#isUnreadable === undefined ? this.#beginning : ''
    const rest = this.#changes.reduce((whole, change) => change.next(whole) + change.end(), beginning)
    done(null, Buffer.from(rest, 'latin1'))
  }
}

/** HTML, CSS and JSON. */
function isRewritten(contentType: string): boolean {
  return /^\s*(?:text\/html|application\/xhtml\+xml|text\/css|application\/(?:[\w.+-]+\+)?json)\s*(?:;|$)/i.test(
    contentType,
  )
}

function skipReason(status: number, fields: RawFields, contentType: string): SkipReason | undefined {
  // Rewriting changes the length of the content, so the range would name another part of it.
  if (status === 206) return 'range'
  // RFC 9111 §5.2.2.6.
  if (/(?:^|[\s,])no-transform(?:$|[\s,])/i.test(fieldValue(fields, 'cache-control'))) return 'no_transform'
  // In these charsets, a byte below 128 is not always an ASCII character.
  return /;\s*charset\s*=[\s"]*(?:utf-?16|utf-?32|utf-7|ucs-|iso-2022)/i.test(contentType) ? 'charset' : undefined
}

/**
 * Removes the fields that do not describe the rewritten content. The entity tag becomes weak,
 * because the content depends on the configuration too (RFC 9110 §8.8.1).
 */
function fieldsOfRewritten(fields: RawFields): RawFields {
  const kept: string[] = []
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [name, value] = [fields[at] as string, fields[at + 1] as string]
    const lowerCase = name.toLowerCase()
    if (wrongForOther.has(lowerCase)) continue
    const isTag = lowerCase === 'etag' && value.startsWith('"')
    kept.push(name, isTag ? `W/${value}` : value)
  }
  return kept
}

const wrongForOther: ReadonlySet<string> = new Set([
  'content-length',
  'accept-ranges',
  'content-md5',
  'digest',
  'content-digest',
  'repr-digest',
])

/** The length of the mark at the beginning of UTF-16 content, in bytes. */
const utf16MarkBytes = 2

function isUtf16(text: string): boolean {
  return text.startsWith('\xfe\xff') || text.startsWith('\xff\xfe')
}

function ignore(): void {}
