import { METHODS } from 'node:http'
import type { LimitsConfig } from '../config/model/gateway.ts'
import { singleFields } from '../core/header-fields.ts'
import type { FramedRequest, ReceivedRequest } from '../http/request-facts.ts'

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
  const headers = Object.create(null) as Record<string, string>
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase()
    const value = rawHeaders[at + 1] as string
    const before = headers[name]
    if (before === undefined) headers[name] = value
    else if (!singleFields.has(name)) headers[name] = `${before}${name === 'cookie' ? '; ' : ', '}${value}`
  }
  return { method, url: target, httpVersion: '1.1', headers, rawHeaders, socket: { remoteAddress: peer, encrypted } }
}

/** The refusal of a request by Node's parser, before the gateway sees it. */
export function serverRefusal(
  { method = '', url = '', rawHeaders }: ArrivedRequest,
  { headerSizeBytes }: Pick<LimitsConfig, 'headerSizeBytes'>,
): { readonly status: number; readonly why: string; readonly note?: string } | undefined {
  if (!METHODS.includes(method)) return { status: 400, why: `Node.js does not support the method ${method}` }
  // Node counts names and values only, not the separators and line ends.
  const bytes = Buffer.byteLength([url, ...rawHeaders].join(''))
  if (bytes >= headerSizeBytes)
    return {
      status: 431,
      why: `the URL and the headers have ${bytes} bytes, but limits.header_size is ${headerSizeBytes}`,
      note: 'the usual cause is too many cookies, of the application or of others on the same domain',
    }
  return undefined
}

/** Whether an otherwise valid request gets 417 (RFC 9110 §10.1.1). */
export function isExpectationUnmet({ headers: { expect } }: ArrivedRequest, switches: boolean): boolean {
  return !switches && expect !== undefined && !/(?:^|\W)100-continue(?:$|\W)/i.test(expect)
}
