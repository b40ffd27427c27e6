import { createHash } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { constants, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { isHopByHop } from '../../core/header-fields.ts'
import type { SwitchingReply } from '../../http/client-messages.ts'
import { ByName } from '../../wire/fields.ts'
import { checkedLine } from '../plain/plain-response.ts'
import type { StreamRequest } from './stream-request.ts'

/**
 * The response to a request of HTTP/2. It has the fields of the one in HTTP/1.1, without those of a
 * connection (RFC 9113 §8.2.2), and no reason phrase.
 */
export class StreamResponse extends EventEmitter implements SwitchingReply {
  statusCode = 200
  headersSent = false
  writableFinished = false
  /** The content has no length, so a trailer section may follow. */
  chunkedEncoding = false
  readonly #stream: ServerHttp2Stream
  readonly #req: StreamRequest
  readonly #unreadMs: number
  /** Fields that were set one by one: names and values in turn. */
  #fields: string[] = []
  #trailers: readonly [string, string][] = []
  #hasContent = false
  #hasSwitched = false
  /** A trailer section, which may be empty, ends the stream. */
  #hasTrailers = false
  /** The head that is not sent yet: if no content follows, it ends the stream. */
  #head: OutgoingHttpHeaders | undefined
  #isClosed = false

  /** @param unreadMs how long a client may read nothing of a response that has ended, in ms */
  constructor(stream: ServerHttp2Stream, req: StreamRequest, unreadMs: number) {
    super()
    this.#unreadMs = unreadMs
    this.#stream = stream
    this.#req = req
    stream.on('drain', () => this.emit('drain'))
    stream.once('finish', () => {
      if (!this.#hasTrailers) setImmediate(() => this.#dropRest())
    })
    stream.once('close', () => this.#closed())
  }

  /** `null` after the response was sent completely. */
  get socket(): Socket | null {
    return this.writableFinished ? null : this.#req.socket
  }

  get destroyed(): boolean {
    return this.#isClosed
  }

  get writableNeedDrain(): boolean {
    return this.#stream.writableNeedDrain
  }

  setHeader(name: string, value: string | number | readonly string[]): this {
    const others = this.#fields.filter((_, at) => this.#fields[at - (at % 2)]?.toLowerCase() !== name.toLowerCase())
    this.#fields = others
    return this.appendHeader(name, value)
  }

  appendHeader(name: string, value: string | number | readonly string[]): this {
    for (const each of [value].flat()) this.#fields.push(name, String(each))
    return this
  }

  writeHead(status: number, message?: string | string[], fields?: string[]): this {
    if (status > maxStatus)
      throw Object.assign(new RangeError(`the status ${status} is invalid, and HTTP/2 does not transport it`), {
        code: 'ERR_HTTP_INVALID_STATUS_CODE',
      })
    const received = (typeof message === 'string' ? fields : message) ?? []
    const headers = headersOf(this.#fields.length === 0 ? received : [...this.#fields, ...received])
    headers[':status'] = status
    // RFC 9110 §15.3.6: a 205 has no content. A length would make the response malformed.
    if (status === 205) delete headers['content-length']
    this.#hasContent = this.#req.method !== 'HEAD' && status !== 204 && status !== 205 && status !== 304
    this.chunkedEncoding = this.#hasContent && headers['content-length'] === undefined
    this.statusCode = status
    this.headersSent = true
    this.#head = headers
    if (!this.#hasContent) this.#sendHead(true)
    return this
  }

  flushHeaders(): void {
    this.#sendHead(false)
  }

  /** @param isAll neither content nor trailers follow */
  #sendHead(isAll: boolean): void {
    const head = this.#head
    this.#head = undefined
    if (head === undefined || this.#stream.destroyed || this.#stream.closed) return
    this.#hasTrailers = this.chunkedEncoding && !isAll
    if (this.#hasTrailers) this.#stream.once('wantTrailers', () => this.#sendTrailers())
    const options = { endStream: isAll, waitForTrailers: this.#hasTrailers }
    send(head, (fields) => this.#stream.respond(fields, options))
  }

  write(part: Buffer, written?: (error?: Error | null) => void): boolean {
    this.#sendHead(false)
    if (this.#hasContent && part.length > 0) return this.#stream.write(part, written)
    written?.()
    return true
  }

  addTrailers(fields: readonly [string, string][]): void {
    this.#trailers = fields
  }

  end(last?: Buffer | string): this {
    if (!this.headersSent) this.writeHead(this.statusCode)
    // Clients of gRPC read a status in the head only when nothing follows (Trailers-Only).
    this.#sendHead((last === undefined || last.length === 0) && this.#trailers.length === 0)
    // A client that keeps its window closed must not hold the response forever (RFC 9113 §10.5).
    this.#stream.setTimeout(this.#unreadMs, () => this.destroy())
    if (!this.#hasContent || last === undefined) this.#stream.end()
    else this.#stream.end(last)
    return this
  }

  writeContinue(): void {
    this.#writeInterim({ ':status': 100 })
  }

  /** RFC 8297. */
  writeEarlyHints({ link }: { readonly link: string[] }): void {
    this.#writeInterim({ ':status': 103, ...headersOf(link.flatMap((value) => ['link', value])) })
  }

  #writeInterim(headers: OutgoingHttpHeaders): void {
    if (!this.headersSent && !this.#stream.destroyed && !this.#stream.closed) this.#stream.additionalHeaders(headers)
  }

  switchProtocols(fields: readonly string[], { accept }: { readonly accept: string }): boolean {
    const key = String(this.#req.headers['sec-websocket-key'])
    // RFC 6455 §4.2.2 (5).
    const expected = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
    if (accept !== expected || this.#stream.destroyed || this.#stream.closed) return false
    this.#hasSwitched = true
    this.headersSent = true
    const headers = { ...headersOf(fields), 'sec-websocket-accept': undefined, ':status': 200 }
    send(headers, (written) => this.#stream.respond(written))
    return true
  }

  /**
   * Closes the stream. The connection stays (RFC 9113 §5.4.2). The code is not CANCEL, because
   * clients that run on Node.js would take an incomplete response for a complete one.
   */
  destroy(): this {
    this.#stream.close(constants.NGHTTP2_INTERNAL_ERROR)
    this.#stream.destroy()
    return this
  }

  #sendTrailers(): void {
    send(headersOf(this.#trailers.flat()), (fields) => this.#stream.sendTrailers(fields))
    setImmediate(() => this.#dropRest())
  }

  /** The client need not send the rest of its request (RFC 9113 §8.1). */
  #dropRest(): void {
    if (this.#req.complete || this.#hasSwitched) return
    this.#req.resume()
    this.#stream.close(constants.NGHTTP2_NO_ERROR)
  }

  /**
   * Node.js may destroy a stream that has sent everything before it emits `finish`, and before the
   * last part counts as written. A stream that was closed before its end counts as aborted.
   */
  #closed(): void {
    const { rstCode, aborted } = this.#stream
    this.writableFinished = this.headersSent && rstCode === constants.NGHTTP2_NO_ERROR && !aborted
    this.#isClosed = true
    if (!this.#hasSwitched) this.emit('close')
  }
}

/** RFC 9110 §15. */
const maxStatus = 599

const knownFields = new ByName((written) => {
  const name = written.toLowerCase()
  return { name, endsHere: isHopByHop(name) }
})

/**
 * Fields by name, without those of a connection. The values of a repeated field are not joined,
 * because some fields have another meaning then (RFC 9110 §5.3).
 */
function headersOf(fields: readonly string[]): OutgoingHttpHeaders {
  const headers = Object.create(null) as Record<string, string | string[]>
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const value = fields[at + 1] as string
    checkedLine(fields[at] as string, value)
    const { name, endsHere } = knownFields.of(fields[at] as string)
    if (endsHere) continue
    const earlier = headers[name]
    headers[name] = earlier === undefined ? value : [earlier, value].flat()
  }
  return headers
}

/** Node.js 22 rejects some fields that are repeated. It gets their values as one. */
function send(headers: OutgoingHttpHeaders, write: (headers: OutgoingHttpHeaders) => void): void {
  try {
    write(headers)
  } catch (error) {
    if (!(error instanceof TypeError && 'code' in error && error.code === 'ERR_HTTP2_HEADER_SINGLE_VALUE')) throw error
    const joined = Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) && name !== 'set-cookie' ? value.join(', ') : value,
    ])
    write(Object.assign(Object.create(null), Object.fromEntries(joined)))
  }
}
