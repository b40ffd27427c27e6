import type { HeaderConfig } from '../config/model.ts'
import { type ClaimPath, type Claims, type ClaimTemplate, type JsonValue, readClaim } from '../core/claims.ts'
import { unreachable } from '../core/errors.ts'
import { type Encoding, encodings, malformedReason } from './encodings.ts'

export type IdentityHeaders =
  | {
      /** Names and values, alternating. Each character of a value is one byte on the wire. */
      readonly fields: readonly string[]
      /**
       * The headers that are left out although the claim is present, for the log: the name and the
       * reason, never the value.
       */
      readonly dropped: readonly string[]
    }
  /** A required header has no value. */
  | { readonly missing: string; readonly dropped: readonly string[] }

/**
 * The header fields for an upstream that depend on the signed-in person, or on nothing. Those that
 * depend on the request are not among them: see {@link requestFields}.
 *
 * Text, numbers and booleans are printed. The members of a list are joined. An object, or a list in
 * a list, becomes compact JSON. An absent claim, `null`, blank text and an empty list have no
 * value. A header is absent if none of its claims has a value. In a template, the space beside an
 * absent claim is removed.
 *
 * A value reaches the upstream unchanged or not at all, because the values of two people must never
 * become equal. The header is left out if its encoding cannot carry the value unchanged
 * ({@link Encoding}), or if the value is longer than `max_bytes`.
 *
 * An upstream must be able to split a list into the same members. Otherwise, a group named
 * `a,admins` would make its members administrators. With `percent`, and with `base64` of a single
 * claim, each member is encoded separately: upstreams split first and decode then. A member that
 * cannot be carried unchanged, or that cannot be separated, is left out.
 */
export function identityHeaders(headers: readonly HeaderConfig[], claims: Claims): IdentityHeaders {
  const fields: string[] = []
  const dropped: string[] = []
  for (const header of headers) {
    if (header.source.kind === 'request') continue
    const value = headerValue(header, claims, (why) => dropped.push(`${header.name}: ${why}`))
    if (value !== undefined) fields.push(header.name, value)
    else if (header.required) return { missing: header.name, dropped }
  }
  return { fields, dropped }
}

/**
 * The headers that are absent because none of their claims has a value, and for no other reason.
 */
export function headersWithoutValue(
  headers: readonly HeaderConfig[],
  { fields, dropped }: { readonly fields: readonly string[]; readonly dropped: readonly string[] },
): readonly HeaderConfig[] {
  const sent = new Set(fields.filter((_, index) => index % 2 === 0))
  return headers.filter(
    ({ name, source }) =>
      source.kind !== 'request' && !sent.has(name) && !dropped.some((why) => why.startsWith(`${name}: `)),
  )
}

type Drop = (why: string) => void

function headerValue(header: HeaderConfig, claims: Claims, drop: Drop): string | undefined {
  const { source } = header
  switch (source.kind) {
    case 'claim':
      return claimsValue(header, [source.path], claims, drop)
    case 'template':
      return claimsValue(header, source.template, claims, drop)
    case 'constant':
      return constantValue(source.value)
    case 'request':
      return undefined
    default:
      return unreachable(source)
  }
}

function constantValue(text: string): string {
  return encodings.utf8.whole(text)
}

function claimsValue(header: HeaderConfig, template: ClaimTemplate, claims: Claims, drop: Drop): string | undefined {
  const encoding = encodingOf(header)
  let isExact = true
  const text = templateText(template, encoding.piece, (path) => {
    const claim = readClaim(claims, path)
    if (isList(claim)) return joinedMembers(claim, header.join, encoding, drop)
    const why = inexactReason(claim)
    if (why === undefined) return encoding.piece(printed(claim))
    drop(why)
    isExact = false
    return ''
  })
  if (text === undefined || !isExact) return undefined
  const why = encoding.unfitReason(text)
  const value = why === undefined ? encoding.whole(text) : ''
  if (why !== undefined) drop(why)
  else if (value.length > header.maxBytes) drop(`longer than ${header.maxBytes} bytes`)
  else if (value !== '') return value
  return undefined
}

/** The text of a template; `undefined` when none of its claims has a value. */
function templateText(
  template: ClaimTemplate,
  piece: (text: string) => string,
  textOf: (path: ClaimPath) => string,
): string | undefined {
  let text = ''
  let literal = ''
  let hasClaim = false
  for (const part of template) {
    if (typeof part === 'string') {
      literal += part
      continue
    }
    const claim = textOf(part)
    if (claim === '') {
      // Without a middle name, "{given_name} {middle_name} {family_name}" has only one space.
      literal = literal.trimEnd()
      continue
    }
    text += piece(hasClaim ? literal : literal.trimStart()) + claim
    literal = ''
    hasClaim = true
  }
  return hasClaim ? text + piece(literal.trimEnd()) : undefined
}

function isList(claim: JsonValue | undefined): claim is readonly JsonValue[] {
  return Array.isArray(claim)
}

function joinedMembers(claim: readonly JsonValue[], join: string, encoding: Encoding, drop: Drop): string {
  const separator = withoutControls(join)
  const members = claim.filter((member) => printed(member) !== '')
  const exact = members.filter((member) => inexactReason(member) === undefined).map(printed)
  const carried = exact.filter((text) => encoding.unfitReason(text) === undefined).map(encoding.piece)
  if (carried.length < members.length)
    drop(`${members.length - carried.length} of a list's members cannot be carried unchanged`)
  const apart = carried.filter((piece) => isSeparable(piece, separator))
  if (apart.length < carried.length)
    drop(`${carried.length - apart.length} of a list's members contain the separator, or begin or end with white space`)
  return apart.join(separator)
}

/** The text of a value. Blank text counts as no value. */
function printed(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return ''
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  return text.trim() === '' ? '' : text
}

/** Why a different value could have the same text; `undefined` when none could. */
function inexactReason(value: JsonValue | undefined): string | undefined {
  if (isRounded(value)) return 'an integer beyond 2^53, which has lost digits'
  // JSON escapes a lone surrogate.
  return typeof value === 'string' ? malformedReason(value) : undefined
}

function isRounded(value: JsonValue | undefined): boolean {
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value)
  return typeof value === 'object' && value !== null && Object.values(value).some(isRounded)
}

/**
 * Whether an upstream gets this member back when it splits the joined list, also when it trims the
 * members.
 */
function isSeparable(member: string, separator: string): boolean {
  if (member !== member.trim()) return false
  const core = separator.trim() || separator
  if (core === '') return true
  return (member + core).indexOf(core) === member.length
}

function encodingOf({ encode, source }: HeaderConfig): Encoding {
  return encodings[encode === 'base64' && source.kind === 'claim' ? 'base64Members' : encode]
}

/** A configured separator must not end the header field (RFC 9110 §5.5). */
function withoutControls(text: string): string {
  return text.replaceAll(/[\p{Cc}\u2028\u2029 ]+/gu, ' ')
}
