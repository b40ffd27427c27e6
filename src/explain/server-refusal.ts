import { METHODS } from 'node:http'
import type { LimitsConfig } from '../config/model.ts'
import type { ArrivedRequest } from './request.ts'

/** What is refused before the gateway looks at the request; the log says nothing of it. */
export function serverRefusal(
  { method = '', url = '', rawHeaders }: ArrivedRequest,
  { headerSizeBytes }: Pick<LimitsConfig, 'headerSizeBytes'>,
): { readonly status: number; readonly why: string; readonly note?: string } | undefined {
  if (!METHODS.includes(method)) return { status: 400, why: `no HTTP server of Node.js knows the method ${method}` }
  // As Node counts: what stands between names and values, and at the end of lines, is not among it.
  const bytes = Buffer.byteLength([url, ...rawHeaders].join(''))
  if (bytes >= headerSizeBytes)
    return {
      status: 431,
      why: `its URL and headers have ${bytes} bytes, and limits.header_size is ${headerSizeBytes}`,
      note: 'mostly too many cookies, of the application or of its neighbours on the domain; the log says nothing of it',
    }
  return undefined
}

/** Whether the request, when it is sound, is answered with 417 (RFC 9110 §10.1.1). */
export function isExpectationUnmet({ headers: { expect } }: ArrivedRequest, switches: boolean): boolean {
  return !switches && expect !== undefined && !/(?:^|\W)100-continue(?:$|\W)/i.test(expect)
}
