/** So much is read at once, and so much when that was not enough; in bytes. */
const usualBytes = 64 * 1024
const largeBytes = 256 * 1024
/** So many of a kind are kept for later. */
const mostFree = 16

/**
 * Memory that answers are read into, again and again: new memory for each part of a large one costs
 * more than to carry it. Nobody may read into it as long as a part of it has to be written to
 * somebody, so it counts who has it, and is free when nobody has.
 */
export class ReadBuffer {
  readonly memory: Buffer
  readonly #free: ReadBuffer[]
  #holders = 0

  /** One that nobody has, for a reader, who has it until it is given back. */
  static take(isLarge: boolean): ReadBuffer {
    const free = isLarge ? freeLarge : freeUsual
    const taken = free.pop() ?? new ReadBuffer(isLarge ? largeBytes : usualBytes, free)
    taken.#holders = 1
    return taken
  }

  private constructor(bytes: number, free: ReadBuffer[]) {
    this.memory = Buffer.allocUnsafeSlow(bytes)
    this.#free = free
  }

  /** Somebody has it besides the reader. */
  get isLent(): boolean {
    return this.#holders > 1
  }

  /**
   * For somebody who has it besides, until the answer is called; it may be called more than once.
   */
  lend(): () => void {
    this.#holders += 1
    let isOut = true
    return () => {
      if (isOut) this.giveBack()
      isOut = false
    }
  }

  /** Once for each that has it. */
  giveBack(): void {
    this.#holders -= 1
    if (this.#holders === 0 && this.#free.length < mostFree) this.#free.push(this)
  }
}

const freeUsual: ReadBuffer[] = []
const freeLarge: ReadBuffer[] = []
