import type { RequirementConfig, RuleConfig } from '../config/model.ts'
import { type Claims, type JsonValue, readClaim } from '../core/claims.ts'

/**
 * Why claims do not satisfy a rule. `why` is for the log: it says what the rule requires, never the
 * values of the claims.
 */
export interface Unmet {
  readonly code: 'ERR_FORBIDDEN' | 'ERR_CLAIM_ABSENT'
  readonly why: string
}

/** Why these claims do not satisfy a rule; `undefined` when they do. */
export function unmetRequirement(rule: Pick<RuleConfig, 'require'>, claims: Claims): Unmet | undefined {
  for (const requirement of rule.require) {
    const claim = readClaim(claims, requirement.claim)
    const { claimText, anyOf, allOf } = requirement
    const isNeeded = anyOf !== undefined || allOf !== undefined
    if (isNeeded && (claim === undefined || claim === null))
      return { code: 'ERR_CLAIM_ABSENT', why: `${claimText}: the claim is absent` }
    const why = unmetReason(requirement, claim)
    if (why !== undefined) return { code: 'ERR_FORBIDDEN', why: `${claimText}: ${why}` }
  }
  return undefined
}

function unmetReason({ anyOf, allOf, noneOf }: RequirementConfig, claim: JsonValue | undefined): string | undefined {
  const values = valuesOf(claim)
  if (values === undefined) return 'the claim is neither text, a number, true or false, nor a list of those'
  if (anyOf === undefined && allOf === undefined && noneOf === undefined)
    return 'the rule has no any_of, all_of or none_of'

  if (anyOf && !anyOf.some((wanted) => values.includes(wanted))) return `holds none of ${list(anyOf)}`
  if (allOf && (values.length === 0 || !allOf.every((wanted) => values.includes(wanted))))
    return `does not hold all of ${list(allOf)}`
  if (noneOf?.some((unwanted) => values.includes(unwanted))) return `holds one of ${list(noneOf)}`
  return undefined
}

/**
 * The values of a claim; `undefined` when it has a shape that cannot be compared. Such a claim is
 * not treated as absent, because `none_of` would then be satisfied.
 */
function valuesOf(claim: JsonValue | undefined): readonly string[] | undefined {
  if (claim === undefined || claim === null) return []
  const members: readonly JsonValue[] = Array.isArray(claim) ? claim : [claim]
  return members.every(isComparable) ? members.map(String) : undefined
}

function isComparable(value: JsonValue): boolean {
  // JSON.parse rounds integers beyond 2^53, so the value could equal the value of another person.
  if (typeof value === 'number') return !Number.isInteger(value) || Number.isSafeInteger(value)
  return typeof value === 'string' || typeof value === 'boolean'
}

function list(values: readonly string[]): string {
  return values.join(', ')
}
