import { claimsIn } from '../config/claims-in-use.ts'
import type { HeaderConfig } from '../config/model/header.ts'
import {
  type ClaimPath,
  type Claims,
  type ClaimTemplate,
  isWithheld,
  type JsonValue,
  readClaim,
  withheldReason,
} from '../core/claims.ts'
import { unreachable } from '../core/errors.ts'
import type { TokenSet } from '../core/token-set.ts'
import { type ChangedText, changedText, type Encoding, encodings, malformedReason } from './encodings.ts'

export type IdentityHeaders = SentHeaders | MissingHeader

export interface SentHeaders {
  /** Names and values, alternating. Each character of a value is one byte on the wire. */
  readonly fields: readonly string[]
  readonly dropped: readonly DroppedHeader[]
}

export interface MissingHeader {
  readonly missing: string
  readonly dropped: readonly DroppedHeader[]
}

/** A header that is left out, or lacks a part, although the claim is present. */
export interface DroppedHeader {
  readonly name: string
  /** The reason, for people. Never the value. */
  readonly why: string
  /** The provider has withheld a claim of the header. */
  readonly isWithheld?: true
}

export function droppedTexts(dropped: readonly DroppedHeader[]): readonly string[] {
  return dropped.map(({ name, why }) => `${name}: ${why}`)
}

/**
 * The header fields for an upstream that depend on the person, or on nothing; for those that depend
 * on the request see {@link requestFields}.
 *
 * Text, numbers and booleans are printed. The members of a list are joined. An object, or a list in
 * a list, becomes compact JSON. An absent claim, `null`, blank text and an empty list have no
 * value. A header without a value is absent. In a template, the space beside an absent claim is
 * removed.
 *
 * A value reaches the upstream unchanged or not at all, because the values of two people must never
 * become equal. So a header is absent if its encoding cannot carry the value ({@link Encoding}), or
 * if the value is longer than `max_bytes`.
 *
 * An upstream must be able to split a list into the same members. Otherwise, a group named
 * `a,admins` would make its members administrators. With `percent`, and with `base64` of a single
 * claim, each member is encoded separately: upstreams split first and decode then. A member that
 * cannot be carried unchanged, or separated, is left out.
 */
export function identityHeaders(
  headers: readonly HeaderConfig[],
  claims: Claims,
  tokens: BearerTokens = {},
): IdentityHeaders {
  const fields: string[] = []
  const dropped: DroppedHeader[] = []
  const withholdsClaims = claims['_claim_names'] !== undefined
  for (const header of headers) {
    if (isAddedLater(header)) continue
    const withheld = withholdsClaims ? withheldClaim(header, claims) : undefined
    if (withheld !== undefined)
      dropped.push({ name: header.name, why: `${String(withheld[0])}: ${withheldReason}`, isWithheld: true })
    const value =
      withheld === undefined
        ? headerValue(header, claims, tokens, (why) => dropped.push({ name: header.name, why }))
        : undefined
    if (typeof value === 'string') fields.push(header.name, value)
    else if (header.required || value === refused) return { missing: header.name, dropped }
  }
  return { fields, dropped }
}

/** The headers that are absent only because none of their claims has a value. */
export function headersWithoutValue(
  headers: readonly HeaderConfig[],
  { fields, dropped }: SentHeaders,
): readonly HeaderConfig[] {
  const present = new Set([...fields.filter((_, index) => index % 2 === 0), ...dropped.map(({ name }) => name)])
  return headers.filter(({ name, source }) => !isAddedLater({ source }) && !present.has(name))
}

/** What depends on the request, or on a token of the provider, is no part of these headers. */
function isAddedLater({ source }: Pick<HeaderConfig, 'source'>): boolean {
  return source.kind === 'request' || source.kind === 'exchanged'
}

/** The tokens of a session that a header may contain. */
export type BearerTokens = Partial<Pick<TokenSet, 'access_token' | 'id_token'>>

/** The first claim of a header that is withheld. `first_of` does not read beyond a value. */
function withheldClaim(header: HeaderConfig, claims: Claims): ClaimPath | undefined {
  const stopsAtValue = header.source.kind === 'first_of'
  const found = claimsIn(header).find(
    (path) => isWithheld(claims, path) || (stopsAtValue && hasValue(readClaim(claims, path))),
  )
  return found !== undefined && isWithheld(claims, found) ? found : undefined
}

type Drop = (why: string) => void
const ignore: Drop = () => {}

/** The value of a header is too long, and the request must be refused. */
const refused = Symbol('refused')
type HeaderValue = string | typeof refused | undefined

