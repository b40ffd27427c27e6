import type { Socket } from 'node:net'
import type { Asker } from './loads.ts'
import type { RequestsOrder, Visitor } from './order.ts'
import { openSocket } from './sockets.ts'
import { cookies, requestFields } from './typical-fields.ts'

export function requestOf(order: RequestsOrder, { cookie, person }: Visitor): Buffer {
  const { port, bodyBytes, uploadBytes } = order
  const isTypical = order.fields === 'typical'
  const origin = `127.0.0.1:${port}`
  const sent = [cookie, ...(isTypical ? cookies : [])].filter(Boolean).join('; ')
  const path = `/${isTypical ? 'typical' : 'bytes'}/${bodyBytes}`
  const lines = [
    uploadBytes === undefined ? `GET ${path} HTTP/1.1` : 'POST /upload HTTP/1.1',
    `host: ${origin}`,
    ...(isTypical ? typicalLines(origin) : ['user-agent: bench', 'accept: text/html']),
    ...(uploadBytes === undefined ? [] : [`content-length: ${uploadBytes}`, 'content-type: application/octet-stream']),
    ...(sent === '' ? [] : [`cookie: ${sent}`]),
    ...(person === undefined ? [] : [`x-bench-person: ${person}`]),
  ]
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), Buffer.alloc(uploadBytes ?? 0, 'x')])
}

function typicalLines(origin: string): readonly string[] {
  const lines = Object.entries(requestFields).map(([name, value]) => `${name}: ${value}`)
  return [...lines, `referer: http://${origin}/orders`]
}

/**
 * A persistent connection of a client. It sends one request at a time, as bytes, and expects a 200
 * of a known length, perhaps in chunks. It parses as little of HTTP as possible, so that the
 * clients cost less than the gateway.
 */
export class Connection implements Asker {
  readonly #socket: Socket
  readonly #bodyBytes: number
  readonly #fail: (reason: string) => void
  #responded: () => void = () => {}
  /** The received part of a response head that is not complete. */
  #head = ''
  #bodyLeft = 0
  /** What has arrived of content in chunks (RFC 9112 §7.1). */
  #chunks: string | undefined

  /** Calls `fail` when a response is not the expected one, or when the connection ends. */
  constructor(socket: Socket, bodyBytes: number, fail: (reason: string) => void) {
    this.#socket = socket
    this.#bodyBytes = bodyBytes
    this.#fail = fail
    socket.on('data', (chunk) => this.#take(chunk))
  }

  ask(request: Buffer, answered: () => void): void {
    this.#responded = answered
    this.#socket.write(request)
  }

  #take(chunk: Buffer): void {
    if (this.#bodyLeft > 0) return this.#takeBody(chunk.length)
    if (this.#chunks !== undefined) return this.#takeChunks(chunk.toString('latin1'))
    const text = this.#head + chunk.toString('latin1', 0, 16_384)
    const end = text.indexOf('\r\n\r\n')
    if (end < 0) return void (this.#head = text)
    const bodyStart = end + 4 - this.#head.length
    this.#head = ''
    if (!text.startsWith('HTTP/1.1 200 ')) return this.#fail(`not a 200 but:\n${text.slice(0, 2000)}`)
    if (/\r\ntransfer-encoding: *chunked/i.test(text.slice(0, end))) {
      this.#chunks = ''
      return this.#takeChunks(chunk.toString('latin1', bodyStart))
    }
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(text.slice(0, end))?.[1] ?? NaN)
    if (length !== this.#bodyBytes) return this.#fail(`not ${this.#bodyBytes} bytes but:\n${text.slice(0, end)}`)
    this.#bodyLeft = length
    this.#takeBody(chunk.length - bodyStart)
  }

  #takeChunks(text: string): void {
    const chunks = (this.#chunks ?? '') + text
    this.#chunks = chunks
    if (!chunks.endsWith('\r\n0\r\n\r\n')) return
    this.#chunks = undefined
    let [at, bytes] = [0, 0]
    for (let size = 1; size > 0;) {
      const end = chunks.indexOf('\r\n', at)
      size = Number.parseInt(chunks.slice(at, end), 16)
      bytes += size
      at = end + 2 + size + 2
    }
    if (bytes === this.#bodyBytes) this.#responded()
    else this.#fail(`not ${this.#bodyBytes} bytes but ${bytes}`)
  }

  #takeBody(bytes: number): void {
    this.#bodyLeft -= bytes
    if (this.#bodyLeft === 0) this.#responded()
    else if (this.#bodyLeft < 0) this.#fail('more bytes than were announced')
  }
}

/** Opens a connection for each request, and closes it after the response. */
export class Reconnecting implements Asker {
  readonly #order: RequestsOrder
  readonly #fail: (reason: string) => void

  constructor(order: RequestsOrder, fail: (reason: string) => void) {
    this.#order = order
    this.#fail = fail
  }

  ask(request: Buffer, answered: () => void): void {
    openSocket(this.#order).then(
      (socket) => {
        socket.on('error', (error) => this.#fail(error.message))
        new Connection(socket, this.#order.bodyBytes, this.#fail).ask(request, () => {
          socket.destroy()
          answered()
        })
      },
      (error: Error) => this.#fail(error.message),
    )
  }
}
