import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

/** RFC 9113 §6. */
export const types = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const

export const flags = { endStream: 1, ack: 1, endHeaders: 4 } as const

export interface Frame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

/** Writes a frame (RFC 9113 §4.1), valid or not. */
export function frame(type: number, flag: number, stream: number, payload: Buffer | string = ''): Buffer {
  const content = Buffer.from(payload)
  const head = Buffer.alloc(9)
  head.writeUIntBE(content.length, 0, 3)
  head[3] = type
  head[4] = flag
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, content])
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** An integer with a prefix of 7 bits (RFC 7541 §5.1). */
function integer(value: number): Buffer {
  if (value < 127) return Buffer.from([value])
  const bytes = [127]
  let left = value - 127
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) + 128)
  return Buffer.from([...bytes, left])
}

/**
 * A field without Huffman coding and without an index (RFC 7541 §6.2.2). @param form 0x40: it is
 * indexed
 */
export function field(name: string, value: string, form = 0): Buffer {
  return Buffer.concat([
    Buffer.from([form]),
    ...[name, value].flatMap((text) => [integer(text.length), Buffer.from(text, 'latin1')]),
  ])
}

export function requestFields(path: string, method = 'GET', authority = 'x'): Buffer {
  const fields = { ':method': method, ':scheme': 'http', ':path': path, ':authority': authority }
  return Buffer.concat(Object.entries(fields).map(([name, value]) => field(name, value)))
}

/** A client that writes frames itself, without TLS. */
export class RawHttp2 {
  readonly socket: Socket
  readonly frames: Frame[] = []
  #received = Buffer.alloc(0)

  constructor(t: TestContext, port: number, settings: Buffer | string = '') {
    this.socket = connect(port, '127.0.0.1')
    this.socket.on('error', () => {})
    this.socket.on('data', (bytes: Buffer) => this.#read(bytes))
    t.after(() => this.socket.destroy())
    this.send(Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(types.settings, 0, 0, settings))
  }

  send(...frames: readonly Buffer[]): this {
    if (this.socket.writable) this.socket.write(Buffer.concat(frames))
    return this
  }

  of(type: number): Frame[] {
    return this.frames.filter((frame) => frame.type === type)
  }

  /**
   * Sends what `next` returns until the connection is closed. Resolves to the last error code of
   * GOAWAY.
   */
  async flood(next: (round: number) => Buffer): Promise<number | undefined> {
    for (let round = 0; !this.socket.closed; round += 1) {
      if (this.socket.writable && !this.socket.write(next(round)))
        await Promise.race([once(this.socket, 'drain'), once(this.socket, 'close')]).catch(() => {})
      else await new Promise(setImmediate)
    }
    return this.of(types.goaway).at(-1)?.payload.readUInt32BE(4)
  }

  #read(bytes: Buffer): void {
    this.#received = Buffer.concat([this.#received, bytes])
    while (this.#received.length >= 9) {
      const end = 9 + this.#received.readUIntBE(0, 3)
      if (this.#received.length < end) return
      const [type = 0, flag = 0] = this.#received.subarray(3, 5)
      const stream = this.#received.readUInt32BE(5)
      this.frames.push({ type, flags: flag, stream, payload: this.#received.subarray(9, end) })
      this.#received = this.#received.subarray(end)
    }
  }
}
