import { GatewayError } from '../core/errors.ts'
import { connectionOptions, isHopByHop, noConnectionOptions } from '../core/header-fields.ts'
import type { Caching } from '../gate/admission.ts'
import type { RawFields } from '../transport/transport.ts'

export interface ResponseHeadersInput {
  readonly isGatewayCookie: (name: string) => boolean
  readonly caching: Caching
  /** Where the upstream is. */
  readonly upstream: URL
  /** A 204 has no content and says nothing about its length (RFC 9110 §8.6). */
  readonly status: number
}

/**
 * The header lines for the client, name and value in turn, from those of the upstream. `Set-Cookie`
 * lines stay apart.
 * @throws {GatewayError} when the answer cannot be passed on
 */
export function responseHeaders(received: RawFields, input: ResponseHeadersInput): string[] {
  const listed = namedInConnection(received)
  const withoutLength = input.status === 204
  const { caching } = input
  const lines: string[] = []
  let cacheControl: string | undefined
  let varies = false
  let hasDate = false

  for (let at = 0; at + 1 < received.length; at += 2) {
    const name = text(received[at])
    const value = text(received[at + 1])
    const lowerCase = name.toLowerCase()
    if (lowerCase === 'transfer-encoding') checkTransferEncoding(value)
    if (isHopByHop(lowerCase) || listed.has(lowerCase)) continue
    checkValue(name, value)

    if (lowerCase === 'set-cookie' && input.isGatewayCookie(cookieName(value))) continue
    if (lowerCase === 'content-length' && withoutLength) continue
    // A field with a single value: clients and caches that get two take either of them (RFC 9110
    // §5.3, §6.6.1).
    if (lowerCase === 'date') {
      if (hasDate) continue
      hasDate = true
    }
    if (lowerCase === 'vary') varies ||= /\*|\bcookie\b/i.test(value)
    if (caching !== 'anybody' && caching !== 'varies') {
      if (lowerCase === 'cache-control') {
        cacheControl = cacheControl === undefined ? value : `${cacheControl}, ${value}`
        continue
      }
      if (caching !== 'upstream' && isForSharedCaches(lowerCase)) continue
      if (caching === 'no_store' && (lowerCase === 'expires' || lowerCase === 'pragma')) continue
    }
    if (lowerCase === 'location' || lowerCase === 'content-location')
      lines.push(name, fromOutside(value, input.upstream))
    else lines.push(name, value)
  }

  if (caching === 'anybody') return lines
  if (caching !== 'varies') lines.push('Cache-Control', cacheControlFor(caching, cacheControl))
  // Who asks makes the difference, and the cookie says who it is: RFC 9110 §12.5.5.
  if (!varies && (caching === 'varies' || caching === 'private')) lines.push('Vary', 'Cookie')
  return lines
}

/**
 * A reference to a place of the upstream as clients reach it, who cannot reach, and need not know,
 * where the upstream is: the path alone (RFC 9110 §10.2.2 allows it). References to other places
 * stay as they are.
 */
function fromOutside(reference: string, upstream: URL): string {
  const authority = /^https?:\/\/[^/?#\\]*/i.exec(reference)?.[0]
  if (authority === undefined || !URL.canParse(authority)) return reference
  const { origin, username, password } = new URL(authority)
  if (origin !== upstream.origin || username !== '' || password !== '') return reference
  const base = upstream.pathname.replace(/\/$/, '')
  const place = reference.slice(authority.length)
  if (!place.startsWith(base) || !/^(?:[/?#]|$)/.test(place.slice(base.length))) return reference
  const path = place.slice(base.length)
  // `//host` would be a host, and browsers take `/\\` for it.
  return `/${path.replace(/^[/\\]+/, '')}`
}

/**
 * Fields by which caches before the gateway are told apart from browsers: RFC 9213, and what came
 * before it.
 */
function isForSharedCaches(lowerCase: string): boolean {
  return lowerCase === 'surrogate-control' || lowerCase === 'x-accel-expires' || lowerCase.endsWith('cdn-cache-control')
}

function cacheControlFor(caching: 'private' | 'no_store' | 'upstream', said: string | undefined): string {
  if (caching === 'no_store') return 'no-store'
  if (said === undefined) return 'private'
  return caching === 'upstream' ? said : keptPrivate(said)
}

/** Applications say the same few things again and again. */
const mostKnown = 256
const known = new Map<string, string>()

function keptPrivate(said: string): string {
  const before = known.get(said)
  if (before !== undefined) return before
  const directives = said.match(/[^\s,="]+(?:=(?:"(?:[^"\\]|\\.)*"|[^\s,]*))?/g) ?? []
  const names = directives.map((directive) => directive.toLowerCase())
  // Where no cache keeps it, or browsers alone, there is nothing to change.
  const isPrivate = names.includes('no-store') || names.includes('private')
  const kept = directives.filter((_, at) => !/^(?:public$|s-maxage\b|private=)/.test(names[at] ?? ''))
  const told = (isPrivate ? kept : [...kept, 'private']).join(', ')
  if (known.size < mostKnown) known.set(said, told)
  return told
}

/**
 * A trailer section may come after everything has been decided, so it may say nothing that matters
 * by then (RFC 9110 §6.5.1).
 */
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
export function responseTrailers(received: RawFields, reserved: ReadonlySet<string>) {
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

function namedInConnection(received: RawFields): ReadonlySet<string> {
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

// undici takes the chunks apart and leaves any other coding on; without its field the client could
// not undo it.
function checkTransferEncoding(value: string): void {
  if (value.trim().toLowerCase() !== 'chunked')
    throw new GatewayError('ERR_UPSTREAM_ANSWER', 'the answer has a Transfer-Encoding other than chunked')
}

const forbidden = /[^\t\x20-\x7e\x80-\xff]/

function checkValue(name: string, value: string): void {
  if (forbidden.test(value))
    throw new GatewayError('ERR_UPSTREAM_ANSWER', `the answer has a control character in "${name}"`)
}

/**
 * A browser may take `=name=value` and ` name` for `name` (RFC 6265bis §5.6), so the name is read
 * the same way.
 */
function cookieName(setCookie: string): string {
  return /^[=\s]*([^=;]*)/.exec(setCookie)?.[1]?.trim() ?? ''
}
