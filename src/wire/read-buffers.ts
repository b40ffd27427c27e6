import type { Socket } from 'node:net'
import { privatePartsLeftOut } from '../core/node-private-parts.ts'

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

/** What reads into memory that is used again need of their connection. */
export interface ReadsOwner {
  /** Much content follows, and it can be passed on at once. */
  readonly expectsMuch: boolean
  /**
   * Takes the bytes of one read. They are overwritten afterwards: what is kept has to be copied
   * ({@link ReusedReads.own}) or borrowed ({@link ReusedReads.lend}).
   */
  receive(bytes: Buffer): void
}

/** A read of at least this size, in bytes, shows that the client sends fast. */
const fastBytes = 32 * 1024
/** A part that takes less than this share of a large buffer is copied. */
const copiedShare = 1 / 4

/**
 * All connections read into this memory while they have no buffer of their own. A read and the use
 * of its bytes are one step, so no other connection reads in between.
 */
const shared = Buffer.allocUnsafeSlow(usualBytes)

/**
 * Reads from a connection of a client into memory that is used again. Node.js allocates new memory
 * for each read of a connection that a server has accepted, which costs more than forwarding the
 * bytes.
 *
 * `onread` of `net.connect` is the public interface for such reads. A server does not offer it.
 * This class sets the properties of the socket that `onread` sets (tested by
 * test/listener/plain/uploads.test.ts). With a version of Node.js that has other ones, Node.js
 * allocates the memory.
 */
export class ReusedReads {
  readonly #socket: Socket
  readonly #owner: ReadsOwner
  #use: 'owner' | 'stream' | 'none' = 'owner'
  #own: ReadBuffer | undefined
  #lastBytes = 0

  /** @returns `undefined` when the connection cannot be read in this way */
  static begin(socket: Socket, owner: ReadsOwner): ReusedReads | undefined {
    const parts = privateParts(socket)
    // Bytes that wait in the stream precede those of the next read.
    if (parts === undefined || socket.readableLength > 0) return undefined
    const reads = new ReusedReads(socket, owner)
    const { handle, buffer, generate, callback } = parts
    const properties = socket as unknown as Record<symbol, unknown>
    properties[buffer] = shared
    properties[generate] = reads.#next
    properties[callback] = reads.#onRead
    handle.useUserBuffer(shared)
    // A stream that is paused reads on until it is full. From now on it would never be full.
    if (socket.isPaused()) socket.pause()
    return reads
  }

  private constructor(socket: Socket, owner: ReadsOwner) {
    this.#socket = socket
    this.#owner = owner
    socket.once('close', () => this.#release())
  }

  /** From now on, the socket emits `data` like any other. */
  becomeStream(): void {
    this.#use = 'stream'
  }

  /** Drops what arrives from now on. */
  drop(): void {
    this.#use = 'none'
  }

  /** The bytes, in memory that is not overwritten. */
  own(bytes: Buffer): Buffer {
    return this.#isReused(bytes) ? Buffer.from(bytes) : bytes
  }

  /** The bytes, in memory that is not overwritten until it is given back. */
  lend(bytes: Buffer): LentPart {
    if (!this.#isReused(bytes)) return { part: bytes, giveBack: nothing, lentBytes: 0 }
    // A part that waits holds a whole buffer.
    if (bytes.length < fastBytes) return { part: Buffer.from(bytes), giveBack: nothing, lentBytes: 0 }
    const own = this.#own
    if (own === undefined || bytes.length < own.memory.length * copiedShare) return ReadBuffer.copy(bytes)
    return { part: bytes, giveBack: own.lend(), lentBytes: own.memory.length }
  }

  #isReused({ buffer }: Buffer): boolean {
    return buffer === shared.buffer || buffer === this.#own?.memory.buffer
  }

  readonly #onRead = (length: number): boolean => {
    // Another version of Node.js may call back with something else.
    if (!Number.isSafeInteger(length) || length <= 0) {
      this.#socket.destroy()
      return false
    }
    this.#lastBytes = length
    const bytes = (this.#own?.memory ?? shared).subarray(0, length)
    if (this.#use === 'owner') this.#owner.receive(bytes)
    else if (this.#use === 'stream') return this.#socket.push(Buffer.from(bytes))
    return true
  }

  /** The memory for the next read. Node.js asks for it after each read. */
  readonly #next = (): Buffer => {
    const isFast = this.#use === 'owner' && this.#lastBytes >= fastBytes && this.#owner.expectsMuch
    if (this.#own?.isLent === true || !isFast) this.#release()
    if (isFast) this.#own ??= ReadBuffer.take(true)
    return this.#own?.memory ?? shared
  }

  #release(): void {
    this.#own?.giveBack()
    this.#own = undefined
  }
}

interface PrivateParts {
  readonly handle: { useUserBuffer(memory: Buffer): void }
  readonly buffer: symbol
  readonly generate: symbol
  readonly callback: symbol
}

/** The properties of a socket that `onread` of `net.connect` sets. */
function privateParts(socket: Socket): PrivateParts | undefined {
  if (privatePartsLeftOut() !== undefined) return undefined
  const { _handle: handle } = socket as unknown as { readonly _handle?: Partial<PrivateParts['handle']> | null }
  if (typeof handle?.useUserBuffer !== 'function') return undefined
  const symbols = Object.getOwnPropertySymbols(socket)
  const unset = (name: string): symbol | undefined => {
    const found = symbols.filter(({ description }) => description === name)
    const [symbol] = found
    const value = symbol && (socket as unknown as Record<symbol, unknown>)[symbol]
    return found.length === 1 && value === null ? symbol : undefined
  }
  const [buffer, generate, callback] = [unset('kBuffer'), unset('kBufferGen'), unset('kBufferCb')]
  if (buffer === undefined || generate === undefined || callback === undefined) return undefined
  return { handle: handle as PrivateParts['handle'], buffer, generate, callback }
}

function nothing(): void {}
