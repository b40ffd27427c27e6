import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { Asker } from './loads.ts'
import type { Visitor, WebSocketsOrder } from './order.ts'

const text = 'a message of thirty-two letters.'

/** A text message of a client (RFC 6455 §5.2). The mask is zero, which is a valid mask. */
export const message = Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)])

/** The same message as the upstream returns it. */
const echoed = Buffer.concat([Buffer.from([0x81, text.length]), Buffer.from(text)])

/** A WebSocket (RFC 6455) to an upstream that returns each message. */
export class EchoSocket implements Asker {
  readonly #socket: Socket
  #responded: () => void = () => {}
  #received = Buffer.alloc(0)

  /**
   * Resolves when the handshake has ended.
   * @throws {Error} when it is refused
   */
  static async shake(socket: Socket, order: WebSocketsOrder, visitor: Visitor, fail: (reason: string) => void) {
    socket.write(handshakeOf(order, visitor))
    const [response] = (await once(socket, 'data')) as [Buffer]
    const head = response.toString('latin1')
    if (!head.startsWith('HTTP/1.1 101 ') || !head.endsWith('\r\n\r\n')) throw new Error(`not a 101 but:\n${head}`)
    return new EchoSocket(socket, fail)
  }

  constructor(socket: Socket, fail: (reason: string) => void) {
    this.#socket = socket
    socket.on('data', (chunk) => {
      this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
      if (this.#received.length < echoed.length) return
      if (!this.#received.equals(echoed)) return fail('another message came back than was sent')
      this.#received = Buffer.alloc(0)
      this.#responded()
    })
  }

  ask(request: Buffer, answered: () => void): void {
    this.#responded = answered
    this.#socket.write(request)
  }
}

function handshakeOf({ port }: WebSocketsOrder, { cookie, person }: Visitor): string {
  const lines = [
    'GET /ws HTTP/1.1',
    `host: 127.0.0.1:${port}`,
    'connection: Upgrade',
    'upgrade: websocket',
    'sec-websocket-version: 13',
    'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
    ...(cookie === '' ? [] : [`cookie: ${cookie}`]),
    ...(person === undefined ? [] : [`x-bench-person: ${person}`]),
  ]
  return `${lines.join('\r\n')}\r\n\r\n`
}
