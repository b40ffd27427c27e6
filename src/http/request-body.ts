import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'

export interface RequestBodyInput {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly idleTimeoutMs: number
  /** How much has to arrive, on average over `idleTimeoutMs`; 0: any. */
  readonly bytesPerSecond: number
  /** The client has sent nothing for `idleTimeoutMs`, or too little, although it was asked to. */
  readonly onStall: () => void
  /** A part has arrived. */
  readonly onPart: () => void
}

/** Whether a request has content (RFC 9112 §6.3). */
export function hasBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  if (headers['transfer-encoding'] !== undefined) return true
  const contentLength = headers['content-length']
  return contentLength !== undefined && Number(contentLength) !== 0
}

/**
 * When somebody is going to listen, and not before: RFC 9110 §10.1.1. Not to HTTP/1.0, which knows
 * no 1xx.
 */
export function continueIfExpected(req: IncomingMessage, res: ServerResponse): void {
  if (req.httpVersionMinor > 0 && /^100-continue$/i.test(req.headers.expect ?? '')) res.writeContinue()
}

/**
 * The content of a request on its way to the upstream. It stands between the request and undici,
 * which would destroy the request when the upstream answers early, and with it the chance to close
 * the connection in an orderly way.
 */
export class RequestBody extends Readable {
  readonly #input: RequestBodyInput
  #timer: NodeJS.Timeout | undefined
  #begun = false
  /**
   * What has to arrive until the time begins anew. A byte now and then would keep a connection to
   * the upstream for good.
   */
  readonly #portion: number
  #due: number

  constructor(input: RequestBodyInput) {
    super({ highWaterMark: 64 * 1024 })
    this.#input = input
    this.#portion = (input.bytesPerSecond * input.idleTimeoutMs) / 1000
    this.#due = this.#portion
    // undici destroys it with the reason of a failure that it also reports, and not always while it
    // listens.
    this.on('error', () => {})
  }

  /** The upstream wants more, and the client has not sent it. */
  get awaitsClient(): boolean {
    return this.#begun && !this.#input.req.readableEnded && !this.#input.req.isPaused()
  }

  override _read(): void {
    const { req } = this.#input
    if (!this.#begun) this.#begin()
    else if (req.isPaused()) {
      req.resume()
      this.#timer?.refresh()
    }
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    clearTimeout(this.#timer)
    this.#input.req.off('data', this.#part).off('end', this.#end)
    callback(error)
  }

  #begin(): void {
    const { req, res, idleTimeoutMs, onStall } = this.#input
    this.#begun = true
    continueIfExpected(req, res)
    if (idleTimeoutMs > 0)
      this.#timer = setTimeout(() => {
        if (this.awaitsClient) onStall()
      }, idleTimeoutMs)
    req.on('data', this.#part).on('end', this.#end)
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
