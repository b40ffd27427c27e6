/** The position in a stream of frames. It stays `unknown` after an invalid header. */
export type FramePlace = 'between' | 'inside' | 'after_close' | 'unknown'

const opcodes = { close: 0x8, pong: 0xa } as const

/**
 * Reads the headers of the frames in one direction of a WebSocket (RFC 6455 §5.2), so that the
 * gateway can insert a frame between two frames. It skips payloads, so compression makes no
 * difference.
 */
export class FrameTracker {
  readonly #masked: boolean
  #place: FramePlace = 'between'
  #opcode = 0
  #headerRead = 0
  #headerLength = 2
  #lengthEnd = 2
  /** Within the header: the length as read so far. After it: the rest of the payload. In bytes. */
  #payload = 0

  /** @param from the sender: a client masks every frame, a server masks none (§5.1) */
  constructor(from: 'client' | 'server') {
    this.#masked = from === 'client'
  }

  get place(): FramePlace {
    return this.#place
  }

  /** Reads the data that was sent next. */
  read(chunk: Buffer): void {
    // The usual case for long frames: the whole chunk is payload.
    if (this.#place === 'inside' && this.#headerRead === 0 && this.#payload > chunk.length) {
      this.#payload -= chunk.length
      return
    }
    let at = this.#place === 'between' ? this.#skipShortFrames(chunk) : 0
    while (at < chunk.length && this.#isFollowed()) at = this.#step(chunk, at)
  }

  /** Skips whole short data frames, which most messages are. Returns how many bytes they have. */
  #skipShortFrames(chunk: Buffer): number {
    const [maskBit, headerLength] = this.#masked ? [0x80, 6] : [0, 2]
    let at = 0
    while (at + 1 < chunk.length) {
      const opcode = (chunk[at] as number) & 0x0f
      const length = (chunk[at + 1] as number) ^ maskBit
      const end = at + headerLength + length
      if (opcode > 0x2 || length > 125 || end > chunk.length) return at
      at = end
    }
    return at
  }

  /** Reads no further than the end of the current frame. Returns how many bytes it has read. */
  readToEndOfFrame(chunk: Buffer): number {
    let at = 0
    while (at < chunk.length && this.#place === 'inside') at = this.#step(chunk, at)
    return at
  }

  /** Data after a Close frame has no meaning (§5.5.1). */
  #isFollowed(): boolean {
    return this.#place === 'between' || this.#place === 'inside'
  }

  #step(chunk: Buffer, at: number): number {
    if (this.#place === 'inside' && this.#headerRead === 0) {
      const skipped = Math.min(this.#payload, chunk.length - at)
      this.#payload -= skipped
      if (this.#payload === 0) this.#endFrame()
      return at + skipped
    }
    this.#place = this.#readHeader(chunk[at] as number) ? 'inside' : 'unknown'
    if (this.#headerRead === this.#headerLength) this.#beginPayload()
    return at + 1
  }

  /** Reads one byte of a header. Returns `false` when the header is invalid. */
  #readHeader(byte: number): boolean {
    const index = this.#headerRead
    this.#headerRead += 1
    if (index === 0) {
      this.#opcode = byte & 0x0f
      const isReserved = (this.#opcode > 0x2 && this.#opcode < opcodes.close) || this.#opcode > opcodes.pong
      const isFragment = (byte & 0x80) === 0
      return !isReserved && !(this.#opcode >= opcodes.close && isFragment)
    }
    if (index === 1) {
      const short = byte & 0x7f
      this.#lengthEnd = short === 127 ? 10 : short === 126 ? 4 : 2
      this.#headerLength = this.#lengthEnd + (this.#masked ? 4 : 0)
      this.#payload = this.#lengthEnd === 2 ? short : 0
      // The payload of a control frame has at most 125 bytes (§5.5).
      return ((byte & 0x80) !== 0) === this.#masked && (short < 126 || this.#opcode < opcodes.close)
    }
    if (index < this.#lengthEnd) this.#payload = this.#payload * 256 + byte
    return this.#payload <= Number.MAX_SAFE_INTEGER
  }

  #beginPayload(): void {
    this.#headerRead = 0
    this.#headerLength = 2
    if (this.#place === 'inside' && this.#payload === 0) this.#endFrame()
  }

  #endFrame(): void {
    this.#place = this.#opcode === opcodes.close ? 'after_close' : 'between'
  }
}

/** A Close frame of a server, with the reason: §5.5.1, §7.4.1. */
export function closeFrameToClient(code: number, reason: string): Buffer {
  const text = Buffer.from(reason)
  return Buffer.from([0x80 | opcodes.close, 2 + text.length, code >> 8, code & 0xff, ...text])
}

/** A Close frame of a client, masked with an unpredictable key (§5.3). */
export function closeFrameToServer(code: number): Buffer {
  const key = crypto.getRandomValues(new Uint8Array(4)) as Uint8Array & { 0: number; 1: number }
  return Buffer.from([0x80 | opcodes.close, 0x80 | 2, ...key, (code >> 8) ^ key[0], (code & 0xff) ^ key[1]])
}
