import type { Pass } from '../gate/admission.ts'
import { acceptedCodings } from '../http/accepted-codings.ts'
import type { RequestFacts } from '../http/request-facts.ts'
import type { RawFields } from '../transport/transport.ts'
import { fieldValue } from './session-notice.ts'

/** The codings that the gateway compresses with, in the order in which it prefers them. */
const offered = ['br', 'zstd', 'gzip'] as const
export type Compressor = (typeof offered)[number]

/** How the responses to one request are compressed. */
export interface Compression {
  /** The codings that the client accepts, the most wanted first. */
  readonly accepted: readonly Compressor[]
  /** Whether content that may contain secrets of a person is compressed too. */
  readonly isForAll: boolean
}

/**
 * How the responses to a request are compressed.
 *
 * An attacker who can put text into a response, and who sees its length, can guess a secret in it
 * (BREACH, CVE-2013-3587). The application knows the person of a request with a cookie or
 * credentials.
 */
export function compressionFor(
  compress: Exclude<Pass['upstream']['compress'], false>,
  { session, caller }: Pass,
  { cookie, authorization }: Pick<RequestFacts, 'cookie' | 'authorization'>,
  acceptEncoding: string | readonly string[] | undefined,
): Compression {
  const known = [session, caller, cookie, authorization]
  return {
    accepted: acceptedCodings(acceptEncoding, offered),
    isForAll: compress.personal || known.every((each) => each === undefined),
  }
}

/** Content of a known length below this is not compressed, because it would hardly be shorter. */
const minBytes = 1024

/** Whether a response is one that the gateway compresses, where the client accepts a coding. */
export function isCompressed({ isForAll }: Compression, status: number, fields: RawFields): boolean {
  // The bytes of a range are those of the content before it is compressed (RFC 9110 §14.1).
  if (status === 204 || status === 206 || status === 304) return false
  if (fieldValue(fields, 'content-encoding') !== '') return false
  const length = fieldValue(fields, 'content-length')
  if (length !== '' && Number(length) < minBytes) return false
  const cacheControl = fieldValue(fields, 'cache-control')
  // The application forbids changes of the content (RFC 9111 §5.2.2.6).
  if (/\bno-transform\b/i.test(cacheControl)) return false
  const type = fieldValue(fields, 'content-type').replace(/;.*$/s, '').trim().toLowerCase()
  if (isForAll) return compressible.test(type)
  // An application marks a script that is made for one person with `private` or `no-store`.
  return withoutSecrets.test(type) && !/\b(?:private|no-store)\b/i.test(cacheControl)
}

/** Types that are the same for all people: scripts, styles, fonts and SVG. */
const withoutSecrets =
  /^(?:text\/(?:css|javascript)|application\/(?:x-)?javascript|application\/(?:wasm|vnd\.ms-fontobject)|font\/(?:ttf|otf)|image\/svg\+xml)$/

/** Each event of an event stream has to arrive at once, so it is not in the list. */
const compressible =
  /^(?:text\/(?!event-stream$)[\w.+-]+|application\/(?:[\w.-]+\+)?(?:json|xml)|application\/(?:x-)?javascript|application\/(?:x-ndjson|wasm|vnd\.ms-fontobject)|font\/(?:ttf|otf)|image\/(?:svg\+xml|bmp|x-icon|vnd\.microsoft\.icon))$/

/** The fields with `Vary: Accept-Encoding` (RFC 9110 §12.5.5). */
export function varyingByCoding(fields: RawFields): RawFields {
  return /\*|\baccept-encoding\b/i.test(fieldValue(fields, 'vary')) ? fields : [...fields, 'Vary', 'Accept-Encoding']
}
