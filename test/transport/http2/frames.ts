import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { field, flags, type Frame, frame, types, uint32 } from '../../support/http2-frames.ts'

/** RFC 9113 §6.6. */
export const pushPromise = 5

export function block(fields: readonly (readonly [name: string, value: string])[]): Buffer {
  return Buffer.concat(fields.map(([name, value]) => field(name, value)))
}

export function settings(...pairs: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(pairs.length * 6)
  for (const [index, [id, value]] of pairs.entries()) {
    payload.writeUInt16BE(id, index * 6)
    payload.writeUInt32BE(value, index * 6 + 2)
  }
  return frame(types.settings, 0, 0, payload)
}

export function goaway(lastStream: number, code = 0): Buffer {
  return frame(types.goaway, 0, 0, Buffer.concat([uint32(lastStream), uint32(code)]))
}

export function resetStream(stream: number, code: number): Buffer {
  return frame(types.rstStream, 0, stream, uint32(code))
}

interface FrameServer {
  readonly port: number
  readonly sockets: Socket[]
  /** The frames of all connections. */
  readonly frames: Frame[]
}

const prefaceLength = 24

/**
 * A server that sends raw frames. It sends `beginning` on each connection, and calls `onHeaders`
 * for each request.
 */
export async function frameServer(
  t: TestContext,
  onHeaders: (socket: Socket, stream: number, connection: number) => unknown,
  beginning: Buffer = settings(),
): Promise<FrameServer> {
  const sockets: Socket[] = []
  const frames: Frame[] = []
  const server = createServer((socket) => {
    const connection = sockets.push(socket)
    let rest = Buffer.alloc(0)
    let hasPreface = false
    socket
      .on('error', () => {})
      .on('data', (bytes: Buffer) => {
        rest = Buffer.concat([rest, bytes])
        if (!hasPreface && rest.length >= prefaceLength) {
          hasPreface = true
          rest = rest.subarray(prefaceLength)
          socket.write(beginning)
        }
        while (hasPreface && rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
          const end = 9 + rest.readUIntBE(0, 3)
          const [type = 0, flag = 0] = rest.subarray(3, 5)
          const received = {
            type,
            flags: flag,
            stream: rest.readUInt32BE(5),
            payload: Buffer.from(rest.subarray(9, end)),
          }
          rest = rest.subarray(end)
          frames.push(received)
          if (type === types.settings && flag === 0) socket.write(frame(types.settings, flags.ack, 0))
          if (type === types.headers) onHeaders(socket, received.stream, connection)
        }
      })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return { port: (server.address() as AddressInfo).port, sockets, frames }
}
