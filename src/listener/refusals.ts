import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type RequestBeginning, requestBeginning } from '../http/request-beginning.ts'
import { type Response, writeToSocket } from '../http/response.ts'
import type { RejectedClients } from '../limits/rejected-clients.ts'
import type { NodeConnections } from './node-connections.ts'
import type { RequestOrder } from './request-order.ts'
import type { Unreadable, UnreadableRequests } from './unreadable-requests.ts'

const pipeliningHint = 'The client sends requests without reading responses. It got 503, and its connection was closed.'

export const requestTimeout: Response = { status: 408, headers: {}, body: '' }
const malformed: Response = { status: 400, headers: {}, body: '' }
const tooManyRequests = plainText(503, 'Too many requests wait on this connection.\n')

/** The response to a client that uses the other scheme. */
export function wrongScheme(scheme: 'http' | 'https'): Response {
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

export interface ListenerRefusalsParts {
  readonly byNode: NodeConnections
  readonly order: RequestOrder
  readonly unreadable: UnreadableRequests
  readonly rejectedClients: Pick<RejectedClients, 'note'>
  /** See `ListenerHandlers`. */
  readonly headersTooLarge: (beginning: RequestBeginning | undefined) => Response
}

/** Refuses what Node's server has not made a request of. The refusal ends the connection. */
export class ListenerRefusals {
  readonly #parts: ListenerRefusalsParts

  constructor(parts: ListenerRefusalsParts) {
    this.#parts = parts
  }

  /** The request has not arrived completely. */
  incomplete({ remoteAddress }: Socket): void {
    this.#parts.unreadable.note('incomplete', remoteAddress, 'the request has not arrived completely')
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
    const { byNode, unreadable, headersTooLarge } = this.#parts
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
    unreadable.note(reason, (socket as Socket).remoteAddress, error.reason ?? error.message)
    if (reason === 'header_size') this.#refuseLast(socket, headersTooLarge(requestBeginning(bytes)))
    else this.#refuseLast(socket, reason === 'tls_on_http' ? wrongScheme('http') : malformed)
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
