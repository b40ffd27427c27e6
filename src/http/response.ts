import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { ErrorCode } from '../core/error-codes.ts'
import { privatePartsLeftOut } from '../core/node-private-parts.ts'
import type { RequestRecord } from '../observe/request-record.ts'
import type { ClientMessage, ClientReply } from './client-messages.ts'
import { hasBody } from './request-body.ts'
import type { RequestFacts } from './request-facts.ts'

/** A response of the gateway itself. It is a value: nothing has been sent yet. */
export interface Response {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body: string
  /** Takes the place of `body`, for content that is not text of the gateway. */
  readonly bytes?: Buffer
  /** Writes the content, which has no known end, in place of `body`. */
  readonly stream?: (res: ClientReply) => void
  /** The error that the response reports: for the access log and the metrics. */
  readonly code?: ErrorCode
}

/**
 * Header fields of all responses of the gateway itself. No cache may store these responses, because
 * they are for one person and one moment. Pages of other sites may not read them.
 */
export const ownHeaders = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
} as const

/**
 * Header field of responses at the end of a session. The browser clears the cache of this origin,
 * and the pages that it keeps for Back (W3C Clear Site Data §3.1). Only afterwards does it keep the
 * page that this response replaces, so another response has to clear that page. Browsers obey the
 * field over HTTPS and on loopback.
 */
export const clearCache = { 'Clear-Site-Data': '"cache"' } as const

/** The browser removes all cookies of the site, with those of its other hosts. */
export const clearCookies = { 'Clear-Site-Data': '"cookies"' } as const

/** The next URL of a browser, and the cookies that it stores or removes. */
export interface Redirect {
  readonly location: string
  readonly setCookies: readonly string[]
}

/** A redirect with 303, so that no browser sends a form to the new URL (RFC 9700 §4.12). */
export function redirect({ location, setCookies }: Redirect, headers: Response['headers'] = {}): Response {
  return empty(303, { ...headers, ...cookies(setCookies), Location: location })
}

export function json(status: number, value: unknown, headers: Response['headers'] = {}): Response {
  return {
    status,
    headers: { ...ownHeaders, ...headers, 'Content-Type': 'application/json' },
    body: `${JSON.stringify(value)}\n`,
  }
}

export function empty(status: number, headers: Response['headers'] = {}): Response {
  return { status, headers: { ...ownHeaders, ...headers }, body: '' }
}

export function withHeaders(response: Response, headers: Response['headers']): Response {
  return { ...response, headers: { ...response.headers, ...headers } }
}

/** The `Set-Cookie` field with these values; no field without values. */
export function cookies(setCookies: readonly string[]): Response['headers'] {
  return setCookies.length > 0 ? { 'Set-Cookie': setCookies } : {}
}

/** The reason phrase of a status (RFC 9110 §15). */
export function reasonPhrase(status: number): string {
  // Node.js still has the obsolete phrase of RFC 7231.
  return status === 413 ? 'Content Too Large' : (STATUS_CODES[status] ?? 'Error')
}

/** A request, and what its response is written to. */
export interface ResponseTo {
  readonly req: ClientMessage
  readonly res: ClientReply
  /** Fields that each response of the gateway itself gets. */
  readonly addedFields?: Response['headers'] | undefined
}

/**
 * Sends a response. The response to HEAD has no content. The connection is closed if request
 * content was not read (RFC 9112 §9.6), or if `close` is true.
 * @returns how many bytes of content were sent
 */
export function writeResponse({ req, res, addedFields = {} }: ResponseTo, response: Response, close = false): number {
  const { status, headers, body, bytes } = response
  if (!req.complete) closeWhenUnread(req, res)
  if (close) {
    res.setHeader('Connection', 'close')
    req.resume()
  }
  const length = bytes?.length ?? Buffer.byteLength(body)
  for (const [name, value] of Object.entries(headers)) {
    // The response may have cookies of the application already.
    if (name === 'Set-Cookie') res.appendHeader(name, value)
    else res.setHeader(name, value)
  }
  for (const [name, value] of Object.entries(addedFields)) res.appendHeader(name, value)
  if (response.stream !== undefined) {
    res.writeHead(status)
    response.stream(res)
    return 0
  }
  // RFC 9110 §8.6: a response with 204 has no Content-Length.
  if (status !== 204 && status !== 304) res.setHeader('Content-Length', length)
  res.writeHead(status)
  const isHead = req.method === 'HEAD'
  if (isHead) res.end()
  else if (bytes !== undefined) res.end(bytes)
  else res.end(body, 'utf8')
  return isHead ? 0 : length
}

/**
 * Sends a response over a socket that has no `ClientReply`, and closes the connection.
 * @returns how many bytes of content were sent
 */
export function writeToSocket(socket: Duplex, { status, headers, body }: Response): number {
  const length = Buffer.byteLength(body)
  const fields = [...Object.entries(headers), ['Content-Length', String(length)], ['Connection', 'close']] as const
  const lines = fields.flatMap(([name, value]) => [value].flat().map((each) => `${name}: ${String(each)}\r\n`))
  socket.on('error', () => {})
  socket.write(`HTTP/1.1 ${status} ${reasonPhrase(status)}\r\n${lines.join('')}\r\n`, 'latin1')
  socket.write(body)
  closeLater(socket.resume())
  return length
}

/** A request with its response, of which nothing has been verified yet. */
export interface Received extends ResponseTo {
  /** What the log, the metrics and the traces say about the request. */
  readonly record: RequestRecord
}

/** One request on its way through the gateway, with its response. */
export interface Incoming extends Received {
  readonly facts: RequestFacts
}

/** How long a client may continue to send after the response that closes its connection, in ms. */
const lingerMs = 2_000

/**
 * Keeps a connection open for a while after its last response, because its client may still be
 * sending. If it were closed at once, the kernel would reset the connection and the client could
 * lose the response (RFC 9112 §9.6). What still arrives must be dropped: of a request that has not
 * arrived completely, by `resume`.
 *
 * Node's HTTP server calls `destroySoon` of the socket after the last response (tested by
 * test/http/lingering-close.test.ts). With a version that calls another method, the connection
 * closes at once.
 */
export function lingerOnClose(socket: ClientMessage['socket']): void {
  if (privatePartsLeftOut() === undefined) socket.destroySoon = () => closeLater(socket)
}

/** Ends a connection, and closes it later: see {@link lingerOnClose}. */
export function closeLater(socket: Duplex): void {
  socket.end()
  const closing = setTimeout(() => socket.destroy(), lingerMs).unref()
  socket.once('close', () => clearTimeout(closing))
}

/**
 * Closes the connection with the response to a request that is not complete, if it has content.
 * Call it before the head of the response is written.
 */
export function closeWhenUnread(req: ClientMessage, res: ClientReply): void {
  if (!hasBody(req)) return
  res.setHeader('Connection', 'close')
  req.resume()
}
