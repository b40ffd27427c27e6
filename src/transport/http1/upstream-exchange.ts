import { GatewayError } from '../../core/errors.ts'
import { fieldLine } from '../../wire/fields.ts'
import type { ExchangeControl, Progress, RequestContent, ResponseHandler, UpstreamRequest } from '../transport.ts'
import type { UnusualResponse } from '../undici/unusual-response.ts'
import type { PlainChunks, ResponseHead } from './response-head.ts'

/** What an exchange may do to its connection. */
export interface ExchangeConnection {
  pause(): void
  resume(): void
  /** Ends the exchange, and the connection with it. */
  abandon(exchange: UpstreamExchange, reason: Error): void
}

/**
 * One request and its response on a connection. The exchange loses its connection when it is over,
 * so a late call has no effect on the next exchange.
 */
export class UpstreamExchange implements ExchangeControl {
  readonly request: WrittenRequest
  readonly handler: ResponseHandler
  #head: string
  /** The request has been written to its end. */
  isSent = true
  /** A byte of the response has arrived. */
  hasResponse = false
  head: ResponseHead | undefined
  /** How many bytes of the content are still to come, if its length is known. */
  left = 0
  chunks: PlainChunks | undefined
  /** undici reads the rest of the response. */
  unusual: UnusualResponse | undefined
  isPaused = false
  #connection: ExchangeConnection | undefined

  constructor(connection: ExchangeConnection, request: WrittenRequest, handler: ResponseHandler) {
    this.#connection = connection
    this.request = request
    this.#head = request.head
    this.handler = handler
  }

  pause(): void {
    this.isPaused = true
    if (this.unusual !== undefined) this.unusual.pause()
    else this.#connection?.pause()
  }

  resume(): void {
    this.isPaused = false
    // The stream that undici reads resumes the connection when it has room for more data.
    if (this.unusual !== undefined) this.unusual.resume()
    else this.#connection?.resume()
  }

  abort(reason: Error): void {
    this.#connection?.abandon(this, reason)
  }

  get progress(): Progress {
    return this.hasResponse ? 'responding' : this.#head === '' ? 'sent' : 'unsent'
  }

  /** The head of the request, for its write; empty afterwards. */
  takeHead(): string {
    const head = this.#head
    this.#head = ''
    return head
  }

  /** The exchange is over. */
  detach(): void {
    this.#connection = undefined
  }
}

/** A request as it is written to a connection. */
export interface WrittenRequest {
  readonly method: string
  /** Request line, fields and the empty line. Each character is one byte. */
  readonly head: string
  readonly body: RequestContent | undefined
  /** The body has no Content-Length and is sent in chunks. */
  readonly isChunked: boolean
  /** The upstream may switch to another protocol. */
  readonly isUpgrade: boolean
  /** The address of the client. */
  readonly client: string | undefined
  /** It is not sent again. */
  readonly isRepetition: boolean
}

const expectsContent: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])

/** @throws {GatewayError} ERR_REQUEST_MALFORMED when a field is invalid */
export function writtenRequest({
  method,
  path,
  headers,
  identity,
  body,
  upgrade,
  client,
  isRepetition = false,
}: UpstreamRequest): WrittenRequest {
  let head = `${method} ${path} HTTP/1.1`
  let hasLength = false
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] as string
    if (name.length === 14 && name.toLowerCase() === 'content-length') hasLength = true
    head += field(name, headers[at + 1] as string)
  }
  const isChunked = body !== undefined && !hasLength
  if (isChunked) head += '\r\nTransfer-Encoding: chunked'
  // A request with such a method has the field even without content (RFC 9110 §8.6).
  else if (!hasLength && expectsContent.has(method)) head += '\r\nContent-Length: 0'
  head += identityText(identity)
  const isUpgrade = upgrade !== undefined
  if (isUpgrade) head += `\r\nConnection: Upgrade${field('Upgrade', upgrade)}\r\n\r\n`
  // A connection is not used again after HEAD, so the upstream may close it.
  else head += method === 'HEAD' ? '\r\nConnection: close\r\n\r\n' : '\r\nConnection: keep-alive\r\n\r\n'
  return { method, head, body, isChunked, isUpgrade, client, isRepetition }
}

const identityTexts = new WeakMap<readonly string[], string>()

/** The text of identity fields. Kept for frozen arrays, which many requests of a session share. */
function identityText(identity: readonly string[]): string {
  let text = identityTexts.get(identity)
  if (text !== undefined) return text
  text = ''
  for (let at = 0; at + 1 < identity.length; at += 2) text += field(identity[at] as string, identity[at + 1] as string)
  if (Object.isFrozen(identity)) identityTexts.set(identity, text)
  return text
}

/** The last guard against field injection. Parser and configuration reject such fields already. */
function field(name: string, value: string): string {
  const line = fieldLine(name, value)
  if (line === undefined)
    throw new GatewayError('ERR_REQUEST_MALFORMED', `the field "${name}" has an invalid name or value`)
  return line
}
