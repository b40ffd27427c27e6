import { connect as connectPlain, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

/**
 * A client's connection that is kept: one request at a time, as bytes, and an answer that has to be a 200 of a known length.
 * It reads no more of HTTP than it needs, so that the clients cost less than what is measured.
 */
export class Connection {
  readonly #socket: Socket
  readonly #bodyBytes: number
  readonly #fail: (reason: string) => void
  #answered: () => void = () => {}
  /** What has come of an answer's head, while it is not complete. */
  #head = ''
  #bodyLeft = 0

  /** Resolves when it is connected. `fail` is called once for an answer that is none of ours, or when the connection ends. */
  static open(
    where: { readonly port: number; readonly tls: boolean; readonly bodyBytes: number },
    fail: (reason: string) => void,
  ): Promise<Connection> {
    const at = { host: '127.0.0.1', port: where.port }
    const socket = where.tls
      ? connectTls({ ...at, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
      : connectPlain(at)
    return new Promise((resolve, reject) => {
      socket.once('error', reject)
      socket.once(where.tls ? 'secureConnect' : 'connect', () => {
        socket.off('error', reject)
        resolve(new Connection(socket, where.bodyBytes, fail))
      })
    })
  }

  constructor(socket: Socket, bodyBytes: number, fail: (reason: string) => void) {
    this.#socket = socket
    this.#bodyBytes = bodyBytes
    this.#fail = fail
    socket.setNoDelay(true)
    socket.on('data', (chunk) => this.#take(chunk))
    socket.on('error', (error) => fail(error.message))
    socket.on('end', () => fail('the connection was closed'))
  }

  /** Sends a request; `answered` is called when its answer is complete. */
  ask(request: Buffer, answered: () => void): void {
    this.#answered = answered
    this.#socket.write(request)
  }

  close(): void {
    this.#socket.removeAllListeners('end').on('data', () => {})
    this.#socket.destroy()
  }

  #take(chunk: Buffer): void {
    if (this.#bodyLeft > 0) return this.#takeBody(chunk.length)
    const text = this.#head + chunk.toString('latin1', 0, 16_384)
    const end = text.indexOf('\r\n\r\n')
    if (end < 0) return void (this.#head = text)
    const bodyStart = end + 4 - this.#head.length
    this.#head = ''
    if (!text.startsWith('HTTP/1.1 200 ')) return this.#fail(`not a 200 but:\n${text.slice(0, 2000)}`)
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(text.slice(0, end))?.[1] ?? NaN)
    if (length !== this.#bodyBytes) return this.#fail(`not ${this.#bodyBytes} bytes but:\n${text.slice(0, end)}`)
    this.#bodyLeft = length
    this.#takeBody(chunk.length - bodyStart)
  }

  #takeBody(bytes: number): void {
    this.#bodyLeft -= bytes
    if (this.#bodyLeft === 0) this.#answered()
    else if (this.#bodyLeft < 0) this.#fail('more bytes than were announced')
  }
}
