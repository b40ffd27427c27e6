import type { Socket } from 'node:net'

/**
 * Returns each frame without its mask (RFC 6455 §5.2). It supports only short messages, such as
 * those of the bench.
 */
export function echoFrames(socket: Socket, first: Buffer): void {
  let rest: Buffer = Buffer.alloc(0)
  const take = (chunk: Buffer) => {
    let data = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    const responses: Buffer[] = []
    while (data.length >= 2) {
      const length = (data[1] as number) & 0x7f
      if (length > 125) return void socket.destroy()
      const end = 6 + length
      if (data.length < end) break
      const frame = Buffer.allocUnsafe(2 + length)
      frame[0] = data[0] as number
      frame[1] = length
      for (let index = 0; index < length; index += 1)
        frame[2 + index] = (data[6 + index] as number) ^ (data[2 + (index & 3)] as number)
      responses.push(frame)
      data = data.subarray(end)
    }
    rest = data
    if (responses.length > 0) socket.write(responses.length === 1 ? (responses[0] as Buffer) : Buffer.concat(responses))
  }
  socket.on('data', take)
  if (first.length > 0) take(first)
}
