// The application behind every contender. It writes bytes to plain sockets, so that it affects the
// results as little as possible.
//
//   GET /bytes/N          N bytes
//   GET /typical/N        N bytes, with as many header fields as responses usually have; 417 if the
//                         request does not have the fields of a browser
//   POST /upload          reads a body of a known length, and responds with 1 KiB
//   GET /alone            a page without files
//   GET /whoami           the head of the request, as text
//   GET /ws               a WebSocket that returns each message
//   other requests        what is recorded in the folder that its argument names
//
// A request with X-Session-Cookie and without the cookie SID gets one.
//
// A request with X-Page gets HTML, with an address of the application in each KiB. The address is
// as long as that of the gateway.
//
// A request with X-Bench-Person: N must contain the identity headers of that person. Otherwise the
// response is 417.
import { createHash } from 'node:crypto'
import { createServer, type Socket } from 'node:net'
import { hasTypicalFields, responseFields } from './load/typical-fields.ts'
import { claimValues } from './people.ts'
import { serving } from './process.ts'
import { recordedResponse } from './recording.ts'
import { echoFrames } from './websocket-echo.ts'

function answer(status: string, body: Buffer, type = 'text/plain', fields: readonly string[] = []): Buffer {
  const lines = [`HTTP/1.1 ${status}`, `content-type: ${type}`, `content-length: ${body.length}`, ...fields]
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body])
}

const typicalLines = Object.entries(responseFields).map(([name, value]) => `${name}: ${value}`)

/** By path. */
const bodies = new Map<string, Buffer>()
function bytes(path: string): Buffer {
  const known = bodies.get(path)
  if (known) return known
  const [, kind, size] = path.split('/')
  const body = Buffer.alloc(Number(size), 'x')
  const isTypical = kind === 'typical'
  const made = isTypical
    ? answer('200 OK', body, 'application/json; charset=utf-8', [`date: ${new Date().toUTCString()}`, ...typicalLines])
    : answer('200 OK', body)
  bodies.set(path, made)
  return made
}
/** A page of that size, for a gateway at a port. */
function page(size: string, port: string): Buffer {
  const known = bodies.get(`${size} ${port}`)
  if (known) return known
  const piece = `<a href="http://127.0.0.2:${port}/a">`.padEnd(1024, 'text ')
  const content = Buffer.from(piece.repeat(Math.ceil(Number(size) / piece.length)).slice(0, Number(size)))
  const made = answer('200 OK', content, 'text/html')
  bodies.set(`${size} ${port}`, made)
  return made
}
const received = answer('200 OK', Buffer.alloc(1024, 'x'))
const withCookie = Buffer.from(
  `HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 1024\r\nset-cookie: SID=${'s'.repeat(32)}; Path=/\r\n\r\n${'x'.repeat(1024)}`,
)
const noIdentity = answer('417 Expectation Failed', Buffer.from('The identity headers are not those of the person.\n'))
const noFields = answer('417 Expectation Failed', Buffer.from('Header fields of the client are missing.\n'))
const alone = answer('200 OK', Buffer.from('<!doctype html><title>Application</title><p>Welcome.'), 'text/html')
const unknown = answer('404 Not Found', Buffer.alloc(0))

const [folder = ''] = process.argv.slice(2)
const endOfHead = '\r\n\r\n'

/** The connection of a client, with one request after the other. */
class Connection {
  readonly #socket: Socket
  #text = ''
  /** The remaining bytes of a request body, and the response to send after it. */
  #bodyLeft = 0
  #afterBody: Buffer = received
  /** The last parsed head, because most requests on a connection are equal. */
  #lastHead = ''
  #lastResponse: Buffer = unknown

  constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('error', () => socket.destroy())
    socket.on('data', this.#onData)
  }

  readonly #onData = (chunk: Buffer) => {
    if (this.#bodyLeft > 0) {
      const taken = Math.min(this.#bodyLeft, chunk.length)
      this.#bodyLeft -= taken
      if (this.#bodyLeft > 0) return
      this.#socket.write(this.#afterBody)
      if (taken === chunk.length) return
      chunk = chunk.subarray(taken)
    }
    this.#text += chunk.toString('latin1')
    for (;;) {
      const end = this.#text.indexOf(endOfHead)
      if (end < 0) return
      const head = this.#text.slice(0, end + endOfHead.length)
      this.#text = this.#text.slice(head.length)
      if (this.#onHead(head)) return
    }
  }

  /** Responds to a request. Returns whether the next bytes on the connection are not a head. */
  #onHead(head: string): boolean {
    if (head.startsWith('GET /bytes/') || head.startsWith('GET /typical/')) {
      if (head !== this.#lastHead) {
        this.#lastHead = head
        this.#lastResponse = isIdentified(head) ? bytes(/^GET (\/\w+\/\d+)/.exec(head)?.[1] ?? '/bytes/0') : noIdentity
        if (head.startsWith('GET /typical/') && !hasTypicalFields(head)) this.#lastResponse = noFields
        if (isIdentified(head) && head.includes('\r\nX-Session-Cookie: ') && !head.includes('SID='))
          this.#lastResponse = withCookie
        const [, size = '', port = ''] = /^GET \/bytes\/(\d+)[^]*\r\nhost: [^:]*:(\d+)\r\n/i.exec(head) ?? []
        if (isIdentified(head) && head.includes('\r\nX-Page: ')) this.#lastResponse = page(size, port)
      }
      this.#socket.write(this.#lastResponse)
      return false
    }
    if (head.startsWith('POST /upload')) return this.#readBody(head, isIdentified(head) ? received : noIdentity)
    if (/^upgrade: websocket/im.test(head)) return this.#upgrade(head)
    if (head.startsWith('GET /alone')) this.#socket.write(alone)
    else if (head.startsWith('GET /whoami')) this.#socket.write(answer('200 OK', Buffer.from(head, 'latin1')))
    else if (head.startsWith('POST ')) return this.#readBody(head, recordedResponse(folder, head) ?? unknown)
    else this.#socket.write(recordedResponse(folder, head) ?? unknown)
    return false
  }

  #readBody(head: string, response: Buffer): boolean {
    const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? NaN)
    if (Number.isNaN(length)) throw new Error(`an upload of unknown length:\n${head}`)
    this.#afterBody = response
    this.#bodyLeft = length - this.#text.length
    this.#text = ''
    if (this.#bodyLeft > 0) return true
    this.#bodyLeft = 0
    this.#socket.write(this.#afterBody)
    return false
  }

  /** RFC 6455 §4.2.2 */
  #upgrade(head: string): boolean {
    const key = /^sec-websocket-key: *(\S+)/im.exec(head)?.[1] ?? ''
    const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
    const isWelcome = isIdentified(head)
    if (!isWelcome) return this.#socket.write(noIdentity) && false
    this.#socket.off('data', this.#onData)
    this.#socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`,
    )
    echoFrames(this.#socket, Buffer.from(this.#text, 'latin1'))
    return true
  }
}

/** Whether the head contains each claim value of its person as the whole value of a header. */
function isIdentified(head: string): boolean {
  const person = /^x-bench-person: (\d+)\r$/im.exec(head)?.[1]
  return person === undefined || claimValues(Number(person)).every((value) => head.includes(`: ${value}\r\n`))
}

serving(createServer({ noDelay: true }, (socket) => void new Connection(socket)))