function headerValue(header: HeaderConfig, claims: Claims, tokens: BearerTokens, drop: Drop): HeaderValue {
  const { source } = header
  switch (source.kind) {
    case 'claim':
      return claimValue(header, readClaim(claims, source.path), drop)
    case 'first_of':
      return claimValue(header, source.firstOf.map((path) => readClaim(claims, path)).find(hasValue), drop)
    case 'template':
      return templateValue(header, source.template, claims, drop)
    case 'constant':
      return encodings.utf8.whole(source.value)
    case 'request':
    case 'exchanged':
      return undefined
    case 'basic':
      return basicValue(header, source.user, source.password, claims, drop)
    case 'bearer':
      return bearerValue(tokens[source.bearer], drop)
    default:
      return unreachable(source)
  }
}

/** Basic credentials in UTF-8 (RFC 7617 §2, §2.1). */
function basicValue(
  header: HeaderConfig,
  template: ClaimTemplate,
  password: string,
  claims: Claims,
  drop: Drop,
): HeaderValue {
  let why: string | undefined
  const user = templateText(template, encodings.utf8.piece, (path) => {
    const claim = readClaim(claims, path)
    if (isList(claim)) why = 'a list, which is no user name'
    return exactText(claim, header, (reason) => (why = reason)) ?? ''
  })
  if (user === undefined && why === undefined) return undefined
  // The recipient takes what follows the first colon for the password.
  if (user?.includes(':')) why ??= 'a user name with ":", which Basic credentials cannot carry'
  why ??= encodings.utf8.unfitReason(user ?? '')
  if (why === undefined) return `Basic ${encodings.base64.whole(`${user}:${password}`)}`
  drop(why)
  return undefined
}

/**
 * The headers with an exchanged token: names and values, alternating. `undefined`: the token has
 * characters that a bearer token cannot have (RFC 6750 §2.1).
 */
export function exchangedHeaders(headers: readonly HeaderConfig[], token: string): readonly string[] | undefined {
  const names = headers.flatMap(({ name, source }) => (source.kind === 'exchanged' ? [name] : []))
  const value = bearerValue(token, ignore)
  return typeof value === 'string' ? names.flatMap((name) => [name, value]) : undefined
}

function bearerValue(token: string | undefined, drop: Drop): HeaderValue {
  if (token === undefined || token === '') return undefined
  if (/^[\w.~+/-]+=*$/.test(token)) return `Bearer ${token}`
  drop('a token with characters that a bearer token cannot have (RFC 6750 §2.1)')
  return undefined
}

function hasValue(claim: JsonValue | undefined): boolean {
  return isList(claim) ? claim.some((member) => printed(member) !== '') : printed(claim) !== ''
}

/** The value of a header that consists of one claim. */
function claimValue(header: HeaderConfig, claim: JsonValue | undefined, drop: Drop): HeaderValue {
  const encoding = encodingOf(header)
  if (!isList(claim)) {
    const text = header.json === true ? jsonText(claim, header, drop) : exactText(claim, header, drop)
    return text === undefined ? undefined : fittedText(header, encoding.piece(text), encoding, drop)
  }
  if (header.json === true) {
    const members = claim.flatMap((member) => jsonText(member, header, drop) ?? [])
    return fitted(header, unique(members, header), (some) => encoding.piece(`[${some.join(',')}]`), encoding, drop)
  }
  return fitted(
    header,
    separateMembers(claim, header, encoding, drop),
    (some) => some.join(withoutControls(header.join)),
    encoding,
    drop,
  )
}

/** The value of a header that consists of text with claims. */
function templateValue(header: HeaderConfig, template: ClaimTemplate, claims: Claims, drop: Drop): HeaderValue {
  const encoding = encodingOf(header)
  let isExact = true
  const text = templateText(template, encoding.piece, (path) => {
    const claim = readClaim(claims, path)
    if (isList(claim)) return separateMembers(claim, header, encoding, drop).join(withoutControls(header.join))
    const exact = exactText(claim, header, drop)
    isExact &&= exact !== undefined
    return encoding.piece(exact ?? '')
  })
  return text === undefined || !isExact ? undefined : fittedText(header, text, encoding, drop)
}

/** The encoded value of a single text. See {@link fitted}. */
function fittedText(header: HeaderConfig, text: string, encoding: Encoding, drop: Drop): HeaderValue {
  return fitted(header, [text], firstOf, encoding, drop)
}

function firstOf([only = '']: readonly string[]): string {
  return only
}

/**
 * The encoded value, if it is not longer than `max_bytes`.
 * @param members those of a list, or the one text, in the form of `encoding.piece`
 */
