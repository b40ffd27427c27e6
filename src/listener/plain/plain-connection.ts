import type { Server as HttpServer } from 'node:http'
import type { Server as HttpsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { privatePartsLeftOut } from '../../core/node-private-parts.ts'
import { closeLater, writeToSocket } from '../../http/response.ts'
import { contentInUseBytes, requestMemory } from '../../limits/memory-budget.ts'
import { headEndBytes, headEndOf, incomplete } from '../../wire/fields.ts'
import { type ReadsOwner, ReusedReads } from '../../wire/read-buffers.ts'
import { EndedConnection } from './ended-connection.ts'
import { PlainRequest, type RequestConnection } from './plain-request.ts'
import { PlainResponse, type ResponseConnection } from './plain-response.ts'
import { plainRequestHead, type RequestHead } from './request-head.ts'

/** What connections need of the listener. */
export interface ConnectionOptions {
  /** Serves a plain request. */
  request(req: PlainRequest, res: PlainResponse): void
  /** The responses close their connections. */
  readonly isDraining: () => boolean
  /** The longest head that is read here, in bytes. */
  readonly maxHeadBytes: number
  /** Bytes have arrived. May close the connection. */
  arrived(bytes: number): void
  /** A request is rejected because it has not arrived completely. */
  incomplete(socket: Socket): void
}

/** What opens the connections. */
export interface ConnectionOwner {
  readonly options: ConnectionOptions
  readonly keepAliveFields: string
  /** Node's server reads the connection from now on. The bytes that were read are in the socket. */
  handOver(connection: Duplex): void
  closed(connection: ClientConnection): void
  /** Serves the connection by HTTP/2. Absent: the listener has no HTTP/2 without TLS. */
  readonly openHttp2?: ((socket: Socket) => void) | undefined
}

const empty = Buffer.alloc(0)
/** The beginning of the connection preface of HTTP/2, which looks like a request head. */
const http2Preface = 'PRI * HTTP/2.0\r\n\r\n'
/** A head in more parts than this is read by Node's parser, which reads each byte once. */
const maxHeadParts = 8
/** A connection with more bytes than this that wait for earlier requests is not read. */
const maxAheadBytes = 16 * 1024
/** A client that sends more content than this may get a large buffer, in bytes. */
const largeContentBytes = 64 * 1024

/**
 * One connection of a client, for one request at a time (RFC 9112 §9.3.2). It reads plain requests.
 * At the first request that is not plain, it passes the connection to Node's server, with all bytes
 * that were not read yet, and has nothing to do with it any more.
 */
class ClientConnection implements RequestConnection, ResponseConnection, ReadsOwner {
  readonly socket: Socket
  readonly keepAliveFields: string
  readonly #owner: ConnectionOwner
  /** Bytes that no request has taken yet. */
  #ahead: Buffer = empty
  #head: RequestHead | undefined
  /** In how many parts the head has arrived until now. */
  #headParts = 0
  #req: PlainRequest | undefined
  #res: PlainResponse | undefined
  #rest: EndedConnection | undefined
  /** The client sends nothing more. */
  #hasEnded = false
  #isContentHeld = false
  #isReading = true
  /** `undefined`: Node.js allocates memory for each read. */
  readonly #reads: ReusedReads | undefined
  hasServed = false
  /** Since when it has waited for a request or for the rest of its head, in ms, monotonic. */
  waitingSince = performance.now()

  constructor(socket: Socket, owner: ConnectionOwner) {
    this.socket = socket
    this.#owner = owner
    this.keepAliveFields = owner.keepAliveFields
    this.#reads = ReusedReads.begin(socket, this)
    socket.on('data', this.receive).on('end', this.#onEnd).on('close', this.#onClose)
    socket.on('drain', this.#onDrain).on('error', ignore)
  }

  /** `undefined` while no request is served. */
  get response(): PlainResponse | undefined {
    return this.#res
  }

  /** Node's server reads the last bytes of the client from it. */
  get rest(): Duplex | undefined {
    return this.#rest
  }

  get expectsMuch(): boolean {
    return this.#isReading && this.#req !== undefined && this.#req.expectedBytes > largeContentBytes
  }

  get isIdle(): boolean {
    return this.hasServed && this.#hasNothing
  }

  /** No byte of a request has arrived since the connection was opened. */
  get isUnused(): boolean {
    return !this.hasServed && this.#hasNothing
  }

  get #hasNothing(): boolean {
    return this.#req === undefined && this.#rest === undefined && this.#ahead.length === 0
  }

  /** The head of the next request has not arrived completely. */
  get awaitsHead(): boolean {
    return this.#req === undefined && this.#rest === undefined && !this.socket.writableEnded
  }

  /** An estimate of the memory of its requests, in bytes. */
  get heldBytes(): number {
    const [req, head] = [this.#req, this.#head]
    if (this.#rest !== undefined) return this.#rest.heldBytes
    if (req === undefined || head === undefined) return this.#ahead.length
    const ofHead = requestMemory(head.text.length)
    return this.#ahead.length + ofHead + req.heldBytes + (req.complete ? 0 : contentInUseBytes)
  }

  /** The client took too long for the head of a request (RFC 9110 §15.5.9). */
  timeOut(): void {
    this.#reject(408)
  }

  /** Responds without a request, and reads no request afterwards. */
  #reject(status: 400 | 408): void {
    // A browser may open a connection in advance, and send nothing.
    if (status === 400 || this.#ahead.length > 0) this.#owner.options.incomplete(this.socket)
    this.#dropRest()
    writeToSocket(this.socket, { status, headers: {}, body: '' })
  }

  holdContent(isHeld: boolean): void {
    this.#isContentHeld = isHeld
    this.#adjustReading()
  }

  responded(): void {
    // Without `Connection: close` the client may have sent its next request, also during a drain.
    if (this.#res?.shouldKeepAlive !== true || !this.#hasMore) this.#close()
    // A request that has arrived already waits until other connections were read, because one read
    // may contain hundreds of requests that are served at once.
    else if (this.#ahead.length > 0) setImmediate(() => this.#next())
    else this.#next()
  }

  get mayContinue(): boolean {
    return this.#req?.isKeepAlive === true && this.#hasMore && !this.#owner.options.isDraining()
  }

  get #hasMore(): boolean {
    return !this.#hasEnded || this.#ahead.length > 0
  }

  /** Closes the connection. All that the client still sends is dropped (RFC 9112 §9.6). */
  #close(): void {
    if (this.#hasEnded) return void this.socket.destroySoon()
    this.#dropRest()
    closeLater(this.socket.resume())
  }

  /** Drops the bytes that no request has taken, and all that arrive from now on. */
  #dropRest(): void {
    this.socket.off('data', this.receive)
    this.#reads?.drop()
    this.#ahead = empty
  }

  /** The response has been sent. The rest of the content of its request is dropped. */
  #next(): void {
    const req = this.#req
    if (req === undefined || this.socket.destroyed) return
    if (!req.complete) {
      this.#res = undefined
      req.removeAllListeners('data').removeAllListeners('end')
      req.on('end', () => this.#next())
      req.resume()
      return
    }
    req.close()
    this.hasServed = true
    this.#head = undefined
    this.#req = undefined
    this.#res = undefined
    this.waitingSince = performance.now()
    this.#isContentHeld = false
    const ahead = this.#ahead
    this.#ahead = empty
    if (ahead.length > 0) this.#readHead(ahead)
    if (this.#hasEnded && this.awaitsHead) this.#end()
    this.#adjustReading()
  }

  /** Data has arrived. */
  readonly receive = (bytes: Buffer): void => {
    const req = this.#req
    if (req === undefined) this.#readHead(this.#ahead.length === 0 ? bytes : Buffer.concat([this.#ahead, bytes]))
    else {
      const taken = req.arrive(bytes, this.#reads)
      if (taken < bytes.length) this.#keepAhead(bytes.subarray(taken))
    }
    this.#owner.options.arrived(bytes.length)
  }

  /** Keeps the bytes of later requests. */
  #keepAhead(bytes: Buffer): void {
    this.#ahead = this.#ahead.length === 0 ? this.#own(bytes) : Buffer.concat([this.#ahead, bytes])
    this.#adjustReading()
  }

  /** The bytes, in memory that is not overwritten. */
  #own(bytes: Buffer): Buffer {
    return this.#reads === undefined ? bytes : this.#reads.own(bytes)
  }

  #readHead(bytes: Buffer): void {
    const { maxHeadBytes } = this.#owner.options
    const at = headEndOf(bytes)
    if (at === incomplete && bytes.length < maxHeadBytes && this.#headParts < maxHeadParts && mayBecomePlain(bytes)) {
      if (this.#headParts === 0 && this.hasServed) this.waitingSince = performance.now()
      this.#headParts += 1
      this.#ahead = this.#own(bytes)
      return
    }
    this.#headParts = 0
    const head = at < 0 || at > maxHeadBytes ? undefined : plainRequestHead(bytes, at)
    if (head === undefined) return this.#handOver(bytes)
    const end = at + headEndBytes
    // The rest of the content never arrives (RFC 9112 §8).
    if (this.#hasEnded && bytes.length - end < head.contentLength) return this.#reject(400)
    this.#head = head
    const req = new PlainRequest(this, head)
    this.#req = req
    const rest = bytes.subarray(end)
    const taken = rest.length === 0 ? 0 : req.arrive(rest, this.#reads)
    this.#ahead = empty
    if (taken < rest.length) this.#keepAhead(rest.subarray(taken))
    const res = new PlainResponse(this, req)
    this.#res = res
    this.#owner.options.request(req, res)
    req.holdUnused()
  }

  /** Passes the connection to Node's server, with the bytes of a request that is not plain. */
  #handOver(bytes: Buffer): void {
    const { socket } = this
    if (this.#hasEnded) return this.#handOverEnd(bytes)
    socket.off('data', this.receive).off('end', this.#onEnd).off('close', this.#onClose)
    socket.off('drain', this.#onDrain).off('error', ignore)
    this.#owner.closed(this)
    socket.pause()
    socket.unshift(this.#own(bytes))
    this.#reads?.becomeStream()
    const { openHttp2 } = this.#owner
    // The client speaks HTTP/2 with prior knowledge (RFC 9113 §3.3, §3.4).
    if (openHttp2 !== undefined && !this.hasServed && bytes.toString('latin1').startsWith(http2Preface))
      return openHttp2(socket)
    this.#owner.handOver(socket)
    socket.resume()
  }

  /**
   * Passes the last bytes of a client that sends nothing more. No bytes can be put back into its
   * socket. They were kept behind an earlier request or head, so their memory is not overwritten.
   */
  #handOverEnd(bytes: Buffer): void {
    this.#rest = new EndedConnection(this.socket, bytes)
    this.#owner.handOver(this.#rest)
  }

  /** No request follows. If the beginning of one has arrived, Node's server rejects it. */
  #end(): void {
    const beginning = this.#ahead
    this.#ahead = empty
    if (beginning.length === 0) this.socket.end()
    else this.#handOverEnd(beginning)
  }

  /** A client that sends faster than its requests are served has to wait. */
  #adjustReading(): void {
    const isReading = !this.#isContentHeld && this.#ahead.length < maxAheadBytes
    if (isReading === this.#isReading) return
    this.#isReading = isReading
    if (isReading) this.socket.resume()
    else this.socket.pause()
  }

  readonly #onEnd = (): void => {
    this.#hasEnded = true
    if (this.#req === undefined) return this.#end()
    // The rest of the request never arrives.
    if (!this.#req.complete) this.socket.destroy()
    else if (this.#res !== undefined) this.#res.shouldKeepAlive &&= this.#hasMore
  }

  readonly #onDrain = (): void => void this.#res?.emit('drain')

  readonly #onClose = (): void => {
    this.#owner.closed(this)
    this.#rest?.destroy()
    this.#res?.closed()
    this.#req?.close()
  }
}

/** What a plain head can begin with. */
const beginning = /^[A-Z]{1,6}(?: |$)/

/** Whether the bytes could be the beginning of a plain head. */
function mayBecomePlain(bytes: Buffer): boolean {
  return beginning.test(bytes.toString('latin1', 0, 8))
}

function ignore(): void {}

export interface FrontOptions extends ConnectionOptions {
  /** How long a head may take to arrive, in ms. */
  readonly headersTimeoutMs: number
  /** How long a connection is kept without a request, in ms. */
  readonly keepAliveMs: number
  /** Node's server has begun to serve a connection. */
  readonly handedOver: (connection: Duplex) => void
  readonly openHttp2?: ConnectionOwner['openHttp2']
}

/** Node's server emits this event for a connection that it serves. */
type ServeSocket = (this: HttpServer | HttpsServer, connection: Duplex) => void

/**
 * Reads plain requests from the connections of a server, before Node's own parser. A connection
 * with any other request is passed to Node's server with its bytes unchanged.
 *
 * Node's server serves a connection in a listener of `connection`, or over TLS of
 * `secureConnection`, that its constructor adds. This class takes its place.
 */
export class Front implements ConnectionOwner {
  readonly #server: HttpServer | HttpsServer
  readonly #serveWithNode: ServeSocket
  readonly options: FrontOptions
  /** By their sockets. */
  readonly #connections = new Map<object, ClientConnection>()
  readonly keepAliveFields: string

  /**
   * Whether this class can serve the connections of a new server. The server must have the one
   * listener that this class replaces, and this process must use private parts.
   */
  static fits(server: HttpServer | HttpsServer, isTls: boolean): boolean {
    return privatePartsLeftOut() === undefined && server.listenerCount(eventOf(isTls)) === 1
  }

  /** The server must be new: nothing else listens for its connections. */
  constructor(server: HttpServer | HttpsServer, isTls: boolean, options: FrontOptions) {
    this.#server = server
    this.options = options
    this.keepAliveFields = `\r\nConnection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(options.keepAliveMs / 1000)}`
    const event = eventOf(isTls)
    this.#serveWithNode = server.listeners(event)[0] as ServeSocket
    server.removeAllListeners(event)
    server.on(event, (socket: Socket) => this.#open(socket))
    const sweeping = setInterval(() => this.#sweep(), Math.min(options.headersTimeoutMs / 2, 30_000)).unref()
    server.once('close', () => clearInterval(sweeping))
  }

  get openHttp2(): ConnectionOwner['openHttp2'] {
    return this.options.openHttp2
  }

  handOver(connection: Duplex): void {
    this.#serveWithNode.call(this.#server, connection)
    this.options.handedOver(connection)
  }

  /** The connection that reads a socket; `undefined` when Node's server does. */
  connectionOf(socket: object): ClientConnection | undefined {
    return this.#connections.get(socket)
  }

  closed(connection: ClientConnection): void {
    this.#connections.delete(connection.socket)
  }

  /** Closes the connections on which no request is served. */
  closeIdle(): void {
    for (const connection of this.#connections.values()) if (connection.isIdle) connection.socket.destroy()
  }

  /** Closes the connections on which no byte has arrived for this time, in ms. */
  closeUnused(afterMs: number): void {
    const since = performance.now() - afterMs
    for (const connection of this.#connections.values())
      if (connection.isUnused && connection.waitingSince < since) connection.socket.destroy()
  }

  closeAll(): void {
    for (const connection of this.#connections.values()) connection.socket.destroy()
  }

  #open(socket: Socket): void {
    // The connection was refused.
    if (socket.destroyed) return
    this.#connections.set(socket, new ClientConnection(socket, this))
  }

  #sweep(): void {
    const now = performance.now()
    const { headersTimeoutMs, keepAliveMs } = this.options
    for (const connection of this.#connections.values()) {
      const waitedMs = now - connection.waitingSince
      if (connection.isIdle) {
        if (waitedMs > keepAliveMs) connection.socket.destroy()
      } else if (connection.awaitsHead && waitedMs > headersTimeoutMs) connection.timeOut()
    }
  }
}

/** The event of a server for a new connection whose data can be read. */
function eventOf(isTls: boolean): 'secureConnection' | 'connection' {
  return isTls ? 'secureConnection' : 'connection'
}
