/** The bytes as a `Buffer`, without a copy. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** A time to live for Redis, which takes whole milliseconds and no 0. */
export function atLeast1(ms: number): number {
  return Math.max(1, Math.ceil(ms))
}
