import { parseClaimPath, parseClaimTemplate } from '../../core/claims.ts'
import { isTemplate } from './spellings.ts'

/** A hint for a claim path: also for `{groups}`, which is a template. */
export function hintForClaimPath(text: string): string | undefined {
  const name = /^\$?\{+ *([\w.]+) *\}+$/.exec(text)?.[1]
  if (name !== undefined && isClaimText(name)) return `did you mean "${name}"?`
  const names = text.split(' ')
  return names.length > 1 && names.every((each) => /^\w+$/.test(each))
    ? `for several claims, write a template: '${names.map((each) => `{${each}}`).join(' ')}'`
    : hintForClaims(text)
}

/**
 * A hint for the syntax of other tools: `$sub`, `$.sub`, `${sub}`, `{{ sub }}`,
 * `{{ .Claims.sub }}`.
 */
export function hintForClaims(text: string): string | undefined {
  // A name in upper case is a variable of another program, and no claim.
  if (!text.includes('{{') && isTemplate(text)) return undefined
  const meant = text
    .replaceAll(/\$(?=\{)|(?<=^|\{)\$\.?/g, '')
    .replaceAll(/\{\{\s*\.?(?:Claims\.)?([^{}\s]+)\s*\}\}/g, '{$1}')
  return meant === text || !isClaimText(meant) ? undefined : `did you mean "${meant}"?`
}

/** Whether a text is the path of a claim, or a template with claims. */
function isClaimText(text: string): boolean {
  try {
    return (text.includes('{') ? parseClaimTemplate(text) : parseClaimPath(text)).length > 0
  } catch {
    return false
  }
}
