import type { FramedRequest } from '../http/framing.ts'
import type { ReceivedRequest } from '../http/request-facts.ts'

/** A request as it would arrive, made up. */
export interface SuppliedRequest {
  readonly method: string
  /** As it would stand in the request line; never normalised. */
  readonly target: string
  /** Names and values in turn, `Host` among them. */
  readonly rawHeaders: readonly string[]
  /**
   * The address that the connection comes from; absent: of nobody in particular, who is no trusted
   * proxy.
   */
  readonly peer: string | undefined
}

/** What a gateway is given of a request. */
export type ArrivedRequest = ReceivedRequest & FramedRequest & { readonly headers: Readonly<Record<string, string>> }

/** Node leaves these out when they come a second time. */
const single = new Set(['host', 'content-length', 'content-type', 'authorization', 'user-agent', 'referer', 'from'])

/** The request as Node's parser would hand it over. `encrypted`: the gateway itself speaks TLS. */
export function arrived({ method, target, rawHeaders, peer }: SuppliedRequest, encrypted: boolean): ArrivedRequest {
  const headers: Record<string, string> = {}
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase()
    const value = rawHeaders[at + 1] as string
    const before = headers[name]
    if (before === undefined) headers[name] = value
    else if (!single.has(name)) headers[name] = `${before}${name === 'cookie' ? '; ' : ', '}${value}`
  }
  return { method, url: target, httpVersion: '1.1', headers, rawHeaders, socket: { remoteAddress: peer, encrypted } }
}
