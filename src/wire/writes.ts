import type { Writable } from 'node:stream'

type Written = (error?: Error | null) => void

/** Bytes with the text around them. In text, each character is a byte. */
export interface Wrapped {
  readonly before: string
  readonly bytes: Uint8Array
  readonly after: string
}

/** A chunk of the chunked transfer coding (RFC 9112 §7.1), behind a head and before an end. */
export function chunk(head: string, bytes: Uint8Array, end = ''): Wrapped {
  return { before: `${head}${bytes.length.toString(16)}\r\n`, bytes, after: `\r\n${end}` }
}

/**
 * Writes bytes and the text around them with one write. They are copied, so the memory of the bytes
 * may be used again when the function has returned.
 *
 * @param written see `socket.write`
 * @returns see `socket.write`
 */
export function writeWrapped(socket: Writable, { before, bytes, after }: Wrapped, written?: Written): boolean {
  const joined = Buffer.allocUnsafe(before.length + bytes.length + after.length)
  joined.write(before, 'latin1')
  joined.set(bytes, before.length)
  joined.write(after, before.length + bytes.length, 'latin1')
  return socket.write(joined, written)
}

/**
 * Writes bytes and the text around them without a copy.
 * @param written see `socket.write`. Until it is called without an error, the memory of the bytes
 * must not be used again.
 * @returns see `socket.write`
 */
export function writeLent(socket: Writable, { before, bytes, after }: Wrapped, written?: Written): boolean {
  socket.cork()
  if (before !== '') socket.write(before, 'latin1')
  let hasRoom = socket.write(bytes, written)
  if (after !== '') hasRoom = socket.write(after, 'latin1')
  socket.uncork()
  return hasRoom
}
