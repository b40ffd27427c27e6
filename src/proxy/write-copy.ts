import type { Socket } from 'node:net'
import { writeWrapped } from '../wire/direct-writes.ts'
import { ReadBuffer, shortBytes } from '../wire/read-buffers.ts'

/**
 * Writes bytes whose memory is used again after the call. They are copied, because a write may
 * still wait for the peer then.
 * @param bytes at most 64 KiB
 * @returns what `write` of the socket returns
 */
export function writeCopy(socket: Socket, bytes: Buffer): boolean {
  if (bytes.length <= shortBytes) return writeWrapped(socket, { before: '', bytes, after: '' })
  const buffer = ReadBuffer.take(false)
  bytes.copy(buffer.memory)
  return socket.write(buffer.memory.subarray(0, bytes.length), (error) => buffer.giveBack(error))
}

/**
 * Writes bytes whose memory is not used again. Short bytes are copied all the same, because that
 * costs less than the stream of the socket.
 * @returns what `write` of the socket returns
 */
export function writeOwn(socket: Socket, bytes: Buffer): boolean {
  return bytes.length <= shortBytes ? writeCopy(socket, bytes) : socket.write(bytes)
}