function fitted(
  header: HeaderConfig,
  members: readonly string[],
  joined: (members: readonly string[]) => string,
  encoding: Encoding,
  drop: Drop,
): HeaderValue {
  if (members.every((member) => member === '')) return undefined
  const text = joined(members)
  const why = encoding.unfitReason(text)
  if (why !== undefined) {
    drop(why)
    return undefined
  }
  const whole = encoding.whole(text)
  if (whole.length <= header.maxBytes) return whole
  const valueOf = (count: number) => encoding.whole(joined(members.slice(0, count)))
  const fits = (count: number) => valueOf(count).length <= header.maxBytes
  const kept = header.tooLong === 'trim' ? largest(members.length, fits) : 0
  drop(
    kept === 0
      ? `longer than ${header.maxBytes} bytes`
      : `longer than ${header.maxBytes} bytes, so ${members.length - kept} of ${members.length} members are left out`,
  )
  if (kept > 0) return valueOf(kept)
  return header.tooLong === 'refuse' ? refused : undefined
}

/** The largest number up to `limit` for which `holds`, or 0. It holds for all smaller numbers. */
function largest(limit: number, holds: (count: number) => boolean): number {
  let [low, high] = [0, limit]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (holds(middle)) low = middle
    else high = middle - 1
  }
  return low
}

/** The changed text of a single value; empty without a value, `undefined` when it was dropped. */
function exactText(claim: JsonValue | undefined, { changes }: HeaderConfig, drop: Drop): string | undefined {
  const isChangeable = changes === undefined || typeof claim !== 'object' || claim === null
  const inexact = isChangeable ? inexactReason(claim) : 'a map or a list, which is no text that can be changed'
  const changed: ChangedText =
    inexact !== undefined
      ? { why: inexact }
      : changes === undefined || printed(claim) === ''
        ? { text: printed(claim) }
        : changedText(printed(claim), changes)
  if ('text' in changed) return changed.text
  drop(changed.why)
  return undefined
}

/** A value as JSON; `undefined` without a value. JSON escapes whatever text contains. */
function jsonText(claim: JsonValue | undefined, header: HeaderConfig, drop: Drop): string | undefined {
  if (claim === undefined || printed(claim) === '') return undefined
  if (header.changes === undefined && !isRounded(claim)) return JSON.stringify(claim)
  const text = exactText(claim, header, drop)
  return text === undefined || text === '' ? undefined : JSON.stringify(text)
}

/** Several values may have the same replacement. */
function unique(members: readonly string[], { changes }: HeaderConfig): readonly string[] {
  return changes?.map === undefined ? members : [...new Set(members)]
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

function separateMembers(
  claim: readonly JsonValue[],
  header: HeaderConfig,
  encoding: Encoding,
  drop: Drop,
): readonly string[] {
  const separator = withoutControls(header.join)
  const texts: string[] = []
  let lost = 0
  for (const member of claim) {
    const text = exactText(member, header, ignore)
    if (text === undefined) lost += 1
    else if (text !== '') texts.push(text)
  }
  const apart: string[] = []
  let inseparable = 0
  for (const text of unique(texts, header)) {
    if (encoding.unfitReason(text) !== undefined) {
      lost += 1
      continue
    }
    const piece = encoding.piece(text)
    if (isSeparable(piece, separator)) apart.push(piece)
    else inseparable += 1
  }
  if (lost > 0) drop(`${lost} of a list's members cannot be carried unchanged`)
  if (inseparable > 0)
    drop(`${inseparable} of a list's members contain the separator, or begin or end with white space`)
  return apart
}

/** The text of a value. Blank text counts as no value. */
function printed(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return ''
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  return text.trim() === '' ? '' : text
}

/** Why a different value could have the same text; `undefined` when none could. */
export function inexactReason(value: JsonValue | undefined): string | undefined {
  if (isRounded(value)) return 'an integer beyond 2^53, which has lost digits'
  // JSON escapes a lone surrogate.
  return typeof value === 'string' ? malformedReason(value) : undefined
}

function isRounded(value: JsonValue | undefined): boolean {
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value)
  return typeof value === 'object' && value !== null && Object.values(value).some(isRounded)
}

/** Whether an upstream that splits the joined list, and perhaps trims it, gets this member back. */
function isSeparable(member: string, separator: string): boolean {
  if (member !== member.trim()) return false
  const core = separator.trim() || separator
  if (core === '') return true
  return (member + core).indexOf(core) === member.length
}

function encodingOf({ encode, source, json }: HeaderConfig): Encoding {
  if (source.kind === 'template' || json === true) return encodings[encode]
  return encodings[encode === 'base64' ? 'base64Members' : encode === 'base64url' ? 'base64urlMembers' : encode]
}

/** A configured separator must not end the header field (RFC 9110 §5.5). */
function withoutControls(text: string): string {
  // Most separators are like this, and the test costs less than the replacement.
  if (/^[\x21-\x7e]*$/.test(text)) return text
  return text.replaceAll(/[\p{Cc}\u2028\u2029 ]+/gu, ' ')
}
