import { type ClaimTemplate, parseClaimTemplate } from '../../core/claims.ts'
import { hintForClaims } from './claim-hints.ts'
import type { Setting } from './report.ts'
import { isTemplate } from './spellings.ts'

/**
 * Text with claims in braces, for the value of a header.
 * @throws {SyntaxError} names what is wrong
 */
export function parseHeaderTemplate(text: string, at: Setting): ClaimTemplate {
  requireOneLine(text)
  const template = parseClaimTemplate(text)
  if (template.every((part) => typeof part === 'string'))
    throw new SyntaxError('has no claim in braces, such as {email}; write a constant as { value: … }')
  if (/\$\{(?!\{)/.test(text) && !isTemplate(text))
    at.warning('also sends the "$" before the claim', hintForClaims(text))
  return template
}

/**
 * A text that is sent as it is.
 * @throws {SyntaxError} names what is wrong
 */
export function parseHeaderValue(text: string, at: Setting): string {
  requireOneLine(text)
  // Recipients remove white space around a value (RFC 9110 §5.5).
  if (text !== text.trim()) throw new SyntaxError('must not begin or end with white space')
  if (/^\{[\w.]+\}$/.test(text)) at.warning('is sent as it is', 'write template to send the claim')
  if (/^(?:sub|email|groups|(?:preferred_user|given_|family_)name)$/.test(text))
    at.warning('is sent as it is', `write claim: ${text} to send the claim`)
  return text
}

function requireOneLine(text: string): void {
  if (/[\p{Cc}\u2028\u2029]/u.test(text)) throw new SyntaxError('must not contain line breaks or control characters')
}
