import { Readable } from 'node:stream'
import type { ContentReader, GiveBack } from '../wire/read-buffers.ts'
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
 * The content of a request on its way to the upstream. Its end is not that of the request, because
 * the connection to the client must stay usable when the upstream needs no more content.
 */
export class RequestBody {
  readonly #input: RequestBodyInput
  #reader: ContentReader | undefined
  #timer: NodeJS.Timeout | undefined
  #hasBegun = false
  /**
   * How many bytes must arrive before the timer starts again. Otherwise a client could hold a
   * connection to the upstream without limit by sending a byte now and then.
   */
  readonly #portion: number
  #due: number

  constructor(input: RequestBodyInput) {
    this.#input = input
    this.#portion = (input.bytesPerSecond * input.idleTimeoutMs) / 1000
    this.#due = this.#portion
  }

  get isIncomplete(): boolean {
    return !this.#input.req.complete
  }

  /** The upstream wants more, and the client has not sent it. */
  get awaitsClient(): boolean {
    return this.#hasBegun && !this.#input.req.readableEnded && !this.#input.req.isPaused()
  }

  /** Begins to read. What has arrived is passed to the reader at once. */
  begin(reader: ContentReader): void {
    const { req, res, idleTimeoutMs } = this.#input
    this.#hasBegun = true
    this.#reader = reader
    continueIfExpected(req, res)
    if (idleTimeoutMs > 0 && !req.complete) this.#timer = setTimeout(onTimer, idleTimeoutMs, this)
    req.on('data', this.#onPart)
    req.on('end', this.#onEnd)
    req.deliver?.()
  }

  pause(): void {
    if (this.#reader !== undefined) this.#input.req.pause()
  }

  resume(): void {
    if (this.#reader === undefined || !this.#input.req.isPaused()) return
    this.#timer?.refresh()
    this.#input.req.resume()
  }

  /** Passes nothing more to the reader. The rest of the content may still arrive. */
  destroy(): void {
    clearTimeout(this.#timer)
    this.#reader = undefined
    const { req } = this.#input
    req.off('data', this.#onPart)
    req.off('end', this.#onEnd)
  }

  /** The content as a stream, instead of `begin`. */
  asStream(): Readable {
    const stream = new Readable({
      highWaterMark: 64 * 1024,
      read: () => {
        if (this.#hasBegun) this.resume()
        else this.begin(reader)
      },
      destroy: (error, done) => {
        this.destroy()
        done(error)
      },
    })
    const reader: ContentReader = {
      onPart: (part, giveBack) => {
        const hasRoom = stream.push(Buffer.from(part))
        giveBack()
        if (!hasRoom) this.pause()
      },
      onEnd: () => stream.push(null),
    }
    // The failure is reported elsewhere, and an error without a listener ends the process.
    return stream.on('error', () => {})
  }

  /** @internal The timer has run out. */
  onTimeout(): void {
    if (this.awaitsClient) this.#input.onStall()
  }

  readonly #onPart = (part: Buffer, giveBack: GiveBack = nothing): void => {
    this.#input.onPart()
    this.#due -= part.length
    if (this.#due <= 0) {
      this.#due = this.#portion
      this.#timer?.refresh()
    }
    this.#reader?.onPart(part, giveBack)
  }

  readonly #onEnd = (): void => {
    const reader = this.#reader
    clearTimeout(this.#timer)
    this.#reader = undefined
    this.#input.onPart()
    reader?.onEnd()
  }
}

function onTimer(body: RequestBody): void {
  body.onTimeout()
}

function nothing(): void {}

/** Content that is forwarded instead of the content of a request, with header fields for it. */
export interface ReplacedContent {
  /** All header fields of the request: names and values in turn. */
  readonly rawHeaders: readonly string[]
  readonly body: StoredContent
  /** The reference of the kept request that the content is from. */
  readonly kept?: string
}

/** Content in memory, as the content of a request to an upstream. */
export class StoredContent {
  readonly isIncomplete = false
  readonly #parts: Iterator<Uint8Array>
  readonly #onBegin: () => void
  #reader: ContentReader | undefined
  #hasBegun = false
  #isPaused = false
  #isPassing = false

  /**
   * @param onBegin called once, when the connection to the upstream is open and the header fields
   * have been written to it
   */
  constructor(parts: readonly Uint8Array[], onBegin: () => void = () => {}) {
    this.#parts = parts.values()
    this.#onBegin = onBegin
  }

  /** Whether a part of the request may have reached the upstream. */
  get hasBegun(): boolean {
    return this.#hasBegun
  }

  begin(reader: ContentReader): void {
    this.#onBegin()
    this.#hasBegun = true
    this.#reader = reader
    this.#pass()
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#pass()
  }

  destroy(): void {
    this.#reader = undefined
  }

  #pass(): void {
    if (this.#isPassing) return
    this.#isPassing = true
    while (this.#reader !== undefined && !this.#isPaused) {
      const { done, value } = this.#parts.next()
      if (done !== true) this.#reader.onPart(value, nothing)
      else {
        this.#reader.onEnd()
        this.#reader = undefined
      }
    }
    this.#isPassing = false
  }
}
