import { METHODS } from 'node:http'
import type { LimitsConfig } from '../config/model/gateway.ts'
import type { ArrivedRequest } from './request.ts'

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
