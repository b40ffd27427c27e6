import fc from 'fast-check'

/** A WebSocket frame (RFC 6455 §5.2). `length` is that of its payload, in bytes. */
export interface Frame {
  readonly opcode: number
  readonly fin: boolean
  readonly rsv: number
  readonly length: number
}

/** Payloads of any length, and of the lengths at which the header changes its form. */
export const dataFrame: fc.Arbitrary<Frame> = fc.record({
  opcode: fc.constantFrom(0x0, 0x1, 0x2),
  fin: fc.boolean(),
  rsv: fc.integer({ min: 0, max: 7 }),
  length: fc.oneof(fc.constantFrom(0, 1, 125, 126, 127, 65_535, 65_536), fc.integer({ min: 0, max: 70_000 })),
})
const controlFrame: fc.Arbitrary<Frame> = fc.record({
  opcode: fc.constantFrom(0x9, 0xa),
  fin: fc.constant(true),
  rsv: fc.constant(0),
  length: fc.integer({ min: 0, max: 125 }),
})
/** Any frames but Close frames. */
export const frames = fc.array(fc.oneof(dataFrame, controlFrame), { maxLength: 12 })

export function encode({ opcode, fin, rsv, length }: Frame, from: 'client' | 'server'): Buffer {
  const first = (fin ? 0x80 : 0) | (rsv << 4) | opcode
  const mask = from === 'client' ? 0x80 : 0
  const header =
    length < 126
      ? Buffer.from([first, mask | length])
      : length < 65_536
        ? Buffer.from([first, mask | 126, length >> 8, length & 0xff])
        : Buffer.from([first, mask | 127, 0, 0, 0, 0, ...[24, 16, 8, 0].map((shift) => (length >> shift) & 0xff)])
  // Payloads that look like headers to a reader that has lost its position.
  return Buffer.concat([header, Buffer.alloc(mask === 0 ? 0 : 4, 0x88), Buffer.alloc(length, 0x88)])
}

/** Splits bytes at these places, which may be any numbers. */
export function split(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [0, ...places.map((place) => place % (bytes.length + 1)), bytes.length].sort((a, b) => a - b)
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end))
}
