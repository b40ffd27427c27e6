/** The size of a buffer, in bytes. After a read that filled a buffer, the next one is large. */
const usualBytes = 64 * 1024
const largeBytes = 256 * 1024
/** How many free buffers of each size are kept. */
const maxFree = 16

/**
 * Memory that responses are read into. It is used again, because allocating memory for each part of
 * a large response costs more than forwarding the part. A buffer is free when its reader and all
 * borrowers have given it back. Until then, a part of it may not be written to a client yet.
 */
export class ReadBuffer {
  readonly memory: Buffer
  readonly #free: ReadBuffer[]
  #holders = 0

  /** A free or new buffer, for a reader. */
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

  /** A part of it is lent. */
  get isLent(): boolean {
    return this.#holders > 1
  }

  /**
   * Lends it to a borrower. Returns a function that gives it back; further calls have no effect.
   */
  lend(): () => void {
    this.#holders += 1
    let isLent = true
    return () => {
      if (isLent) this.giveBack()
      isLent = false
    }
  }

  /** Must be called once by the reader. */
  giveBack(): void {
    this.#holders -= 1
    if (this.#holders === 0 && this.#free.length < maxFree) this.#free.push(this)
  }
}

const freeUsual: ReadBuffer[] = []
const freeLarge: ReadBuffer[] = []
