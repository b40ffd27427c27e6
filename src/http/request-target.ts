import { ipAddress } from '../core/addresses.ts'
import { GatewayError } from '../core/errors.ts'
import { ownText } from '../wire/fields.ts'

const authority = /^(?:\[([\da-f:.]+)\]|[\w.-]+)(?::(\d{0,5}))?$/i
const nameSyntax = /^(\[[\da-f:.]+\]|[\w.-]*?)\.?(?::\d{0,5})?$/i

/** The last values, because most requests have the host of the request before. */
let lastAuthority: string | undefined
let lastName: { readonly host: string; readonly name: string } | undefined

/** Whether a text is a host with or without a port, which may be empty (RFC 3986 §3.2). */
export function isAuthority(text: string): boolean {
  if (text === lastAuthority) return true
  const [whole, literal, port] = authority.exec(text) ?? []
  if (whole === undefined || !isPort(port)) return false
  if (literal !== undefined && (!literal.includes(':') || ipAddress(literal) === undefined)) return false
  lastAuthority = ownText(text)
  return true
}

/** Whether a port number is one of TCP. An absent or empty one is the default port. */
export function isPort(digits: string | undefined): boolean {
  return Number(digits ?? '') <= maxPort
}

/** The largest port number (RFC 9293 §3.1: 16 bits). */
const maxPort = 65_535

/**
 * `Orders.Example.com.:8443` → `orders.example.com`.
 * @throws {GatewayError} ERR_REQUEST_MALFORMED
 */
export function hostName(host: string): string {
  if (host === lastName?.host) return lastName.name
  const name = nameSyntax.exec(host)?.[1]?.toLowerCase()
  if (name === undefined) throw new GatewayError('ERR_REQUEST_MALFORMED', 'Host is malformed')
  lastName = { host: ownText(host), name: ownText(name) }
  return name
}

/** The canonical form of a request target. Matching, decision and forwarding all use it. */
export interface CanonicalTarget {
  /** The path that is matched and forwarded. */
  readonly path: string
  /** The segments of the path: `/a/b` → `['a', 'b']`, `/` → `['']`. */
  readonly segments: readonly string[]
  /**
   * Other paths that an upstream might read: it may drop `;parameters`, decode the path again,
   * treat an encoded slash as a slash, end the path at a decoded `?` or `#`, or drop dots and
   * spaces at the end of a segment. Absent when there is only one reading. All readings must match
   * the same rule (see the route table).
   */
  readonly otherReadings?: readonly (readonly string[])[]
  /** `?…`, unchanged, or the empty string. */
  readonly query: string
  /** The authority of an absolute-form target. It replaces `Host` (RFC 9112 §3.2.2). */
  readonly authority?: string
}

/** Asterisk-form: the target is the server, not a resource (RFC 9110 §9.3.7). */
export const wholeServer: CanonicalTarget = { path: '*', segments: [], query: '' }

