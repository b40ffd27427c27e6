import { singleFields } from '../core/header-fields.ts'
import type { ReceivedRequest } from '../http/request-facts.ts'
import type { FramedRequest } from '../http/unambiguous-request.ts'

/** A request to explain. */
export interface SuppliedRequest {
  readonly method: string
  /** The request target as in the request line, not normalized. */
  readonly target: string
  /** Alternating names and values, including `Host`. */
  readonly rawHeaders: readonly string[]
  /** The address of the client or proxy; absent: some address that is not a trusted proxy. */
  readonly peer: string | undefined
}

/** The request as the gateway's HTTP server receives it. */
export type ArrivedRequest = ReceivedRequest & FramedRequest & { readonly headers: Readonly<Record<string, string>> }

/** The request as Node's parser provides it. `encrypted`: TLS ends in the gateway. */
export function arrived({ method, target, rawHeaders, peer }: SuppliedRequest, encrypted: boolean): ArrivedRequest {
  const headers: Record<string, string> = {}
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase()
    const value = rawHeaders[at + 1] as string
    const before = headers[name]
    if (before === undefined) headers[name] = value
    else if (!singleFields.has(name)) headers[name] = `${before}${name === 'cookie' ? '; ' : ', '}${value}`
  }
  return { method, url: target, httpVersion: '1.1', headers, rawHeaders, socket: { remoteAddress: peer, encrypted } }
}
