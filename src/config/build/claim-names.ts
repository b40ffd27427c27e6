import type { ClaimPath, Claims, ClaimTemplate } from '../../core/claims.ts'

/** Short name → name of the claim: `provider.claims`. */
export type ShortNames = Readonly<Record<string, string>>

/** Replaces a short name at the beginning of a path by the name of the claim. */
export function withLongName(path: ClaimPath, names: ShortNames): ClaimPath {
  const [first, ...others] = path
  return typeof first === 'string' && Object.hasOwn(names, first) ? [names[first] ?? first, ...others] : path
}

/** The same for the claims of a template. */
export function templateWithLongNames(template: ClaimTemplate, names: ShortNames): ClaimTemplate {
  return template.map((part) => (typeof part === 'string' ? part : withLongName(part, names)))
}

/** Replaces the short names of claims by their names. */
export function withLongNames(claims: Claims, names: ShortNames): Claims {
  return Object.fromEntries(
    Object.entries(claims).map(([name, value]) => [Object.hasOwn(names, name) ? (names[name] ?? name) : name, value]),
  )
}
