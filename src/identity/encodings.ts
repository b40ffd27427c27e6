import type { ClaimChanges, HeaderEncoding } from '../config/model/header.ts'

export interface Encoding {
  /** Why a header cannot carry the text unchanged, if it cannot. Never quotes the text. */
  readonly unfitReason: (text: string) => string | undefined
  /** Applied to each literal and each claim, before a list is joined. */
  readonly piece: (text: string) => string
  /** Applied to the header's whole text. */
  readonly whole: (text: string) => string
}

export const encodings: Readonly<Record<HeaderEncoding | 'base64Members' | 'base64urlMembers', Encoding>> = {
  utf8: { unfitReason: notPlainReason, piece: unchanged, whole: utf8Bytes },
  latin1: { unfitReason: notLatin1Reason, piece: unchanged, whole: unchanged },
  percent: { unfitReason: malformedReason, piece: percentEncoded, whole: utf8Bytes },
  base64: { unfitReason: malformedReason, piece: unchanged, whole: base64 },
  base64Members: { unfitReason: malformedReason, piece: base64, whole: utf8Bytes },
  base64url: { unfitReason: malformedReason, piece: unchanged, whole: base64url },
  base64urlMembers: { unfitReason: malformedReason, piece: base64url, whole: utf8Bytes },
  rfc2047: { unfitReason: malformedReason, piece: unchanged, whole: encodedWords },
  quoted_printable: { unfitReason: malformedReason, piece: unchanged, whole: quotedPrintable },
  rfc8187: { unfitReason: malformedReason, piece: unchanged, whole: (text) => `UTF-8''${percentEncoded(text)}` },
}

/** Encoders replace every lone surrogate by U+FFFD, so two different texts would become equal. */
export function malformedReason(text: string): string | undefined {
  return text.isWellFormed() ? undefined : 'text that is not well-formed Unicode'
}

/** A field value has no control characters or white space around it (RFC 9110 §5.5). */
function notPlainReason(text: string): string | undefined {
  // ASCII and Latin-1. Some recipients treat U+2028 and U+2029 as the end of a line.
  if (/[\0-\x1f\x7f-\x9f\u2028\u2029]/.test(text)) return 'a control character, which a header cannot contain'
  return text === text.trim() ? malformedReason(text) : 'white space at its beginning or end, which recipients remove'
}

function notLatin1Reason(text: string): string | undefined {
  return /[^\0-\xff]/u.test(text) ? 'a character that latin1 does not have' : notPlainReason(text)
}

function unchanged(text: string): string {
  return text
}

/** Header values are written as latin1, so each byte of UTF-8 becomes one character. */
function utf8Bytes(text: string): string {
  return /^[\0-\x7f]*$/.test(text) ? text : Buffer.from(text, 'utf8').toString('latin1')
}

function base64(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64')
}

/** Percent-encodes all but the unreserved characters (RFC 3986 §2.1). */
function percentEncoded(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

function base64url(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64url')
}

/** An encoded-word has at most 75 characters (RFC 2047 §2): 45 bytes of text in base64. */
const wordBytes = 45

/** Plain text, or else encoded-words, between which no character is divided (RFC 2047 §5). */
function encodedWords(text: string): string {
  if (/^[\x21-\x7e]+(?: +[\x21-\x7e]+)*$/.test(text) && !text.includes('=?')) return text
  const words: string[] = []
  let word = ''
  for (const character of text) {
    if (Buffer.byteLength(word + character) > wordBytes) {
      words.push(word)
      word = ''
    }
    word += character
  }
  return [...words, word].map((part) => `=?UTF-8?B?${base64(part)}?=`).join(' ')
}

/**
 * Quoted-printable without line breaks (RFC 2045 §6.7). White space at both ends is encoded too,
 * because recipients remove it.
 */
function quotedPrintable(text: string): string {
  return Buffer.from(text, 'utf8')
    .toString('latin1')
    .replaceAll(/^ | $|[^ -~]|=/g, (byte) => `=${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`)
}

/** The changed text, empty when nothing is left; or why a text cannot be changed. */
export type ChangedText = { readonly text: string } | { readonly why: string }

/**
 * Changes the text of a claim: `after`, `before`, `case`, `map`. The first two mean the last
 * occurrence, because a quoted local part may contain `@` (RFC 5321 §4.1.2). A failure never quotes
 * the text.
 */
export function changedText(text: string, changes: ClaimChanges): ChangedText {
  const { after, before, case: letters, map } = changes
  let changed = text
  if (after !== undefined) {
    const at = changed.lastIndexOf(after)
    if (at < 0) return { why: `a value without ${JSON.stringify(after)}` }
    changed = changed.slice(at + after.length)
  }
  if (before !== undefined) {
    const at = changed.lastIndexOf(before)
    if (at < 0) return { why: `a value without ${JSON.stringify(before)}` }
    changed = changed.slice(0, at)
  }
  if (letters !== undefined) {
    const fold = (part: string) => (letters === 'lower' ? part.toLowerCase() : part.toUpperCase())
    if (becomesAscii(changed, fold)) return { why: `a letter that becomes an ASCII letter in ${letters} case` }
    changed = fold(changed)
  }
  if (changed.trim() === '') return { text: '' }
  return { text: map === undefined ? changed : (map.get(changed) ?? map.get('*') ?? '') }
}

/**
 * Whether folding gives an ASCII letter: the Kelvin sign becomes `k`, `ı` becomes `I`, and `ß`
 * becomes `SS`. Two different names would become equal.
 */
function becomesAscii(text: string, fold: (part: string) => string): boolean {
  return /[^\0-\x7f]/.test(text) && [...text].some((letter) => letter > '\x7f' && /^[\0-\x7f]+$/.test(fold(letter)))
}
