import { GatewayError } from '../core/errors.ts'
import type { ExchangeControl, RawFields, ResponseHandler, SwitchedConnection } from '../transport/transport.ts'
import type { GiveBack } from '../wire/read-buffers.ts'
import { addPart } from './content-parts.ts'
import { decodedContent } from './content-rewriter.ts'
import type { OwnResponse } from './own-exchange.ts'

/** The most content of a response that is held, in bytes. */
export const maxHeldBytes = 256 * 1024
/** The most content of all responses that are held, in bytes. */
const maxAllHeldBytes = 32 * 1024 * 1024
let allHeldBytes = 0
/** How long the content of a held response may take, in ms. */
const holdsForMs = 1_000

/** Looks at responses before the client gets them. */
export interface ResponseWatch {
  /** Whether the response is held until it is complete. */
  holds(status: number, fields: RawFields): boolean
  /**
   * @returns what takes the place of the response; `undefined`: it is passed on
   */
  examine(response: OwnResponse): Promise<(() => void) | undefined>
}

/** The handler of an exchange, whose response something else may replace. */
export interface ReplaceableResponse extends ResponseHandler {
  /** A complete response is examined, which does not count as the time of the upstream. */
  holdResponse(): void
  replaceResponse(next: () => void): void
}

/**
 * Holds a response until a watch has looked at it. A long or slow one is passed on as it arrives.
 */
export class HeldResponse implements ResponseHandler {
  readonly #handler: ResponseHandler
  readonly #watch: ResponseWatch
  readonly #last: Pick<ReplaceableResponse, 'holdResponse' | 'replaceResponse'>
  #control: ExchangeControl | undefined
  /** What has arrived, besides content: the head and the end. `undefined` when nothing is held. */
  #held: (() => void)[] | undefined
  #head: Omit<OwnResponse, 'content'> = { status: 0, fields: [] }
  #parts: Buffer[] = []
  #bytes = 0
  #timer: NodeJS.Timeout | undefined

  constructor(
    handler: ResponseHandler,
    watch: ResponseWatch,
    last: Pick<ReplaceableResponse, 'holdResponse' | 'replaceResponse'>,
  ) {
    this.#handler = handler
    this.#watch = watch
    this.#last = last
  }

  onSend(control: ExchangeControl): boolean {
    this.#control = control
    return this.#handler.onSend(control)
  }

  onResponse(status: number, statusMessage: string, fields: RawFields): void {
    if (status < 200 || !this.#watch.holds(status, fields))
      return this.#handler.onResponse(status, statusMessage, fields)
    this.#head = { status, fields }
    this.#held = [() => this.#handler.onResponse(status, statusMessage, fields)]
    this.#timer = setTimeout(() => this.#release(), holdsForMs)
  }

  onShortPart(part: Buffer): void {
    if (this.#held === undefined) this.#handler.onShortPart(part)
    else this.#hold(Buffer.from(part))
  }

  onContent(part: Buffer, giveBack: GiveBack): void {
    if (this.#held === undefined) return this.#handler.onContent(part, giveBack)
    this.#hold(Buffer.from(part))
    giveBack()
  }

  onEnd(trailers: RawFields): void {
    if (this.#held === undefined) return this.#handler.onEnd(trailers)
    clearTimeout(this.#timer)
    this.#held.push(() => this.#handler.onEnd(trailers))
    const whole = Buffer.concat(this.#parts)
    if (this.#parts.length > 1) this.#parts = [whole]
    const content = decodedContent(this.#head.fields, whole, maxHeldBytes)
    if (content === undefined || (content !== whole && !this.#mayHold(content.length))) return this.#release()
    this.#last.holdResponse()
    this.#watch.examine({ ...this.#head, content }).then(
      (next) => {
        if (next === undefined) return this.#release()
        this.#drop()
        this.#last.replaceResponse(next)
      },
      () => this.#release(),
    )
  }

  onSwitch(connection: SwitchedConnection, fields: RawFields): void {
    this.#handler.onSwitch(connection, fields)
  }

  onError(error: GatewayError): void {
    this.#drop()
    this.#handler.onError(error)
  }

  onDone(): void {
    this.#handler.onDone()
  }

  #hold(part: Buffer): void {
    addPart(this.#parts, part)
    if (!this.#mayHold(part.length) || this.#bytes > maxHeldBytes) this.#release()
  }

  #mayHold(bytes: number): boolean {
    this.#bytes += bytes
    allHeldBytes += bytes
    return allHeldBytes <= maxAllHeldBytes
  }

  /**
   * Holds nothing any more.
   * @returns what was held, in order
   */
  #drop(): readonly (() => void)[] {
    clearTimeout(this.#timer)
    allHeldBytes -= this.#bytes
    this.#bytes = 0
    const [head, ...end] = this.#held ?? []
    const content = this.#parts.map((part) => () => this.#handler.onContent(part, () => {}))
    this.#parts = []
    this.#held = undefined
    return head === undefined ? [] : [head, ...content, ...end]
  }

  /** Passes on what was held. */
  #release(): void {
    try {
      for (const pass of this.#drop()) pass()
    } catch (error) {
      const failure =
        error instanceof GatewayError ? error : new GatewayError('ERR_INTERNAL', 'a response failed', { cause: error })
      this.#handler.onError(failure)
      this.#control?.abort(failure)
    }
  }
}
