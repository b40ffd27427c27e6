import type { ClaimPath, Claims } from '../../core/claims.ts'

/** Short names for claims with long ones: `provider.claims`. */
export type ShortNames = Readonly<Record<string, string>>

/** `fields.groups` with `fields` as a short name is a path into the claim with the long name. */
export function withLongName(path: ClaimPath, names: ShortNames): ClaimPath {
  const [first, ...others] = path
  return typeof first === 'string' && Object.hasOwn(names, first) ? [names[first] ?? first, ...others] : path
}

/** Claims that stand under short names, under their long ones. */
export function withLongNames(claims: Claims, names: ShortNames): Claims {
  return Object.fromEntries(
    Object.entries(claims).map(([name, value]) => [Object.hasOwn(names, name) ? (names[name] ?? name) : name, value]),
  )
}
