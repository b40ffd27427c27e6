import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'

type Done = (error?: Error | null) => void

/**
 * The connection of a client that sends nothing more, for Node's server: it reads the last bytes
 * of the client from it, and writes its responses to the client. No bytes can be put back into a
 * socket that has ended.
 */
export class EndedConnection extends Duplex {
  readonly #socket: Socket

  constructor(socket: Socket, lastBytes: Buffer) {
    super({ allowHalfOpen: true })
    this.#socket = socket
    this.on('error', () => {})
    this.push(lastBytes)
    this.push(null)
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
    this.#socket.destroySoon()
  }

  override _read(): void {}

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: Done): void {
    this.#socket.write(chunk, encoding, done)
  }

  override _final(done: Done): void {
    this.#socket.end()
    done()
  }

  override _destroy(error: Error | null, done: Done): void {
    if (this.writableEnded) this.#socket.destroy()
    else this.#socket.destroySoon()
    done(error)
  }
}
