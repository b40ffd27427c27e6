/** A part of content in memory that is used again. */
export interface LentPart {
  readonly part: Buffer
  /**
   * Must be called when the part was written. Without that call, its memory is never used again.
   */
  readonly giveBack: () => void
}

/**
 * The longest short part of content, in bytes. Its receiver copies it or writes it at once. Longer
 * parts are lent.
 */
export const shortBytes = 16 * 1024

/** The size of a buffer, in bytes. After a read that filled a buffer, the next one is large. */
export const usualBytes = 64 * 1024
const largeBytes = 256 * 1024
/** How much free memory of each size is kept, in bytes. */
const maxFreeBytes = 4 * 1024 * 1024

/**
 * Memory that content is read into. It is used again, because allocating memory for each part of
 * large content costs more than forwarding the part. A buffer is free when its reader and all
 * borrowers have given it back. Until then, a part of it may not have been written yet.
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

  /**
   * A copy of `part` in a buffer that is lent at once, without a reader.
   * @param part at most 64 KiB
   */
  static copy(part: Buffer): LentPart {
    const buffer = ReadBuffer.take(false)
    const giveBack = buffer.lend()
    buffer.giveBack()
    part.copy(buffer.memory)
    return { part: buffer.memory.subarray(0, part.length), giveBack }
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
    const isKept = (this.#free.length + 1) * this.memory.length <= maxFreeBytes
    if (this.#holders === 0 && isKept) this.#free.push(this)
  }
}

const freeUsual: ReadBuffer[] = []
const freeLarge: ReadBuffer[] = []
