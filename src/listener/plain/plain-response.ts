import { EventEmitter } from 'node:events'
import type { Duplex } from 'node:stream'
import type { ClientMessage, ClientReply } from '../../http/client-messages.ts'
import { reasonPhrase } from '../../http/response.ts'
import { fieldLine, isFieldValue } from '../../wire/fields.ts'
import { shortBytes } from '../../wire/read-buffers.ts'
import { chunk, type Wrapped, writeLent, writeWrapped } from '../../wire/writes.ts'

/** What a response needs of its connection. */
export interface ResponseConnection {
  readonly socket: Duplex
  /** The fields of a response that keeps the connection open, behind the CRLF before them. */
  readonly keepAliveFields: string
  /** A further request may follow on the connection. */
  readonly mayContinue: boolean
  /** The response was handed to the operating system completely. */
  responded(): void
}

/** How the end of the content is marked. */
type Framing = 'length' | 'chunked' | 'none'

const noFields: readonly string[] = []

/**
 * The response to a plain request. It has the fields and the framing that Node's `ServerResponse`
 * would have, and is written with as few writes as possible. It never emits `error`, because the
 * connection handles the errors of its socket.
 */
export class PlainResponse extends EventEmitter implements ClientReply {
  statusCode = 200
  headersSent = false
  writableFinished = false
  chunkedEncoding = false
  destroyed = false
  /** `null` after the response was sent completely. */
  socket: Duplex | null
  readonly copiesShortParts = true
  /** Whether the connection stays open afterwards. */
  shouldKeepAlive = true
  #connection: ResponseConnection | undefined
  readonly req: ClientMessage
  /** Fields that were set one by one: values by lower-case name. */
  #fields: Map<string, [name: string, values: string[]]> | undefined
  /** The head that has not been written yet. */
  #head: string | undefined
  #framing: Framing = 'none'
  #trailers = ''
  #hasEnded = false

  constructor(connection: ResponseConnection, req: ClientMessage) {
    super()
    this.#connection = connection
    this.socket = connection.socket
    this.req = req
  }

  get writableNeedDrain(): boolean {
    return this.#connection?.socket.writableNeedDrain === true
  }

  setHeader(name: string, value: string | number | readonly string[]): this {
    const values = [value].flat().map(String)
    for (const each of values) checkedLine(name, each)
    this.#fields ??= new Map()
    this.#fields.set(name.toLowerCase(), [name, values])
    return this
  }

  appendHeader(name: string, value: string | readonly string[]): this {
    const [, earlier = []] = this.#fields?.get(name.toLowerCase()) ?? []
    return this.setHeader(name, [...earlier, ...[value].flat()])
  }

  writeHead(status: number, message?: string | string[], fields?: string[]): this {
    const statusMessage = typeof message === 'string' ? message : reasonPhrase(status)
    const received = (typeof message === 'string' ? fields : message) ?? noFields
    this.statusCode = status
    const own = this.#fields && [...this.#fields.values()]
    // The fields that were set one by one come first.
    const first = own?.flatMap(([name, values]) => values.flatMap((value) => [name, value]))
    this.#head = this.#headText(status, statusMessage, first === undefined ? received : [...first, ...received])
    this.headersSent = true
    return this
  }

  #headText(status: number, statusMessage: string, fields: readonly string[]): string {
    if (!isFieldValue(statusMessage)) throw new TypeError('invalid reason phrase')
    this.shouldKeepAlive &&= this.#connection?.mayContinue === true
    let text = `HTTP/1.1 ${status} ${statusMessage}`
    let [hasDate, hasLength, hasConnection] = [false, false, false]
    for (let at = 0; at < fields.length; at += 2) {
      const name = fields[at] as string
      const value = fields[at + 1] as string
      text += checkedLine(name, value)
      if (name.length === 4) hasDate ||= name.toLowerCase() === 'date'
      else if (name.length === 14) hasLength ||= name.toLowerCase() === 'content-length'
      else if (name.length === 10 && name.toLowerCase() === 'connection') {
        hasConnection = true
        this.shouldKeepAlive &&= !/\bclose\b/i.test(value)
      }
    }
    if (!hasDate) text += dateField()
    const hasContent = this.req.method !== 'HEAD' && status !== 204 && status !== 304
    if (hasLength) this.#framing = hasContent ? 'length' : 'none'
    else if (hasContent) {
      this.#framing = 'chunked'
      this.chunkedEncoding = true
    }
    if (!hasConnection)
      text += this.shouldKeepAlive ? (this.#connection?.keepAliveFields ?? '') : '\r\nConnection: close'
    return this.chunkedEncoding ? `${text}\r\nTransfer-Encoding: chunked\r\n\r\n` : `${text}\r\n\r\n`
  }

