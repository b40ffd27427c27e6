import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { contentInUseBytes, requestMemory } from '../limits/memory-budget.ts'

/** How much of a head is kept for the response to it, in bytes. Browsers send `Cookie` last. */
export const beginningBytes = 4096

interface NodeConnection {
  /** The memory of the beginning of a head that Node's parser holds, in bytes. */
  headBytes: number
  /** The first bytes of that head. */
  beginning: Buffer | undefined
  /** Whether the latest bytes contained a head. */
  hasBegun: boolean
  /** The latest request. */
  req: IncomingMessage | undefined
  /** The memory of all requests that have not ended, in bytes. */
  requestBytes: number
  hasStopped: boolean
  readonly receive: (bytes: Buffer) => void
}

/** What Node's server holds for the connections that it reads. */
export class NodeConnections {
  readonly #connections = new WeakMap<Duplex, NodeConnection>()
  readonly #arrived: (bytes: number) => void

  /** @param arrived called with the number of bytes that have arrived */
  constructor(arrived: (bytes: number) => void) {
    this.#arrived = arrived
  }

  /**
   * Node's server has begun to serve the connection. A listener for `data` makes it read from the
   * stream of the socket. Otherwise its parser reads from TCP or TLS itself, so that the bytes
   * cannot be counted. Over TLS, the parser would also read later bytes before those that wait in
   * the stream, and reject bytes that TLS has decrypted while the server does not read.
   *
   * Node does not document that effect of a listener (tested by
   * test/regressions/an-upload-is-garbled-over-tls.test.ts, by
   * test/regressions/pipelining-over-tls-truncates-a-response.test.ts and by
   * test/regressions/unfinished-requests-end-the-process.test.ts).
   */
  serve(socket: Duplex): void {
    const receive = (bytes: Buffer) => {
      if (connection.hasStopped) return
      // The parser has read the bytes by now.
      if (connection.req?.complete === false) connection.headBytes = 0
      // The beginning of another head may follow the head in them.
      else connection.headBytes = memoryOf(bytes) + (connection.hasBegun ? 0 : connection.headBytes)
      if (connection.req?.complete === false || connection.hasBegun) connection.beginning = undefined
      else connection.beginning ??= Buffer.from(bytes.subarray(0, beginningBytes))
      connection.hasBegun = false
      this.#arrived(bytes.length)
    }
    const connection: NodeConnection = {
      headBytes: 0,
      beginning: undefined,
      hasBegun: false,
      req: undefined,
      requestBytes: 0,
      hasStopped: false,
      receive,
    }
    this.#connections.set(socket, connection)
    socket.on('data', receive)
  }

  /** Node's server has read the head of a request. */
  begin(req: IncomingMessage, res: ServerResponse): void {
    const connection = this.#connections.get(req.socket)
    if (connection === undefined) return
    const bytes = requestMemory(headBytesOf(req))
    connection.req = req
    connection.hasBegun = true
    connection.requestBytes += bytes
    res.once('close', () => (connection.requestBytes -= bytes))
  }

  /** Node's server does not read the connection after this request, which asks for an upgrade. */
  leave(req: IncomingMessage): void {
    const connection = this.#connections.get(req.socket)
    if (connection === undefined) return
    req.socket.off('data', connection.receive)
    connection.headBytes = 0
    connection.requestBytes += requestMemory(headBytesOf(req))
  }

  /** Node's server reads nothing more from the connection. All that still arrives is dropped. */
  stop(socket: Duplex): void {
    const connection = this.#connections.get(socket)
    if (connection !== undefined) {
      connection.hasStopped = true
      connection.headBytes = 0
      connection.beginning = undefined
    }
    // Also the listener of Node's server, which would parse them.
    socket.removeAllListeners('data').resume()
  }

  hasStopped(socket: Duplex): boolean {
    return this.#connections.get(socket)?.hasStopped === true
  }

  /** The first bytes of a head that arrives in several parts; `undefined` during the first one. */
  beginningOf(socket: Duplex): Buffer | undefined {
    return this.#connections.get(socket)?.beginning
  }

  /** The head of the next request has not arrived completely. */
  awaitsHead(socket: Duplex): boolean {
    const connection = this.#connections.get(socket)
    return connection !== undefined && connection.requestBytes === 0
  }

  /** An estimate of the memory of the requests of the connection, in bytes. */
  heldBytes(socket: Duplex): number {
    const connection = this.#connections.get(socket)
    if (connection === undefined) return 0
    const { headBytes, requestBytes, req } = connection
    const contentBytes = req === undefined || req.complete ? 0 : contentInUseBytes + req.readableLength
    return headBytes + requestBytes + contentBytes
  }
}

/** The memory of a field beside its text, in bytes: two texts, and their places in a list. */
const fieldBytes = 64
const lineFeed = 0x0a

/** The memory of a part of a head that Node's parser has read, in bytes. */
function memoryOf(part: Buffer): number {
  let bytes = part.length
  for (const byte of part) if (byte === lineFeed) bytes += fieldBytes
  return bytes
}

function headBytesOf({ url = '', rawHeaders }: IncomingMessage): number {
  return rawHeaders.reduce((bytes, text) => bytes + text.length, url.length)
}
