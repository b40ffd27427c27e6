import { isAuthority } from './host.ts'

/** The part of Node's `IncomingMessage` that says how a request is framed. */
export interface FramedRequest {
  readonly httpVersion: string
  readonly rawHeaders: readonly string[]
  readonly headers: {
    readonly host?: string | undefined
    readonly 'content-length'?: string | undefined
    readonly 'transfer-encoding'?: string | undefined
  }
  readonly url?: string | undefined
}

const absoluteForm = /^[a-z][a-z\d+.-]*:\/\/([^/?#]*)/i

/**
 * Why a request must be rejected: the gateway and an upstream could read its framing or its
 * authority in different ways (RFC 9112 §3.2, §6.1, §11.2). Node's parser accepts these requests.
 * Returns `undefined` for a valid request.
 */
export function framingFault(req: FramedRequest): string | undefined {
  if (req.httpVersion !== '1.1' && req.httpVersion !== '1.0') return `HTTP version ${req.httpVersion}`
  let hosts = 0
  let codings = 0
  let lengths = 0
  for (let index = 0; index < req.rawHeaders.length; index += 2) {
    const name = req.rawHeaders[index] as string
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1
    else if (name.length === 17 && name.toLowerCase() === 'transfer-encoding') codings += 1
    else if (name.length === 14 && name.toLowerCase() === 'content-length') lengths += 1
  }
  if (hosts > 1) return 'more than one Host'
  // RFC 9112 §3.2 requires it in HTTP/1.1. Health checks of load balancers use HTTP/1.0 without it.
  if (hosts === 0 && req.httpVersion === '1.1') return 'no Host'
  if (hosts === 1 && !isAuthority(req.headers.host ?? '')) return 'a malformed Host'
  // Both must be equal (RFC 9112 §3.2), because a server may route by either of them.
  const authority = absoluteForm.exec(req.url ?? '')?.[1]
  if (hosts === 1 && authority !== undefined && authority.toLowerCase() !== req.headers.host?.toLowerCase())
    return 'a Host that differs from the request target'
  if (codings + lengths > 1) return 'more than one of Content-Length and Transfer-Encoding'
  // Servers read a number beyond the precision of a double in different ways.
  if (lengths === 1 && !/^\d{1,15}$/.test(req.headers['content-length'] ?? ''))
    return 'a Content-Length that is too long'
  if (codings === 1 && req.httpVersion === '1.0') return 'Transfer-Encoding in HTTP/1.0'
  if (codings === 1 && req.headers['transfer-encoding']?.toLowerCase() !== 'chunked')
    return 'a transfer coding other than chunked'
  return undefined
}
