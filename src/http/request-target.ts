import { GatewayError } from '../core/errors.ts'

/**
 * The one reading of a request target: used for matching, for the decision and for forwarding
 * alike.
 */
export interface CanonicalTarget {
  /** The path as it is matched and forwarded. */
  readonly path: string
  /** Its segments, for patterns: `/a/b` → `['a', 'b']`, `/` → `['']`. */
  readonly segments: readonly string[]
  /**
   * What else an upstream might take the path for: by dropping `;parameters`, by decoding it again,
   * by taking an encoded slash for a slash, by ending it at a decoded `?` or `#`, by dropping dots
   * and spaces at a segment's end. Absent when there is only one reading. All of them have to meet
   * the same rule; see the route table.
   */
  readonly otherReadings?: readonly (readonly string[])[]
  /** `?…` byte for byte, or the empty string. */
  readonly query: string
  /** Of an absolute-form target: it takes the place of `Host` (RFC 9112 §3.2.2). */
  readonly authority?: string
}

/** Asterisk-form: the request is about the server, not about a resource (RFC 9110 §9.3.7). */
export const wholeServer: CanonicalTarget = { path: '*', segments: [], query: '' }

const absoluteForm = /^https?:\/\/([^/?]*)/i
const authoritySyntax = /^(?:\[[\da-f:.]+\]|[\w.-]+)(?::\d{0,5})?$/i
const disallowed = /[^\x21-\x7e]|#/
const plainPath = /^\/[\w!$&'()*+,:=@~./-]*$/
/**
 * A name such as `.well-known` is plain; what has more dots, or nothing behind its dot, is looked
 * into.
 */
const plainPathTrap = /\/\/|\/\.(?!\w)|\.\/|\.$/

/**
 * A longer path, in characters, that is not plain is refused, because each segment is read in every
 * way that an upstream might read it. This leaves room for 1,024 bytes that are all
 * percent-encoded.
 */
const maxUnusualPathLength = 4_000
/** A path that is not plain has at most this many segments, encoded slashes counted. */
const maxUnusualSegments = 100
/** A path is decoded this many times at most; no honest link is encoded more often. */
const maxDecodings = 3

/**
 * Reads the target of a request line: origin-form, or absolute-form of `http` and `https`. What has
 * one meaning is brought into one form; what could mean two things is refused.
 * @throws {GatewayError} ERR_REQUEST_TARGET; its message names the reason and never quotes the
 * target
 */
export function canonicalTarget(raw: string): CanonicalTarget {
  if (disallowed.test(raw)) reject('a control character, a space, "#" or a character outside of ASCII')
  if (raw.startsWith('/')) return originForm(raw)

  const [scheme, authority] = absoluteForm.exec(raw) ?? reject('neither a path nor an http URL')
  if (authority === undefined || !authoritySyntax.test(authority)) reject('the authority is malformed')
  const rest = raw.slice(scheme.length)
  return { ...originForm(rest.startsWith('/') ? rest : `/${rest}`), authority }
}

function originForm(raw: string): CanonicalTarget {
  const mark = raw.indexOf('?')
  const path = mark < 0 ? raw : raw.slice(0, mark)
  const query = mark < 0 ? '' : raw.slice(mark)
  if (plainPath.test(path) && !plainPathTrap.test(path)) return { path, segments: path.slice(1).split('/'), query }
  return { ...canonicalPath(path), query }
}

function canonicalPath(raw: string): Pick<CanonicalTarget, 'path' | 'segments' | 'otherReadings'> {
  if (raw.length > maxUnusualPathLength) reject('a path that is both long and not plain')
  if (raw.includes('\\')) reject('a backslash')
  if (/%(?![\da-f]{2})/i.test(raw)) reject('an invalid percent-encoding')

  // Each segment as it is decoded again and again, the literal one first.
  const kept: (readonly [string, ...string[]])[] = []
  const pieces = decodeUnreserved(raw).slice(1).split('/')
  if (pieces.length > maxUnusualSegments) reject('a path that is not plain and has too many segments')
  for (const [index, segment] of pieces.entries()) {
    const isLast = index === pieces.length - 1
    if (segment === '..' && kept.pop() === undefined) reject('".." above the root')
    if (segment !== '' && segment !== '.' && segment !== '..') kept.push(decodings(segment))
    else if (isLast) kept.push([''])
  }

  const segments = kept.map(([literal]) => literal)
  const otherReadings = readings(kept, segments)
  const path = `/${segments.join('/')}`
  return otherReadings.length > 0 ? { path, segments, otherReadings } : { path, segments }
}

/** `%61` and `a` are the same to everybody (RFC 3986 §6.2.2.2); all else stays as it was sent. */
function decodeUnreserved(path: string): string {
  if (!path.includes('%')) return path
  return path.replaceAll(/%([\da-f]{2})/gi, (encoded, hex: string) => {
    const character = String.fromCharCode(parseInt(hex, 16))
    return /[\w.~-]/.test(character) ? character : encoded
  })
}

/** The segment, then what decoding it once, twice, … reveals, one character for each byte. */
function decodings(segment: string): readonly [string, ...string[]] {
  const all: [string, ...string[]] = [segment]
  if (isDotSegment(segment)) reject('a disguised dot segment')
  for (let text = segment; text.includes('%');) {
    const decoded = text.replaceAll(/%(?:u00)?([\da-f]{2})/gi, (_, hex: string) =>
      String.fromCharCode(parseInt(hex, 16)),
    )
    if (decoded === text) break
    if (all.length > maxDecodings) reject('encoded too many times')
    text = decoded
    all.push(text)
    if (/[\0-\x1f\x7f]/.test(text)) reject('an encoded control character')
    if (compatible(text).includes('\\')) reject('an encoded backslash')
    // Longer UTF-8 than necessary is another disguise of "." and "/" (RFC 3629 §10).
    if (/[\xc0\xc1][\x80-\xbf]|\xe0[\x80-\x9f]|\xf0[\x80-\x8f]/.test(text)) reject('overlong UTF-8')
    if (text.split('/').length > maxUnusualSegments) reject('a path that is not plain and has too many segments')
    if (isDotSegment(text) || isDotSegment(compatible(text))) reject('a disguised dot segment')
  }
  return all
}

/**
 * What some upstream would take for `.` or `..`: between encoded slashes, with parameters, spaces
 * or more dots, in full-width characters.
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
 * What is left for an upstream that reads UTF-8 and takes a full-width or otherwise compatible
 * character for the plain one.
 */
function compatible(bytes: string): string {
  return isBeyondAscii(bytes) ? asUtf8(bytes).normalize('NFKC') : bytes
}

type Change = (segments: readonly string[]) => readonly string[]

/** What upstreams do to a decoded path, in the order they could do it in. */
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
  const deepest = decoded.reduce((most, levels) => Math.max(most, levels.length), 1)
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

/** A decoded segment may hold a slash, but no control character. */
function keyOf(segments: readonly string[]): string {
  return segments.join('\0')
}

/** The very same list when there is nothing to change, so that a set knows it again. */
function changeSome(
  segments: readonly string[],
  isConcerned: (segment: string) => boolean,
  change: (segment: string) => string,
): readonly string[] {
  return segments.some(isConcerned) ? segments.map(change) : segments
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

/** Without spaces around them and dots at their end, as a Windows file system takes names. */
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
  throw new GatewayError('ERR_REQUEST_TARGET', `the request target: ${why}`)
}
