import type { ClaimChanges } from '../config/model/header.ts'

/** The changed text, empty when nothing is left; or why a text cannot be changed. */
export type ChangedText = { readonly text: string } | { readonly why: string }

/**
 * Changes the text of a claim in this order: `after`, `before`, `case`, `map`. Both `after` and
 * `before` mean the last occurrence, because a quoted local part of an email address may contain
 * `@` (RFC 5321 §4.1.2). The reason of a failure never quotes the text.
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
 * Whether folding turns another letter into an ASCII letter: the Kelvin sign becomes `k`, `ı`
 * becomes `I`, and `ß` becomes `SS`. Two different names would become equal.
 */
function becomesAscii(text: string, fold: (part: string) => string): boolean {
  return /[^\0-\x7f]/.test(text) && [...text].some((letter) => letter > '\x7f' && /^[\0-\x7f]+$/.test(fold(letter)))
}
