import type { DefaultField, ResponseHeadersConfig } from '../config/model/upstream.ts'
import { GatewayError } from '../core/errors.ts'
import { hasDirective, isCorsField, isHopByHop, namedInConnection } from '../core/header-fields.ts'
import type { Caching, CorsFields } from '../gate/admission.ts'
import type { ClientMessage, ClientReply } from '../http/client-messages.ts'
import { nameInSetCookie } from '../http/cookie-jar.ts'
import type { RawFields } from '../transport/transport.ts'
import { ByName, isFieldValue, ownText } from '../wire/fields.ts'
import type { Addresses } from './addresses.ts'

/**
 * Writes the response of an upstream to the client, with few writes: the head goes out together
 * with the first part, and a short response goes out in one write.
 */
export class ClientResponse {
  readonly #req: ClientMessage
  readonly #res: ClientReply
  /** The first part, if it is short. It is held until more arrives or the turn ends. */
  #first: Buffer | undefined
  /** Nothing is held any more: each part is written at once. */
  #isFlowing = false

  constructor(req: ClientMessage, res: ClientReply) {
    this.#req = req
    this.#res = res
  }

  /**
   * Sends the `Link` fields of an interim response 103 (RFC 8297). A client that is behind gets
   * none, because an upstream may send any number of them and hints are optional.
   */
  sendEarlyHints(fields: RawFields, addresses: Addresses): void {
    if (this.#res.socket?.writableNeedDrain === true) return
    // HTTP/1.0 has no interim responses: RFC 9110 §15.2.
    if (this.#req.httpVersionMinor === 0) return
    const link: string[] = []
    for (let at = 0; at + 1 < fields.length; at += 2)
      if (fields[at]?.toLowerCase() === 'link') link.push(addresses.response('link', fields[at + 1] ?? ''))
    try {
      if (link.length > 0) this.#res.writeEarlyHints({ link })
    } catch {
      // Node.js checks the syntax of a hint. A response without the hint is still correct.
    }
  }

  begin(status: number, statusMessage: string, fields: string[]): void {
    // A reason phrase outside ASCII has no agreed meaning, and clients ignore it: RFC 9112 §4.
    if (/^[\t\x20-\x7e]+$/.test(statusMessage)) this.#res.writeHead(status, statusMessage, fields)
    else this.#res.writeHead(status, fields)
  }

  /** Keeps the first part for the next write. Returns `false` for any other part. */
  hold(part: Buffer): boolean {
    if (this.#isFlowing || this.#first !== undefined) return false
    this.#first = part
    return true
  }

  /**
   * Writes a part. Returns `false` when the client is behind, until the next `drain` of the
   * response.
   * @param written absent for a short part, which is copied if it is kept
   */
  write(part: Buffer, written?: (error?: Error | null) => void): boolean {
    this.#writeFirst()
    this.#isFlowing = true
    return written === undefined ? this.#res.write(this.#kept(part)) : this.#res.write(part, written)
  }

  /** Sends what has arrived until now, because the response is not complete yet. */
  flush(): void {
    if (this.#first !== undefined) this.#writeFirst()
    else if (!this.#isFlowing && this.#req.method !== 'HEAD') this.#res.flushHeaders()
    this.#isFlowing = true
  }

  end(): void {
    if (this.#first !== undefined) this.#res.end(this.#kept(this.#first))
    else this.#res.end()
  }

  /** Closes the connection, so that the client sees that the response is incomplete. */
  abort(): void {
    const { socket } = this.#req
    // An HTTP/1.0 client may take the end of the connection for the end of the content. Only a
    // reset shows that the response is incomplete.
    if (this.#res.headersSent && this.#req.httpVersionMinor === 0 && !('encrypted' in socket)) socket.resetAndDestroy()
    else this.#res.destroy()
  }

  #writeFirst(): void {
    const first = this.#first
    this.#first = undefined
    if (first !== undefined) this.#res.write(first)
  }

  /** A short part in memory that the response may keep. */
  #kept(part: Buffer): Buffer {
    return this.#res.copiesShortParts === true ? part : Buffer.from(part)
  }
}

/** @param fields names and values in turn */
export function isEventStream(fields: readonly string[]): boolean {
  for (let at = 0; at + 1 < fields.length; at += 2)
    if (fields[at]?.length === 12 && fields[at]?.toLowerCase() === 'content-type')
      return /^text\/event-stream\b/i.test(fields[at + 1] ?? '')
  return false
}

export interface ResponseHeadersInput {
  readonly isGatewayCookie: (name: string) => boolean
  readonly caching: Caching
  /** The changes of the configuration. */
  readonly changes?: ResponseChanges | undefined
  /** The fields for pages of other origins. They replace those of the upstream. */
  readonly cors?: CorsFields | undefined
  /** The addresses of the upstream. */
  readonly addresses: Addresses
  /** The status of the response. A 204 has no Content-Length (RFC 9110 §8.6). */
  readonly status: number
}

/** Changes of the header fields of all responses of an upstream. */
export interface ResponseChanges {
  /** The names of fields that are removed, in lower case. */
  readonly removed: ReadonlySet<string>
  /** Fields that are added: names and values in turn. */
  readonly added: readonly string[]
  /** Fields that are added to responses without them. */
  readonly defaults: readonly DefaultField[]
}

/** Returns `undefined` without changes. */
export function responseChanges({ set, remove, defaults }: ResponseHeadersConfig): ResponseChanges | undefined {
  const added = Object.entries(set).flat()
  const removed = new Set([...Object.keys(set), ...remove].map((name) => name.toLowerCase()))
  return removed.size === 0 && defaults.length === 0 ? undefined : { removed, added, defaults }
}

/**
 * The fields for the client, from those of the upstream: names and values in turn. `Set-Cookie`
 * fields are not joined.
 * @throws {GatewayError} when the response cannot be passed on
 */
export function responseHeaders(received: RawFields, input: ResponseHeadersInput): string[] {
  const listed = namedInConnection(received)
  const withoutLength = input.status === 204
  const { caching, changes, cors } = input
  const fields: string[] = []
  let cacheControl: string | undefined
  let varies = false
  let hasDate = false

  for (let at = 0; at + 1 < received.length; at += 2) {
    const name = received[at] as string
    const value = received[at + 1] as string
    const { lowerCase, endsHere, isForSharedCaches } = namesOfFields.of(name)
    // The transport removes the chunked coding only. The client could not decode another coding,
    // because Transfer-Encoding is not passed on.
    if (lowerCase === 'transfer-encoding' && value.trim().toLowerCase() !== 'chunked')
      throw new GatewayError('ERR_UPSTREAM_RESPONSE', 'the response has a Transfer-Encoding other than chunked')
    if (endsHere || listed.has(lowerCase)) continue
    if (changes?.removed.has(lowerCase)) continue
    if (cors !== undefined && isCorsField(lowerCase)) continue

    if (lowerCase === 'set-cookie' && input.isGatewayCookie(nameInSetCookie(value))) continue
    if (lowerCase === 'content-length' && withoutLength) continue
    // Date has a single value. When there are two, recipients may use either (RFC 9110 §5.3,
    // §6.6.1).
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
      if (caching !== 'upstream' && isForSharedCaches) continue
      if (caching === 'no_store' && (lowerCase === 'expires' || lowerCase === 'pragma')) continue
    }
    fields.push(name, input.addresses.response(lowerCase, value))
  }

  if (changes !== undefined) {
    fields.push(...changes.added)
    for (const field of changes.defaults) if (!hasField(fields, field)) fields.push(field.name, field.value)
  }
  if (cors !== undefined) fields.push(...Object.entries(cors).flat())
  if (caching === 'anybody') return fields
  if (caching !== 'varies') fields.push('Cache-Control', cacheControlFor(caching, cacheControl))
  // The response depends on the person, and the cookie identifies the person (RFC 9110 §12.5.5).
  if (!varies && (caching === 'varies' || caching === 'private')) fields.push('Vary', 'Cookie')
  return fields
}

/** @param fields names and values in turn */
function hasField(fields: readonly string[], { name, unless }: DefaultField): boolean {
  const lowerCase = name.toLowerCase()
  return fields.some(
    (value, at) =>
      at % 2 === 1 &&
      fields[at - 1]?.toLowerCase() === lowerCase &&
      (unless === undefined || hasDirective(value, unless)),
  )
}

const namesOfFields = new ByName((name) => {
  const lowerCase = name.toLowerCase()
  return { lowerCase, endsHere: isHopByHop(lowerCase), isForSharedCaches: forSharedCaches.test(lowerCase) }
})

/** Fields for caches in front of the gateway, not for browsers: RFC 9213 and its predecessors. */
const forSharedCaches = /^(?:surrogate-control|x-accel-expires|.*cdn-cache-control)$/

function cacheControlFor(caching: 'private' | 'no_store' | 'upstream', received: string | undefined): string {
  if (caching === 'no_store') return 'no-store'
  if (received === undefined) return 'private'
  return caching === 'upstream' ? received : privateCacheControl(received)
}

/** The key is the value of the upstream. Upstreams use few different values. */
const maxPrivateValues = 256
const privateValues = new Map<string, string>()

function privateCacheControl(received: string): string {
  const cached = privateValues.get(received)
  if (cached !== undefined) return cached
  const directives = received.match(/[^\s,="]+(?:=(?:"(?:[^"\\]|\\.)*"|[^\s,]*))?/g) ?? []
  const names = directives.map((directive) => directive.toLowerCase())
  // With one of these directives, no shared cache stores the response.
  const isPrivate = names.includes('no-store') || names.includes('private')
  const kept = directives.filter((_, at) => !/^(?:public$|s-maxage\b|private=)/.test(names[at] ?? ''))
  const value = (isPrivate ? kept : [...kept, 'private']).join(', ')
  if (privateValues.size < maxPrivateValues) privateValues.set(ownText(received), value)
  return value
}

/** Not allowed in trailers, because recipients need them before the content (RFC 9110 §6.5.1). */
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

/** The trailers for the client as pairs, without those that are not allowed. */
export function responseTrailers(received: RawFields, reserved: ReadonlySet<string>) {
  const trailers: [name: string, value: string][] = []
  for (let at = 0; at + 1 < received.length; at += 2) {
    const name = received[at] as string
    const value = received[at + 1] as string
    const lowerCase = name.toLowerCase()
    const isForbidden = isHopByHop(lowerCase) || notInTrailers.has(lowerCase) || reserved.has(lowerCase)
    if (!isForbidden && isFieldValue(value)) trailers.push([name, value])
  }
  return trailers
}
