import type { GiveBack } from '../wire/read-buffers.ts'
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
  readonly #parts: Iterator<Uint8Array>
  readonly #onBegin: () => void
  #reader: StoredContentReader | undefined
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

  begin(reader: StoredContentReader): void {
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

interface StoredContentReader {
  onPart(part: Uint8Array, giveBack: GiveBack): void
  onEnd(): void
}

function nothing(): void {}
