import { Readable } from 'node:stream'
import type { ClientMessage, ClientReply } from './client-messages.ts'

export interface RequestBodyInput {
  readonly req: ClientMessage
  readonly res: ClientReply
  readonly idleTimeoutMs: number
  /** The minimum rate in bytes per second, averaged over `idleTimeoutMs`. 0: none. */
  readonly bytesPerSecond: number
  /** The client has sent nothing, or too little, for `idleTimeoutMs`. */
  readonly onStall: () => void
  /** A part has arrived. */
  readonly onPart: () => void
}

/** Whether a request has content (RFC 9112 §6.3). */
export function hasBody({ headers }: Pick<ClientMessage, 'headers'>): boolean {
  if (headers['transfer-encoding'] !== undefined) return true
  const contentLength = headers['content-length']
  return contentLength !== undefined && Number(contentLength) !== 0
}

/**
 * Sends "100 Continue" if the client waits for it (RFC 9110 §10.1.1). Call it just before the
 * content is read. HTTP/1.0 has no interim responses.
 */
export function continueIfExpected(req: ClientMessage, res: ClientReply): void {
  if (req.httpVersionMinor > 0 && /^100-continue$/i.test(req.headers.expect ?? '')) res.writeContinue()
}

/**
 * The content of a request on its way to the upstream. It is a separate stream, because the
 * connection to the client must stay usable when the upstream needs no more content.
 */
export class RequestBody extends Readable {
  readonly #input: RequestBodyInput
  #timer: NodeJS.Timeout | undefined
  #hasBegun = false
  /**
   * How many bytes must arrive before the timer starts again. Otherwise a client could hold a
   * connection to the upstream without limit by sending a byte now and then.
   */
  readonly #portion: number
  #due: number

  constructor(input: RequestBodyInput) {
    super({ highWaterMark: 64 * 1024 })
    this.#input = input
    this.#portion = (input.bytesPerSecond * input.idleTimeoutMs) / 1000
    this.#due = this.#portion
    // The failure is reported elsewhere, and an error without a listener ends the process.
    this.on('error', () => {})
  }

  /** The upstream wants more, and the client has not sent it. */
  get awaitsClient(): boolean {
    return this.#hasBegun && !this.#input.req.readableEnded && !this.#input.req.isPaused()
  }

  override _read(): void {
    const { req } = this.#input
    if (!this.#hasBegun) this.#begin()
    else if (req.isPaused()) {
      req.resume()
      this.#timer?.refresh()
    }
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    clearTimeout(this.#timer)
    const { req } = this.#input
    req.off('data', this.#part)
    req.off('end', this.#end)
    callback(error)
  }

  #begin(): void {
    const { req, res, idleTimeoutMs, onStall } = this.#input
    this.#hasBegun = true
    continueIfExpected(req, res)
    if (idleTimeoutMs > 0)
      this.#timer = setTimeout(() => {
        if (this.awaitsClient) onStall()
      }, idleTimeoutMs)
    req.on('data', this.#part)
    req.on('end', this.#end)
  }

  readonly #part = (chunk: Buffer): void => {
    this.#input.onPart()
    this.#due -= chunk.length
    if (this.#due <= 0) {
      this.#due = this.#portion
      this.#timer?.refresh()
    }
    if (!this.push(chunk)) this.#input.req.pause()
  }

  readonly #end = (): void => {
    clearTimeout(this.#timer)
    this.#input.onPart()
    this.push(null)
  }
}
