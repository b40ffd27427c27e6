import type { ClaimPath, Claims } from '../../core/claims.ts'

/** Short name → name of the claim: `provider.claims`. */
export type ShortNames = Readonly<Record<string, string>>

/** A hint for the syntax of other tools: `$sub`, `$.sub`, `${sub}`, `{{ sub }}`. */
export function hintForClaims(text: string): string | undefined {
  const meant = text.replaceAll(/\$(?=\{)|(?<=^|\{)\$\.?/g, '').replaceAll(/\{\{\s*\.?([^{}\s]+)\s*\}\}/g, '{$1}')
  return meant === text || meant === '' ? undefined : `did you mean "${meant}"?`
}

/** Replaces a short name at the beginning of a path by the name of the claim. */
export function withLongName(path: ClaimPath, names: ShortNames): ClaimPath {
  const [first, ...others] = path
  return typeof first === 'string' && Object.hasOwn(names, first) ? [names[first] ?? first, ...others] : path
}

/** Replaces the short names of claims by their names. */
export function withLongNames(claims: Claims, names: ShortNames): Claims {
  return Object.fromEntries(
    Object.entries(claims).map(([name, value]) => [Object.hasOwn(names, name) ? (names[name] ?? name) : name, value]),
  )
}
