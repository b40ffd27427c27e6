import { GatewayError } from '../core/errors.ts'
import type { ExchangeControl, RawFields, ResponseHandler, SwitchedConnection } from '../transport/transport.ts'
import type { GiveBack } from '../wire/read-buffers.ts'
import { decodedContent } from './content-rewriter.ts'
import type { OwnResponse } from './own-exchange.ts'

/** The most content of a response that is held, in bytes. */
export const maxHeldBytes = 256 * 1024
/** How long the content of a held response may take, in ms. */
const holdsForMs = 1_000

/** Looks at responses before the client gets them. */
export interface ResponseWatch {
  /** Whether the response is held until it is complete. */
  holds(status: number, fields: RawFields): boolean
  /**
   * @param response with its content as text, without a content coding
   * @returns what takes the place of the response; `undefined`: it is passed on
   */
  examine(response: OwnResponse): Promise<(() => void) | undefined>
}

/** The handler of an exchange, whose response something else may replace. */
export interface ReplaceableResponse extends ResponseHandler {
  replaceResponse(next: () => void): void
}

/**
 * Holds a response until a watch has looked at it. A long or slow one is passed on as it arrives.
 */
export class HeldResponse implements ResponseHandler {
  readonly #handler: ResponseHandler
  readonly #watch: ResponseWatch
  readonly #replace: (next: () => void) => void
  #control: ExchangeControl | undefined
  /** What has arrived; `undefined` when nothing is held. */
  #held: (() => void)[] | undefined
  #head: Omit<OwnResponse, 'content'> = { status: 0, fields: [] }
  #parts: Buffer[] = []
  #bytes = 0
  #timer: NodeJS.Timeout | undefined

  constructor(handler: ResponseHandler, watch: ResponseWatch, replace: (next: () => void) => void) {
    this.#handler = handler
    this.#watch = watch
    this.#replace = replace
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
    const content = decodedContent(this.#head.fields, Buffer.concat(this.#parts), maxHeldBytes)
    if (content === undefined) return this.#release()
    this.#watch.examine({ ...this.#head, content }).then(
      (next) => (next === undefined ? this.#release() : this.#replace(next)),
      () => this.#release(),
    )
  }

  onSwitch(connection: SwitchedConnection, fields: RawFields): void {
    this.#handler.onSwitch(connection, fields)
  }

  onError(error: GatewayError): void {
    clearTimeout(this.#timer)
    this.#held = undefined
    this.#handler.onError(error)
  }

  onDone(): void {
    this.#handler.onDone()
  }

  #hold(part: Buffer): void {
    this.#parts.push(part)
    this.#held?.push(() => this.#handler.onContent(part, () => {}))
    this.#bytes += part.length
    if (this.#bytes > maxHeldBytes) this.#release()
  }

  /** Passes on what was held, in order. */
  #release(): void {
    clearTimeout(this.#timer)
    const held = this.#held ?? []
    this.#held = undefined
    try {
      for (const pass of held) pass()
    } catch (error) {
      const failure =
        error instanceof GatewayError ? error : new GatewayError('ERR_INTERNAL', 'a response failed', { cause: error })
      this.#handler.onError(failure)
      this.#control?.abort(failure)
    }
  }
}
