import type { Socket } from 'node:net'
import { writeText } from '../core/direct-writes.ts'
import { ReadBuffer } from '../core/read-buffers.ts'

/**
 * Up to this length, in bytes, the copy is a string, because {@link writeText} costs least. The
 * operating system usually takes it at once.
 */
const shortBytes = 1024
/**
 * Up to this length, in bytes, the copy has memory of its own, because 64 KiB would be too much.
 */
const mediumBytes = 16 * 1024

/**
 * Writes bytes whose memory is used again after the call. They are copied, because a write may
 * still wait for the peer then.
 * @param bytes at most 64 KiB
 * @returns what `write` of the socket returns
 */
export function writeCopy(socket: Socket, bytes: Buffer): boolean {
  if (bytes.length <= shortBytes) return writeText(socket, bytes.toString('latin1'))
  if (bytes.length <= mediumBytes) return socket.write(Buffer.from(bytes))
  const buffer = ReadBuffer.take(false)
  bytes.copy(buffer.memory)
  return socket.write(buffer.memory.subarray(0, bytes.length), (error) => {
    // After a failed write the kernel may still read the memory, so it is not used again.
    if (!error) buffer.giveBack()
  })
}

/**
 * Writes bytes whose memory is not used again.
 * @returns what `write` of the socket returns
 */
export function writeOwn(socket: Socket, bytes: Buffer): boolean {
  return bytes.length <= shortBytes ? writeText(socket, bytes.toString('latin1')) : socket.write(bytes)
}
