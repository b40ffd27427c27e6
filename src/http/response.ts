import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { ErrorCode } from '../core/error-codes.ts'
import { closeWhenUnread, lingerMs, lingerOnClose } from './lingering-close.ts'

/** A response that the gateway gives itself, as a value: nothing has been sent yet. */
export interface Response {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body: string
  /** The error that the response reports: for the access log and the metrics. */
  readonly code?: ErrorCode
}

/**
 * Header fields of each response of the gateway itself: it is for one person and one moment, and
 * not for pages of other sites.
 */
export const ownHeaders = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
} as const

/**
 * Header field of responses at the end of a session: the browser removes what it keeps of this
 * origin in its cache, and pages that it keeps for Back (W3C Clear Site Data §3.1). The page that
 * this response replaces is kept for Back only after the response, so that it takes one more
 * response to remove it. Browsers obey the field over HTTPS and on loopback.
 */
export const clearCache = { 'Clear-Site-Data': '"cache"' } as const

/** Where a browser goes next, and the cookies that it stores or drops. */
export interface Redirect {
  readonly location: string
  readonly setCookies: readonly string[]
}

/**
 * 303: the browser goes on with GET whatever the method was, and never posts a form onwards (RFC
 * 9700 §4.12).
 */
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

/** The `Set-Cookie` fields of these values; none when there are none. */
export function cookies(setCookies: readonly string[]): Response['headers'] {
  return setCookies.length > 0 ? { 'Set-Cookie': setCookies } : {}
}

/** The reason phrase of a status (RFC 9110 §15). */
export function reasonPhrase(status: number): string {
  // Node.js has the name of RFC 7231.
  return status === 413 ? 'Content Too Large' : (STATUS_CODES[status] ?? 'Error')
}

/**
 * Sends a response, without its content when the method is HEAD. A connection with request content
 * that was not read is closed (RFC 9112 §9.6), and so is one that the caller wants closed. Returns
 * how many bytes of content were sent.
 */
export function writeResponse(req: IncomingMessage, res: ServerResponse, response: Response, close = false): number {
  const { status, headers, body } = response
  closeWhenUnread(req, res)
  if (close) {
    res.setHeader('Connection', 'close')
    lingerOnClose(req)
  }
  const length = Buffer.byteLength(body)
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value)
  // RFC 9110 §8.6: a response with 204 has no Content-Length.
  if (status !== 204) res.setHeader('Content-Length', length)
  res.writeHead(status)
  const isHead = req.method === 'HEAD'
  res.end(isHead ? undefined : body)
  return isHead ? 0 : length
}

/**
 * Sends a response over a socket that has no `ServerResponse`, and closes the connection. Returns
 * how many bytes of content were sent.
 */
export function writeToSocket(socket: Duplex, { status, headers, body }: Response): number {
  const length = Buffer.byteLength(body)
  const fields = [...Object.entries(headers), ['Content-Length', String(length)], ['Connection', 'close']] as const
  const lines = fields.flatMap(([name, value]) => [value].flat().map((each) => `${name}: ${String(each)}\r\n`))
  socket.on('error', () => {})
  socket.write(`HTTP/1.1 ${status} ${reasonPhrase(status)}\r\n${lines.join('')}\r\n`, 'latin1')
  socket.end(body)
  // Closed at once, the connection would be reset and the response lost (RFC 9112 §9.6). What the
  // client still sends is dropped.
  socket.resume()
  setTimeout(() => socket.destroy(), lingerMs).unref()
  return length
}
