/**
 * To be called when a part is not needed any more, so that its memory is used again. With the error
 * of a failed write, the memory is not used again, because the socket may still reference it.
 */
export type GiveBack = (error?: Error | null) => void

/** Receives the content of a request. */
export interface ContentReader {
  /** `giveBack`: to be called when the part is not needed any more. */
  onPart(part: Uint8Array, giveBack: GiveBack): void
  onEnd(): void
}

/** A part of content in memory that is used again. */
export interface LentPart {
  readonly part: Buffer
  readonly giveBack: GiveBack
  /** How much memory is kept until then, in bytes: a whole buffer. 0: the part is a copy. */
  readonly lentBytes: number
}

/** The longest part of content that is copied or written at once, in bytes. Others are lent. */
export const shortBytes = 16 * 1024

/** The size of a buffer, in bytes. After a read that filled a buffer, the next one is large. */
export const usualBytes = 64 * 1024
const largeBytes = 256 * 1024
/** How much free memory of each size is kept, in bytes. */
const maxFreeBytes = 4 * 1024 * 1024
/**
 * How many large buffers are in use at most. Clients that do not read, and upstreams, would
 * otherwise make the process hold two for each of hundreds of transfers.
 */
const maxLargeInUse = 32

/**
 * Memory that content is read into. It is used again, because allocating memory for each part of
 * large content costs more than forwarding the part. A buffer is free when its reader and all
 * borrowers have given it back. Until then, a part of it may not have been written yet.
 */
export class ReadBuffer {
  readonly memory: Buffer
  readonly #free: ReadBuffer[]
  #holders = 0
  /** The socket of a failed write may still reference it. */
  #isLost = false

  /** A free or new buffer, for a reader. While many large ones are in use, it is a usual one. */
  static take(wantsLarge: boolean): ReadBuffer {
    const isLarge = wantsLarge && largeInUse < maxLargeInUse
    const free = isLarge ? freeLarge : freeUsual
    const taken = free.pop() ?? new ReadBuffer(isLarge ? largeBytes : usualBytes, free)
    taken.#holders = 1
    if (isLarge) {
      largeInUse += 1
      forgotten.register(taken, undefined, taken)
    }
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
    return { part: buffer.memory.subarray(0, part.length), giveBack, lentBytes: buffer.memory.length }
  }

  private constructor(bytes: number, free: ReadBuffer[]) {
    this.memory = Buffer.allocUnsafeSlow(bytes)
    this.#free = free
  }

  /** A part of it is lent, or may still be referenced. */
  get isLent(): boolean {
    return this.#holders > 1 || this.#isLost
  }

  /** Lends it to a borrower, who gives it back; further calls have no effect. */
  lend(): GiveBack {
    this.#holders += 1
    let isLent = true
    return (error) => {
      if (isLent) this.giveBack(error)
      isLent = false
    }
  }

  /** Must be called once by the reader. */
  giveBack(error?: Error | null): void {
    this.#holders -= 1
    this.#isLost ||= error != null
    if (this.#holders > 0) return
    if (this.#free === freeLarge) {
      largeInUse -= 1
      forgotten.unregister(this)
    }
    const isKept = (this.#free.length + 1) * this.memory.length <= maxFreeBytes
    if (isKept && !this.#isLost) this.#free.push(this)
  }
}

const freeUsual: ReadBuffer[] = []
const freeLarge: ReadBuffer[] = []
let largeInUse = 0
/** A stream that is destroyed may never say what became of its parts. */
const forgotten = new FinalizationRegistry(() => void (largeInUse -= 1))
