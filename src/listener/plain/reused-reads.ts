import type { Socket } from 'node:net'
import { type LentPart, ReadBuffer, usualBytes } from '../../wire/read-buffers.ts'

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
 * This class sets the properties of the socket that `onread` sets (tested with Node.js 22 and 24 by
 * test/listener/plain/uploads.test.ts). With a version of Node.js that has other ones, the
 * connection is read as before.
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
