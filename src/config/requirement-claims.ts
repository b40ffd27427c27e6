import type { ClaimPath } from '../core/claims.ts'
import type { RequirementConfig } from './model/rule.ts'

/** The claims that a requirement reads. */
export function claimsOf(requirement: RequirementConfig): readonly ClaimPath[] {
  switch (requirement.kind) {
    case 'claim':
      return [requirement.claim]
    case 'email_domains':
      return requirement.verified ? [['email'], ['email_verified']] : [['email']]
    case 'all':
      return requirement.all.flatMap(claimsOf)
    case 'any':
      return requirement.any.flatMap(claimsOf)
    case 'not':
      return claimsOf(requirement.not)
    default:
      return []
  }
}
