import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { singleFields } from '../../core/header-fields.ts'

/** A request of HTTP/2, as HTTP/1.1 would write it. */
export interface RequestHead {
  readonly method: string
  readonly url: string
  /** RFC 9113 §8.3.1. Empty: a CONNECT has none. */
  readonly scheme: string
  /** RFC 8441 §4. */
  readonly protocol: string | undefined
  readonly rawHeaders: string[]
  readonly headers: IncomingHttpHeaders
  /** The memory of the head, in bytes: what its text in HTTP/1.1 takes. */
  readonly bytes: number
}

/** The bytes of a field line of HTTP/1.1 beside name and value: `: ` and CRLF. */
const lineBytes = 4
/** The bytes of a request line beside method and target: two spaces, `HTTP/1.1` and CRLF. */
const requestLineBytes = 12

/**
 * The head of a request of HTTP/2 in the words of HTTP/1.1 (RFC 9113 §8.3.1, RFC 9110 §7.6.1), so
 * that one set of rules holds for both versions. `:authority` is `Host`. If the client sends a
 * `Host` that differs from it, the request has two. The parts of a cookie are one field (RFC 9113
 * §8.2.3). Content without a length is chunked. nghttp2 has refused the fields that HTTP/2 does not
 * allow, such as `Connection` (§8.2.2).
 *
 * @param received names and values in turn
 * @param hasContent DATA frames follow
 */
export function requestHead(received: readonly string[], hasContent: boolean): RequestHead {
  const pseudo = new Map<string, string>()
  const rawHeaders: string[] = []
  let cookieAt = -1
  for (let at = 0; at + 1 < received.length; at += 2) {
    const name = received[at] as string
    const value = received[at + 1] as string
    if (name.startsWith(':')) pseudo.set(name, value)
    else if (name === 'host' && value.toLowerCase() === pseudo.get(':authority')?.toLowerCase()) continue
    // HTTP/2 has no key (RFC 8441 §5). The gateway adds its own below.
    else if (name === 'sec-websocket-key' && pseudo.has(':protocol')) continue
    else if (name === 'cookie' && cookieAt >= 0) rawHeaders[cookieAt] += `; ${value}`
    else {
      rawHeaders.push(name, value)
      if (name === 'cookie') cookieAt = rawHeaders.length - 1
    }
  }
  const authority = pseudo.get(':authority')
  if (authority !== undefined) rawHeaders.unshift('host', authority)
  const protocol = pseudo.get(':protocol')
  if (protocol !== undefined)
    rawHeaders.push(
      'connection',
      'upgrade',
      'upgrade',
      protocol,
      'sec-websocket-key',
      randomBytes(16).toString('base64'),
    )
  else if (hasContent && !rawHeaders.some((text, at) => at % 2 === 0 && text === 'content-length'))
    rawHeaders.push('transfer-encoding', 'chunked')
  const method = pseudo.get(':method') ?? ''
  const url = pseudo.get(':path') ?? ''
  return {
    // An extended CONNECT is the request that HTTP/1.1 makes with GET and Upgrade (RFC 8441 §5).
    method: protocol === undefined ? method : 'GET',
    url,
    protocol,
    rawHeaders,
    scheme: pseudo.get(':scheme') ?? '',
    headers: headersByName(rawHeaders),
    bytes: rawHeaders.reduce(
      (sum, text) => sum + text.length,
      method.length + url.length + requestLineBytes + (rawHeaders.length / 2) * lineBytes,
    ),
  }
}

/** The values by name, as `IncomingMessage.headers` of Node.js has them. */
function headersByName(rawHeaders: readonly string[]): IncomingHttpHeaders {
  const headers = Object.create(null) as Record<string, string | string[]>
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string
    const value = rawHeaders[at + 1] as string
    const earlier = headers[name]
    if (name === 'set-cookie') headers[name] = [...(earlier ?? []), value]
    else if (earlier === undefined) headers[name] = value
    else if (!singleFields.has(name)) headers[name] = `${earlier as string}, ${value}`
  }
  return headers
}
