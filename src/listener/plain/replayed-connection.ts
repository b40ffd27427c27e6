import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { PlainRequest } from './plain-request.ts'

type Done = (error?: Error | null) => void

/** What a connection inside a connection needs of the outer one. */
interface Outer {
  /** Called when the inner connection cannot be used again. */
  readonly dropped: () => void
  /** Called when the last response was sent: closes the outer connection. */
  readonly close: () => void
}

/**
 * A connection inside a connection: Node's server reads from it the bytes of one plain request
 * after the other, and writes the responses to the client. So a request that needs the classes of
 * Node's server gets them, and the requests after it are plain again.
 */
export class ReplayedConnection extends Duplex {
  readonly #socket: Socket
  readonly #outer: Outer
  /** The request that it carries. */
  #req: PlainRequest | undefined
  /** Node's server listens to it. */
  isServed = false
  response: ServerResponse | undefined

  constructor(socket: Socket, outer: Outer) {
    super({ allowHalfOpen: true, emitClose: true })
    this.#socket = socket
    this.#outer = outer
    this.on('error', () => {})
  }

  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress
  }

  get encrypted(): boolean {
    return 'encrypted' in this.#socket
  }

  get bytesWritten(): number {
    return this.#socket.bytesWritten
  }

  /** How many bytes wait in it. */
  get heldBytes(): number {
    return this.readableLength + this.writableLength
  }

  /**
   * Node's server gets a request.
   * @param head without the empty line; a character is a byte
   */
  begin(head: string, req: PlainRequest): void {
    this.#req = req
    this.push(`${head}\r\n\r\n`, 'latin1')
    req.on('data', this.#onContent)
  }

  /**
   * Node's server has sent the response.
   * @param isRead its parser has read the whole request
   */
  finish(isRead: boolean): void {
    this.#req?.off('data', this.#onContent).resume()
    this.#req = undefined
    this.response = undefined
    // Node's parser would take the next request for the rest of the content. A connection that
    // ends stays open for a while, so that the client gets the response (`closeLater`).
    if (!isRead && !this.writableEnded) this.destroy()
  }

  setTimeout(): this {
    return this
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  destroySoon(): void {
    this.#outer.close()
  }

  override _read(): void {
    this.#req?.resume()
  }

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: Done): void {
    this.#socket.write(chunk, encoding, done)
  }

  override _writev(chunks: { readonly chunk: Buffer | string; readonly encoding: BufferEncoding }[], done: Done): void {
    this.#socket.cork()
    for (const [index, { chunk, encoding }] of chunks.entries())
      this.#socket.write(chunk, encoding, index === chunks.length - 1 ? done : undefined)
    this.#socket.uncork()
  }

  override _final(done: Done): void {
    this.#socket.end()
    done()
  }

  override _destroy(error: Error | null, done: Done): void {
    this.#outer.dropped()
    if (this.#req !== undefined || this.writableEnded) this.#socket.destroy()
    done(error)
  }

  readonly #onContent = (part: Buffer): void => {
    if (!this.push(part)) this.#req?.pause()
  }
}
