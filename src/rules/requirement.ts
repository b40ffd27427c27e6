import type { RequirementConfig, RuleConfig } from '../config/model.ts'
import { type Claims, type JsonValue, readClaim } from '../core/claims.ts'

/**
 * Why these claims do not meet a rule, for the log; `undefined` when they do. The reason says what was asked, never what the
 * person's claims hold.
 */
export function unmetRequirement(rule: Pick<RuleConfig, 'require'>, claims: Claims): string | undefined {
  for (const requirement of rule.require) {
    const why = whyUnmet(requirement, readClaim(claims, requirement.claim))
    if (why !== undefined) return `${requirement.claimText}: ${why}`
  }
  return undefined
}

function whyUnmet({ any_of, all_of, none_of }: RequirementConfig, claim: JsonValue | undefined): string | undefined {
  const values = valuesOf(claim)
  if (values === undefined) return 'the claim is neither text, a number, true or false, nor a list of those'
  if (any_of === undefined && all_of === undefined && none_of === undefined) return 'the rule does not say what it asks'

  const isAbsent = claim === undefined || claim === null
  if (isAbsent && (any_of !== undefined || all_of !== undefined)) return 'the claim is absent'
  if (any_of && !any_of.some((wanted) => values.includes(wanted))) return `holds none of ${list(any_of)}`
  if (all_of && (values.length === 0 || !all_of.every((wanted) => values.includes(wanted))))
    return `does not hold all of ${list(all_of)}`
  if (none_of?.some((unwanted) => values.includes(unwanted))) return `holds one of ${list(none_of)}`
  return undefined
}

/** `undefined` for a shape that nobody asked about: it must not pass for an absent claim, or `none_of` would let it in. */
function valuesOf(claim: JsonValue | undefined): readonly string[] | undefined {
  if (claim === undefined || claim === null) return []
  const members: readonly JsonValue[] = Array.isArray(claim) ? claim : [claim]
  return members.every(isComparable) ? members.map(String) : undefined
}

function isComparable(value: JsonValue): boolean {
  // An integer beyond 2^53 has been rounded on its way here, and could equal somebody else's.
  if (typeof value === 'number') return !Number.isInteger(value) || Number.isSafeInteger(value)
  return typeof value === 'string' || typeof value === 'boolean'
}

function list(values: readonly string[]): string {
  return values.join(', ')
}
