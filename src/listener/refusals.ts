import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type Response, writeToSocket } from '../http/response.ts'
import type { RejectedClients } from '../limits/rejected-clients.ts'
import type { Metrics } from '../observe/metrics.ts'
import { beginningBytes, type NodeConnections } from './node-connections.ts'
import type { RequestOrder } from './request-order.ts'

const pipeliningHint = 'The client sends requests without reading responses. It got 503, and its connection was closed.'

export const requestTimeout: Response = { status: 408, headers: {}, body: '' }
const malformed: Response = { status: 400, headers: {}, body: '' }
const tooManyRequests = plainText(503, 'Too many requests wait on this connection.\n')

/** The response to a client that uses the other scheme. */
function wrongScheme(scheme: 'http' | 'https'): Response {
  return plainText(400, `This port serves ${scheme} only.\n`)
}

function plainText(status: number, body: string): Response {
  return { status, headers: { 'Content-Type': 'text/plain' }, body }
}

/** An error of Node's parser. */
export interface ParserError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer
  readonly reason?: string
}

/** Why no request could be read. */
type Unreadable = 'header_size' | 'incomplete' | 'malformed' | 'http2' | 'http_on_tls' | 'tls_on_http'

const hints: Readonly<Record<Unreadable, string>> = {
  header_size:
    'The URL and the headers exceed limits.header_size. The usual cause is too many cookies of this domain: remove them in the browser (its page has a button for it), find the application that sets them, or raise the limit.',
  incomplete:
    'The client sent no complete request within limits.headers_timeout. A slow network or an attack is usual.',
  malformed:
    'The client sent no valid HTTP request. A scanner, or a client of another protocol, is usual. For HTTP/2 without TLS, set listen.h2c.',
  http2:
    'The client broke the rules of HTTP/2, or sent too many frames that carry nothing. A scanner or an attack is usual. Its connection was closed.',
  http_on_tls: 'The client used http, but listen has tls. Use https in its URL.',
  tls_on_http: 'The client used https, but listen has no tls. Use http in its URL, or set listen.tls.',
}

export interface ListenerRefusalsParts {
  readonly byNode: NodeConnections
  readonly order: RequestOrder
  readonly metrics: Metrics
  readonly rejectedClients: Pick<RejectedClients, 'note' | 'noteUnreadable'>
  /** See `ListenerHandlers`. */
  readonly headersTooLarge: (beginning: RequestBeginning | undefined) => Response
}

/**
 * Refuses what Node's server has not made a request of, and counts and logs that. The refusal ends
 * the connection.
 */
export class ListenerRefusals {
  readonly #parts: ListenerRefusalsParts
  readonly #unreadable: ReturnType<Metrics['counter']>

  constructor(parts: ListenerRefusalsParts) {
    this.#parts = parts
    this.#unreadable = parts.metrics.counter({
      name: 'gatehouse_unreadable_requests_total',
      help: 'Requests that the parser or TLS has rejected, by reason.',
      labels: ['reason'],
    })
    for (const reason of Object.keys(hints)) this.#unreadable.of(reason)
  }

  /** The request has not arrived completely. */
  incomplete({ remoteAddress }: Socket): void {
    this.#note('incomplete', remoteAddress, 'the request has not arrived completely')
  }

  /** The head of a request of HTTP/2 is larger than `limits.header_size`. */
  tooLarge({ remoteAddress }: Socket): void {
    this.#note('header_size', remoteAddress, 'the head of the stream is too large')
  }

  /** A connection of HTTP/2 ends, because of what its client has sent. */
  http2({ remoteAddress }: Socket, why: string): void {
    this.#note('http2', remoteAddress, why)
  }

  /** Too many requests wait on the connection. */
  overrun({ socket }: IncomingMessage): void {
    const { byNode, rejectedClients } = this.#parts
    if (byNode.hasStopped(socket)) return
    // Nothing is read after the last response (RFC 9112 §9.6).
    if (socket.writableEnded) return byNode.stop(socket)
    rejectedClients.note('pipelined requests', socket.remoteAddress ?? 'unknown', pipeliningHint)
    this.#refuseLast(socket, tooManyRequests)
  }

  /** Node's parser has rejected a request. */
  unreadable(error: ParserError, socket: Duplex): void {
    const { byNode, headersTooLarge } = this.#parts
    if (byNode.hasStopped(socket)) return
    if (error.code === 'ECONNRESET' || socket.destroyed) return void socket.destroy()
    // The client has sent more after its last request, or after the last response (RFC 9112 §9.6).
    if (error.code === 'HPE_CLOSED_CONNECTION' || socket.writableEnded) return byNode.stop(socket)
    const beginning = byNode.beginningOf(socket)
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
      if (beginning !== undefined) this.incomplete(socket as Socket)
      return this.#refuseLast(socket, requestTimeout)
    }
    const bytes = beginning ?? error.rawPacket
    const reason = reasonOf(error, bytes)
    this.#note(reason, (socket as Socket).remoteAddress, error.reason ?? error.message)
    if (reason === 'header_size') this.#refuseLast(socket, headersTooLarge(requestBeginning(bytes)))
    else this.#refuseLast(socket, reason === 'tls_on_http' ? wrongScheme('http') : malformed)
  }

  /** TLS has met a request of http. It has written nothing, so the client can read a response. */
  httpOnTls({ remoteAddress }: Socket, handshake: Socket | undefined, code: string): void {
    this.#note('http_on_tls', remoteAddress, code)
    if (handshake !== undefined) writeToSocket(handshake, wrongScheme('https'))
  }

  /** @param why the words of the parser, or of TLS */
  #note(reason: Unreadable, client: string | undefined, why: string): void {
    this.#unreadable.of(reason).add()
    this.#parts.rejectedClients.noteUnreadable(reason, client ?? 'unknown', why, hints[reason])
  }

  /** Reads nothing more from a connection, and sends this response as the last one. */
  #refuseLast(socket: Duplex, response: Response): void {
    this.#parts.byNode.stop(socket)
    this.#parts.order.refuseLast(socket, () => void writeToSocket(socket, response))
  }
}

/** Why Node's parser has rejected a request (RFC 9112 §2.2, RFC 6585 §5). */
function reasonOf({ code }: ParserError, bytes: Buffer | undefined): Unreadable {
  if (code === 'HPE_HEADER_OVERFLOW') return 'header_size'
  // The record of a ClientHello (RFC 8446 §5.1).
  return bytes?.[0] === 0x16 && bytes[1] === 0x03 ? 'tls_on_http' : 'malformed'
}

/** What the beginning of a request says that Node's parser has rejected. */
export interface RequestBeginning {
  readonly method: string
  readonly path: string
  /** The fields that have arrived, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
}

const requestLine = /^([A-Z]{1,16}) (\/[\x21-\x7e]*) HTTP\/1\.[01]\r\n/

/**
 * Reads the beginning of a request, only to choose the response to it: no parser has accepted it.
 * `undefined` when it does not look like a request.
 */
function requestBeginning(bytes: Buffer | undefined): RequestBeginning | undefined {
  const text = bytes?.toString('latin1', 0, beginningBytes) ?? ''
  const [line, method, target] = requestLine.exec(text) ?? []
  if (line === undefined || method === undefined || target === undefined) return undefined
  const fields = text.slice(line.length).matchAll(/^([\w-]{1,64}): *(.*)\r$/gm)
  const headers = Object.fromEntries([...fields].map(([, name = '', value = '']) => [name.toLowerCase(), value]))
  return { method, path: target.replace(/\?.*$/, ''), headers }
}
