import { GatewayError } from '../core/errors.ts'
import { connectionOptions, isHopByHop, noConnectionOptions } from './hop-by-hop.ts'

export interface ResponseHeadersInput {
  readonly isGatewayCookie: (name: string) => boolean
  /** The answer is about somebody: no shared cache may keep it unless the upstream said so. */
  readonly signedIn: boolean
  /** A 204 has no content and says nothing about its length (RFC 9110 §8.6). */
  readonly status: number
}

/**
 * The header lines for the client, name and value in turn, from those of the upstream. `Set-Cookie` lines stay apart.
 * @throws {GatewayError} when the answer cannot be passed on
 */
export function responseHeaders(received: readonly (Buffer | string)[], input: ResponseHeadersInput): string[] {
  const listed = namedInConnection(received)
  const withoutLength = input.status === 204
  const lines: string[] = []
  let cacheControl = false

  for (let at = 0; at + 1 < received.length; at += 2) {
    const name = text(received[at])
    const value = text(received[at + 1])
    const lowerCase = name.toLowerCase()
    if (lowerCase === 'transfer-encoding') checkTransferEncoding(value)
    if (isHopByHop(lowerCase) || listed.has(lowerCase)) continue
    checkValue(name, value)

    if (lowerCase === 'set-cookie' && input.isGatewayCookie(cookieName(value))) continue
    if (lowerCase === 'content-length' && withoutLength) continue
    if (lowerCase === 'cache-control') cacheControl = true
    lines.push(name, value)
  }

  if (input.signedIn && !cacheControl) lines.push('Cache-Control', 'private')
  return lines
}

/** A trailer section may come after everything has been decided, so it may say nothing that matters by then (RFC 9110 §6.5.1). */
const notInTrailers: ReadonlySet<string> = new Set([
  'content-length',
  'content-encoding',
  'content-type',
  'content-range',
  'host',
  'expect',
  'location',
  'cache-control',
  'vary',
  'authorization',
  'www-authenticate',
  'cookie',
  'set-cookie',
])

/** The trailers for the client, name and value in pairs; unfit ones are left out. */
export function responseTrailers(received: readonly (Buffer | string)[], reserved: ReadonlySet<string>) {
  const trailers: [name: string, value: string][] = []
  for (let at = 0; at + 1 < received.length; at += 2) {
    const name = text(received[at])
    const value = text(received[at + 1])
    const lowerCase = name.toLowerCase()
    const unfit = isHopByHop(lowerCase) || notInTrailers.has(lowerCase) || reserved.has(lowerCase)
    if (!unfit && !forbidden.test(value)) trailers.push([name, value])
  }
  return trailers
}

function namedInConnection(received: readonly (Buffer | string)[]): ReadonlySet<string> {
  let listed = noConnectionOptions
  for (let at = 0; at + 1 < received.length; at += 2)
    if (received[at]?.length === 10 && text(received[at]).toLowerCase() === 'connection')
      listed = connectionOptions(text(received[at + 1]), listed)
  return listed
}

// Whatever bytes they are, they leave as they came: Node writes header lines as latin1, too.
function text(value: Buffer | string | undefined): string {
  return typeof value === 'string' ? value : (value?.toString('latin1') ?? '')
}

// undici takes the chunks apart and leaves any other coding on; without its field the client could not undo it.
function checkTransferEncoding(value: string): void {
  if (value.trim().toLowerCase() !== 'chunked')
    throw new GatewayError('ERR_UPSTREAM_ANSWER', 'the answer has a Transfer-Encoding other than chunked')
}

const forbidden = /[^\t\x20-\x7e\x80-\xff]/

function checkValue(name: string, value: string): void {
  if (forbidden.test(value))
    throw new GatewayError('ERR_UPSTREAM_ANSWER', `the answer has a control character in "${name}"`)
}

/** A browser may take `=name=value` and ` name` for `name` (RFC 6265bis §5.6), so the name is read the same way. */
function cookieName(setCookie: string): string {
  return /^[=\s]*([^=;]*)/.exec(setCookie)?.[1]?.trim() ?? ''
}