const absoluteForm = /^https?:\/\/([^/?]*)/i
const disallowed = /[^\x21-\x7e]|#/
const plainPath = /^\/[\w!$&'()*+,:=@~./-]*$/
/**
 * A plain path that must be examined all the same: it has an empty segment, or a segment with dots
 * that may be a dot segment. A name such as `.well-known` needs no examination.
 */
const plainPathTrap = /\/\/|\/\.(?!\w)|\.\/|\.$/

/**
 * The maximum length of a path that is not plain, in characters. It bounds the work, because each
 * segment is read in every way that an upstream might read it. 1,024 percent-encoded bytes fit.
 */
const maxUnusualPathLength = 4_000
/** The maximum number of segments of a path that is not plain. Encoded slashes separate too. */
const maxUnusualSegments = 100
/** How often a path may be percent-encoded. Legitimate links are not encoded more often. */
const maxDecodings = 3

/**
 * Reads the target of a request line: origin-form, or absolute-form of `http` and `https`.
 * Different spellings of one path get the same form. An ambiguous target is rejected.
 * @throws {GatewayError} ERR_REQUEST_TARGET; the message names the reason and never quotes the
 * target
 */
export function canonicalTarget(raw: string): CanonicalTarget {
  const mark = raw.indexOf('?')
  const path = mark < 0 ? raw : raw.slice(0, mark)
  const query = mark < 0 ? '' : raw.slice(mark)
  const isPlain = plainPath.test(path) && !plainPathTrap.test(path)
  if (isPlain && (mark < 0 || !disallowed.test(query))) return { path, segments: pathSegments(path), query }

  if (disallowed.test(raw)) reject('it contains a control character, a space, "#" or a character outside ASCII')
  if (raw.startsWith('/')) return { ...canonicalPath(path), query }

  const [scheme, authority] = absoluteForm.exec(raw) ?? reject('it is neither a path nor an http or https URL')
  if (authority === undefined || !isAuthority(authority)) reject('its authority is malformed')
  const rest = raw.slice(scheme.length)
  return { ...canonicalTarget(rest.startsWith('/') ? rest : `/${rest}`), authority }
}

/** The text between the slashes. For a short path, `split` takes almost twice as long. */
function pathSegments(path: string): readonly string[] {
  const segments: string[] = []
  let start = 1
  for (let end = path.indexOf('/', start); end >= 0; end = path.indexOf('/', start)) {
    segments.push(path.slice(start, end))
    start = end + 1
  }
  segments.push(path.slice(start))
  return segments
}

function canonicalPath(raw: string): Pick<CanonicalTarget, 'path' | 'segments' | 'otherReadings'> {
  if (raw.length > maxUnusualPathLength) reject('the path is long and contains unusual characters')
  if (raw.includes('\\')) reject('the path contains a backslash')
  if (/%(?![\da-f]{2})/i.test(raw)) reject('the path contains invalid percent-encoding')

  // For each segment: the literal form first, then what each further decoding gives.
  const kept: (readonly [string, ...string[]])[] = []
  const pieces = decodeUnreserved(raw).slice(1).split('/')
  if (pieces.length > maxUnusualSegments) reject('the path contains unusual characters and has too many segments')
  for (const [index, segment] of pieces.entries()) {
    const isLast = index === pieces.length - 1
    if (segment === '..' && kept.pop() === undefined) reject('".." leads above the root')
    if (segment !== '' && segment !== '.' && segment !== '..') kept.push(decodings(segment))
    else if (isLast) kept.push([''])
  }

  const segments = kept.map(([literal]) => literal)
  const otherReadings = readings(kept, segments)
  const path = `/${segments.join('/')}`
  return otherReadings.length > 0 ? { path, segments, otherReadings } : { path, segments }
}

/** Decodes `%61` to `a`, because both are equivalent (RFC 3986 §6.2.2.2). The rest is unchanged. */
export function decodeUnreserved(path: string): string {
  if (!path.includes('%')) return path
  return path.replaceAll(/%([\da-f]{2})/gi, (encoded, hex: string) => {
    const character = String.fromCharCode(parseInt(hex, 16))
    return /[\w.~-]/.test(character) ? character : encoded
  })
}

/** The segment, then the result of each further decoding. One character is one byte. */
function decodings(segment: string): readonly [string, ...string[]] {
  const all: [string, ...string[]] = [segment]
  if (isDotSegment(segment)) reject('the path contains an encoded or disguised dot segment')
  for (let text = segment; text.includes('%');) {
    const decoded = text.replaceAll(/%(?:u00)?([\da-f]{2})/gi, (_, hex: string) =>
      String.fromCharCode(parseInt(hex, 16)),
    )
    if (decoded === text) break
    if (all.length > maxDecodings) reject('the path is percent-encoded too many times')
    text = decoded
    all.push(text)
    if (/[\0-\x1f\x7f]/.test(text)) reject('the path contains an encoded control character')
    if (compatible(text).includes('\\')) reject('the path contains an encoded backslash')
    // Overlong UTF-8 can encode "." and "/" (RFC 3629 §10).
    if (/[\xc0\xc1][\x80-\xbf]|\xe0[\x80-\x9f]|\xf0[\x80-\x8f]/.test(text)) reject('the path contains overlong UTF-8')
    if (text.split('/').length > maxUnusualSegments)
      reject('the path contains unusual characters and has too many segments')
    if (isDotSegment(text) || isDotSegment(compatible(text)))
      reject('the path contains an encoded or disguised dot segment')
  }
  return all
}

/**
 * Whether some upstream would read a part of the segment as `.` or `..`. A part ends at an encoded
 * slash, and may have parameters, spaces or more dots.
 */
function isDotSegment(text: string): boolean {
  return text.split('/').some((part) => isOnlyDots(withoutParameters(part.replace(/[?#].*$/s, '')).trim()))
}

function isOnlyDots(text: string): boolean {
  return text.includes('.') && /^[.\s]+$/.test(text)
}

function isBeyondAscii(text: string): boolean {
  return /[^\0-\x7f]/.test(text)
}

function asUtf8(bytes: string): string {
  return isBeyondAscii(bytes) ? Buffer.from(bytes, 'latin1').toString('utf8') : bytes
}

/**
 * The text for an upstream that reads UTF-8 and replaces compatible characters, such as full-width
 * ones, by the plain characters (NFKC).
 */
function compatible(bytes: string): string {
  return isBeyondAscii(bytes) ? asUtf8(bytes).normalize('NFKC') : bytes
}

type Change = (segments: readonly string[]) => readonly string[]

/** How upstreams may change a decoded path, in the order in which they may do so. */
const changes: readonly (readonly Change[])[] = [
  [dropParameters],
  [(segments) => changeSome(segments, isBeyondAscii, compatible)],
  [dropParameters],
  [splitSlashes],
  [(segments) => endAt('?', segments), (segments) => endAt('#', segments)],
  [dropParameters],
  [trimNames],
]

function readings(decoded: readonly (readonly [string, ...string[]])[], literal: readonly string[]): string[][] {
  const found = new Map<string, string[]>()
  const deepest = Math.max(...decoded.map(({ length }) => length))
  for (let level = 0; level < deepest; level++) {
    const forms: Set<readonly string[]> = new Set([decoded.map((levels) => levels[level] ?? levels.at(-1) ?? '')])
    for (const either of changes) for (const form of [...forms]) for (const change of either) forms.add(change(form))
    for (const form of forms) {
      const merged = form.filter((segment, index) => segment !== '' || index === form.length - 1)
      found.set(keyOf(merged), merged)
    }
  }
  found.delete(keyOf(literal))
  return [...found.values()]
}

/** Joined by NUL, because a decoded segment may contain a slash, but no control character. */
function keyOf(segments: readonly string[]): string {
  return segments.join('\0')
}

/** Returns the same array when nothing changes, so that a `Set` recognizes it. */
function changeSome(
  segments: readonly string[],
  needsChange: (segment: string) => boolean,
  change: (segment: string) => string,
): readonly string[] {
  return segments.some(needsChange) ? segments.map(change) : segments
}

function dropParameters(segments: readonly string[]): readonly string[] {
  return changeSome(segments, (segment) => segment.includes(';'), withoutParameters)
}

function splitSlashes(segments: readonly string[]): readonly string[] {
  return segments.some((segment) => segment.includes('/'))
    ? segments.flatMap((segment) => segment.split('/'))
    : segments
}

function endAt(mark: '?' | '#', segments: readonly string[]): readonly string[] {
  const index = segments.findIndex((segment) => segment.includes(mark))
  return index < 0 ? segments : [...segments.slice(0, index), (segments[index] ?? '').split(mark, 1)[0] ?? '']
}

/** Removes spaces around names and dots at their end, as Windows file systems do. */
function trimNames(segments: readonly string[]): readonly string[] {
  return changeSome(segments, (segment) => /^\s|[.\s]$/.test(segment), trimmed)
}

function withoutParameters(segment: string): string {
  const start = segment.indexOf(';')
  return start < 0 ? segment : segment.slice(0, start)
}

function trimmed(name: string): string {
  let end = name.length
  while (end > 0 && /[.\s]/.test(name.charAt(end - 1))) end -= 1
  return name.slice(0, end).trimStart()
}

function reject(why: string): never {
  throw new GatewayError('ERR_REQUEST_TARGET', `the request target is rejected: ${why}`)
}
