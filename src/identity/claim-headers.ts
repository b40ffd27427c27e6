import type { HeaderConfig, HeaderEncoding } from '../config/model.ts'
import { type ClaimPath, type Claims, type JsonValue, readClaim } from '../core/claims.ts'

export type IdentityHeaders =
  | {
      /** Name and value in turn; a character of a value is a byte on the wire. */
      readonly lines: readonly string[]
      /** What was left out although the claim is there, for the log: the header and the reason, never the value. */
      readonly dropped: readonly string[]
    }
  /** A required header has no value. */
  | { readonly missing: string; readonly dropped: readonly string[] }

/**
 * The header lines that tell an upstream about a person.
 *
 * Text, numbers and booleans are printed, the members of a list joined, an object (or a list inside of a list) is compact
 * JSON. An absent claim, `null`, a blank text and an empty list have no value, and a header none of whose claims has a value
 * is absent. In a template the space around an absent claim goes with it. A value of more than `max_bytes` is left out whole:
 * half a list of groups is another list.
 *
 * A list's members must come apart again where they were joined, or a group named `a,admins` would make its members
 * administrators. With `percent` and `base64` (of a claim that stands alone) each member is encoded on its own, so upstreams
 * split first and decode then. With every other encoding a member that holds the separator is left out.
 */
export function identityHeaders(headers: readonly HeaderConfig[], claims: Claims): IdentityHeaders {
  const lines: string[] = []
  const dropped: string[] = []
  for (const header of headers) {
    const value = headerValue(header, claims, (why) => dropped.push(`${header.name}: ${why}`))
    if (value !== undefined) lines.push(header.name, value)
    else if (header.required) return { missing: header.name, dropped }
  }
  return { lines, dropped }
}

type Drop = (why: string) => void

function headerValue(header: HeaderConfig, claims: Claims, drop: Drop): string | undefined {
  const { piece, whole } = encodingOf(header)
  const text = templateText(header.template, piece, (path) => claimText(readClaim(claims, path), header, piece, drop))
  const value = text === undefined ? '' : whole(text)
  if (value.length > header.maxBytes) {
    drop(`longer than ${header.maxBytes} bytes`)
    return undefined
  }
  return value === '' ? undefined : value
}

/** `undefined` when none of the claims has a value. */
function templateText(
  template: HeaderConfig['template'],
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
      // The space on one side of an absent claim is enough: "{given_name} {middle_name} {family_name}".
      literal = literal.trimEnd()
      continue
    }
    text += piece(hasClaim ? literal : literal.trimStart()) + claim
    literal = ''
    hasClaim = true
  }
  return hasClaim ? text + piece(literal.trimEnd()) : undefined
}

function claimText(
  claim: JsonValue | undefined,
  header: HeaderConfig,
  piece: (text: string) => string,
  drop: Drop,
): string {
  if (!Array.isArray(claim)) return piece(printed(claim))

  const separator = withoutControls(header.join)
  const members = (claim as readonly JsonValue[])
    .map((member) => piece(printed(member)))
    .filter((member) => member !== '')
  const whole = members.filter((member) => comesApart(member, separator))
  if (whole.length < members.length) drop(`${members.length - whole.length} of a list's members hold the separator`)
  return whole.join(separator)
}

function printed(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return ''
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  return withoutControls(text).trim() === '' ? '' : text
}

/** Whether a member stays what it is between two separators, also for an upstream that trims what it splits. */
function comesApart(member: string, separator: string): boolean {
  const core = separator.trim() || separator
  if (core === '') return true
  return (member + core).indexOf(core) === member.length
}

interface Encoding {
  /** Applied to each literal and each claim, before a list is joined. */
  readonly piece: (text: string) => string
  /** Applied to the header's whole text. */
  readonly whole: (text: string) => string
}

const encodings: Readonly<Record<HeaderEncoding | 'base64Members', Encoding>> = {
  utf8: { piece: withoutControls, whole: (text) => utf8Bytes(text.trim()) },
  latin1: { piece: latin1, whole: (text) => latin1(text.trim()) },
  percent: { piece: percentEncoded, whole: utf8Bytes },
  base64: { piece: unchanged, whole: base64 },
  base64Members: { piece: base64, whole: utf8Bytes },
  rfc8187: { piece: unchanged, whole: (text) => `UTF-8''${percentEncoded(text)}` },
}

function encodingOf({ encode, template }: HeaderConfig): Encoding {
  const standsAlone = template.length === 1 && typeof template[0] !== 'string'
  return encodings[encode === 'base64' && standsAlone ? 'base64Members' : encode]
}

function unchanged(text: string): string {
  return text
}

/** A header's value must never end its line (RFC 9110 §5.5): each run of control characters is a space. */
function withoutControls(text: string): string {
  return /[\p{Cc}\u2028\u2029]/u.test(text) ? text.replaceAll(/[\p{Cc}\u2028\u2029 ]+/gu, ' ') : text
}

function latin1(text: string): string {
  return withoutControls(text).replaceAll(/[^\0-\xff]/gu, '?')
}

/** Header values are written as latin1, so UTF-8 has to be spelt out in bytes. */
function utf8Bytes(text: string): string {
  return /^[\0-\x7f]*$/.test(text) ? text : Buffer.from(text, 'utf8').toString('latin1')
}

function base64(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64')
}

/** RFC 3986 §2.1; all but the unreserved characters. */
function percentEncoded(text: string): string {
  const wellFormed = text.replaceAll(/\p{Surrogate}/gu, '\ufffd')
  return encodeURIComponent(wellFormed).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
