import { constants, type ServerHttp2Stream } from 'node:http2'
import { Duplex } from 'node:stream'
import type { StreamRequest } from './stream-request.ts'

/** A stream that carries another protocol (RFC 8441 §5), with what a tunnel uses of a socket. */
export class TunnelStream extends Duplex {
  readonly #stream: ServerHttp2Stream
  readonly #req: StreamRequest
  #isReading = false
  bytesWritten = 0

  constructor(stream: ServerHttp2Stream, req: StreamRequest) {
    super({ allowHalfOpen: true })
    this.#stream = stream
    this.#req = req
    stream.once('close', () => this.destroy())
  }

  override _read(): void {
    if (this.#isReading) return void this.#req.resume()
    this.#isReading = true
    this.#req.on('data', (part: Buffer) => {
      if (!this.push(part)) this.#req.pause()
    })
    this.#req.on('end', () => this.push(null))
  }

  override _write(part: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.bytesWritten += part.length
    this.#stream.write(part, done)
  }

  override _final(done: () => void): void {
    this.#stream.end(done)
  }

  /** The end of a TCP connection that both sides have ended, or else its reset (RFC 8441 §5). */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#stream.close(this.writableFinished ? constants.NGHTTP2_NO_ERROR : constants.NGHTTP2_CANCEL)
    done(error)
  }

  destroySoon(): void {
    if (this.writableFinished) return void this.destroy()
    this.once('finish', () => this.destroy())
    this.end()
  }

  setTimeout(ms: number, onTimeout: () => void): this {
    this.#stream.setTimeout(ms, onTimeout)
    return this
  }

  /** The connection has other streams, and its own options. */
  setKeepAlive(): this {
    return this
  }

  setNoDelay(): this {
    return this
  }
}
