import { METHODS } from 'node:http'
import type { ErrorCode } from '../core/errors.ts'
import type { LimitsConfig } from '../config/model.ts'
import type { ArrivedRequest } from './request.ts'

/** What is refused before the gateway looks at the request. The log hears of nothing but the 417. */
export function serverRefusal(
  { method = '', url = '', rawHeaders, headers }: ArrivedRequest,
  switches: boolean,
  { headerBytes }: Pick<LimitsConfig, 'headerBytes'>,
): { readonly status: number; readonly code?: ErrorCode; readonly why: string; readonly note?: string } | undefined {
  if (!METHODS.includes(method)) return { status: 400, why: `no HTTP server of Node.js knows the method ${method}` }
  // As Node counts: what stands between names and values, and at the end of lines, is not among it.
  const bytes = Buffer.byteLength([url, ...rawHeaders].join(''))
  if (bytes >= headerBytes)
    return {
      status: 431,
      why: `its URL and headers have ${bytes} bytes, and limits.header_size is ${headerBytes}`,
      note: 'mostly too many cookies, of the application or of its neighbours on the domain; the log says nothing of it',
    }
  const { expect } = headers
  if (!switches && expect !== undefined && !/(?:^|\W)100-continue(?:$|\W)/i.test(expect))
    return { status: 417, code: 'ERR_EXPECTATION', why: 'nothing but 100-continue can be expected (Expect)' }
  return undefined
}