  /**
   * The memory of a short part may be used again when the method has returned.
   * @returns `false` when the client is behind, until the next `drain`
   */
  write(part: Buffer, written?: (error?: Error | null) => void): boolean {
    const socket = this.#connection?.socket
    if (socket === undefined || this.#hasEnded || this.destroyed) {
      written?.(new Error('the response has ended'))
      return true
    }
    if (this.#framing === 'none' || part.length === 0) {
      written?.()
      return true
    }
    const wrapped = this.#wrap(part)
    return part.length <= shortBytes ? writeWrapped(socket, wrapped, written) : writeLent(socket, wrapped, written)
  }

  /** Content with the head, if that has not been written yet, and with its framing. */
  #wrap(bytes: Buffer, end?: string): Wrapped {
    const head = this.#takeHead()
    return this.chunkedEncoding ? chunk(head, bytes, end) : { before: head, bytes, after: '' }
  }

  flushHeaders(): void {
    if (this.#head !== undefined) this.#connection?.socket.write(this.#takeHead(), 'latin1')
  }

  addTrailers(fields: readonly [name: string, value: string][]): void {
    for (const [name, value] of fields) {
      this.#trailers += checkedLine(name, value)
    }
  }

  /** The memory of a short part may be used again when the method has returned. */
  end(last?: Buffer | string): this {
    const connection = this.#connection
    if (connection === undefined || this.#hasEnded) return this
    this.#hasEnded = true
    if (!this.headersSent) this.writeHead(this.statusCode)
    const end = this.chunkedEncoding ? `0${this.#trailers}\r\n\r\n` : ''
    if (last === undefined || last.length === 0 || this.#framing === 'none') {
      connection.socket.write(this.#takeHead() + end, 'latin1', this.#onWritten)
      return this
    }
    const bytes = typeof last === 'string' ? Buffer.from(last) : last
    writeWrapped(connection.socket, this.#wrap(bytes, end), this.#onWritten)
    return this
  }

  writeContinue(): void {
    this.#writeInterim('HTTP/1.1 100 Continue\r\n\r\n')
  }

  /** RFC 2518 §10.1. */
  writeProcessing(): void {
    this.#writeInterim('HTTP/1.1 102 Processing\r\n\r\n')
  }

  /** RFC 8297. */
  writeEarlyHints({ link }: { readonly link: string[] }): void {
    const line = fieldLine('Link', link.join(', '))
    if (line !== undefined) this.#writeInterim(`HTTP/1.1 103 Early Hints${line}\r\n\r\n`)
  }

  #writeInterim(text: string): void {
    if (!this.headersSent) this.#connection?.socket.write(text, 'latin1')
  }

  /** Closes the connection. */
  destroy(): this {
    this.#connection?.socket.destroy()
    return this
  }

  /** The connection was closed before the response was sent completely. */
  closed(): void {
    if (this.destroyed || this.#connection === undefined) return
    this.destroyed = true
    this.emit('close')
  }

  readonly #onWritten = (error?: Error | null): void => {
    const connection = this.#connection
    if (connection === undefined || this.destroyed || error) return
    this.writableFinished = true
    this.#connection = undefined
    this.socket = null
    this.destroyed = true
    this.emit('close')
    connection.responded()
  }

  #takeHead(): string {
    const head = this.#head ?? ''
    this.#head = undefined
    return head
  }
}

/**
 * See {@link fieldLine}.
 * @throws {TypeError} with the code that Node.js has for an invalid value
 */
export function checkedLine(name: string, value: string): string {
  const line = fieldLine(name, value)
  if (line === undefined)
    throw Object.assign(new TypeError(`the field ${JSON.stringify(name)} has an invalid name or value`), {
      code: 'ERR_INVALID_CHAR',
    })
  return line
}

let text = ''
let second = 0

/** The `Date` field of a response (RFC 9110 §6.6.1), behind the CRLF of the line before. */
function dateField(): string {
  const now = Math.floor(Date.now() / 1000)
  if (now !== second) {
    second = now
    text = `\r\nDate: ${new Date(now * 1000).toUTCString()}`
  }
  return text
}
