import { Readable } from 'node:stream'

/** Content that is forwarded instead of the content of a request, with header fields for it. */
export interface ReplacedContent {
  /** All header fields of the request: names and values in turn. */
  readonly rawHeaders: readonly string[]
  readonly body: StoredContent
  /** The reference of the kept request that the content is from. */
  readonly kept?: string
}

/** Content in memory, as the content of a request to an upstream. */
export class StoredContent extends Readable {
  readonly #parts: Iterator<Uint8Array>
  readonly #onBegin: () => void
  #hasBegun = false

  /**
   * @param onBegin called once, when the connection to the upstream is open and the header fields
   * have been written to it
   */
  constructor(parts: readonly Uint8Array[], onBegin: () => void = () => {}) {
    super({ highWaterMark: 64 * 1024 })
    this.#parts = parts.values()
    this.#onBegin = onBegin
    // An error without a listener would end the process. The failure is reported elsewhere.
    this.on('error', () => {})
  }

  /** Whether a part of the request may have reached the upstream. */
  get hasBegun(): boolean {
    return this.#hasBegun
  }

  override _read(): void {
    if (!this.#hasBegun) this.#onBegin()
    this.#hasBegun = true
    const { done, value } = this.#parts.next()
    this.push(done === true ? null : value)
  }
}
